//! How much an rmcp peer was used, and whether somebody kept a clone of it.

use std::fmt::{self, Write as _};

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
    /// How many messages were sent through it so far.
    pub(super) sent: usize,
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
            sent,
        })
    }
}

/// Handles and messages.
fn read(peer: &Peer<RoleServer>) -> Option<(usize, usize)> {
    let mut numbers = Numbers::default();
    // Ends with an error once both are found: what follows is long, and of no interest.
    let _ = write!(numbers, "{peer:?}");
    Some((numbers.handles?, numbers.messages?))
}

/// Picks the numbers out of `Debug` output while it is made: a field's name and its value come as
/// pieces of their own. The text is never put together, since this is done for every call.
#[derive(Default)]
struct Numbers {
    handles: Option<usize>,
    messages: Option<usize>,
    /// Which of them the next piece of digits is.
    named: Option<Name>,
}

#[derive(Clone, Copy)]
enum Name {
    Handles,
    Messages,
}

impl fmt::Write for Numbers {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        match (self.named, piece) {
            (_, "tx_count") => self.named = Some(Name::Handles),
            (_, "tail_position") => self.named = Some(Name::Messages),
            (None, _) | (Some(_), ": ") => {}
            (Some(name), value) => {
                let number = match name {
                    Name::Handles => &mut self.handles,
                    Name::Messages => &mut self.messages,
                };
                *number = Some(value.parse().map_err(|_| fmt::Error)?);
                self.named = None;
            }
        }
        match (self.handles, self.messages) {
            (Some(_), Some(_)) => Err(fmt::Error),
            _ => Ok(()),
        }
    }
}
