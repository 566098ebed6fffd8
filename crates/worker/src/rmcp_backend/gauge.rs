//! Whether an rmcp peer was used, and whether somebody kept a clone of it.

use rmcp::model::{CustomNotification, ServerNotification};
use rmcp::service::{Peer, RoleServer};

/// Reads how many handles a peer has and how many messages were sent through it.
///
/// rmcp has no method for either. Both stand in the channel below, whose `Debug` output names them.
/// That output is no promise, so a gauge exists only after it was seen to be right in this very build
/// ([`Gauge::calibrate`]); without one, every call gets a peer of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gauge {
    /// Handles of a peer that nobody has kept: rmcp's own.
    unshared: usize,
}

/// What a gauge reads of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// Somebody has kept a clone.
    pub(super) shared: bool,
    /// Something was sent.
    pub(super) used: bool,
}

impl Gauge {
    /// Makes a gauge, unless what it reads of `peer`, which must be fresh, is not what was done to it.
    pub(super) async fn calibrate(peer: &Peer<RoleServer>) -> Option<Self> {
        let (unshared, unsent) = read(peer)?;
        let two_more = (peer.clone(), peer.clone());
        let counts_clones = read(peer)? == (unshared + 2, unsent);
        drop(two_more);
        let counts_drops = read(peer)? == (unshared, unsent);
        let probe = CustomNotification::new("io.shoal/probe", None);
        peer.send_notification(ServerNotification::CustomNotification(probe))
            .await
            .ok()?;
        let counts_messages = read(peer)? == (unshared, unsent + 1);
        (unsent == 0 && counts_clones && counts_drops && counts_messages)
            .then_some(Self { unshared })
    }

    /// Reads a peer, from the only place where it is lent out.
    ///
    /// When nobody has kept a clone, nobody can make one, so `shared: false` stays true. A clone that
    /// another thread drops meanwhile may still be counted; that only costs a new peer.
    pub(super) fn read(self, peer: &Peer<RoleServer>) -> Option<Reading> {
        let (handles, sent) = read(peer)?;
        Some(Reading {
            shared: handles != self.unshared,
            used: sent != 0,
        })
    }
}

/// Handles and messages.
fn read(peer: &Peer<RoleServer>) -> Option<(usize, usize)> {
    let text = format!("{peer:?}");
    Some((
        number(&text, "tx_count: ")?,
        number(&text, "tail_position: ")?,
    ))
}

/// The number behind the only `name` in `text`.
fn number(text: &str, name: &str) -> Option<usize> {
    let (_, rest) = text.split_once(name)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    (!rest.contains(name)).then(|| digits.parse().ok())?
}
