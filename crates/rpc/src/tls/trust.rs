//! Records with which dialled peers TLS works. A listener records no refusals, because anyone could
//! cause them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

/// A new address replaces the one that was dialled longest ago.
const MOST: usize = 1024;
const LONGEST_REASON: usize = 256;

#[derive(Default)]
pub(super) struct Trust {
    open: AtomicUsize,
    peers: Mutex<HashMap<String, Dialled>>,
}

struct Dialled {
    at: Instant,
    trusted: bool,
    last: Last,
}

#[derive(Debug, PartialEq, Eq)]
enum Last {
    /// The peer was not reached, or neither side judged a certificate.
    Unknown,
    Agreed,
    Refused(String),
}

pub(crate) struct OpenConnection(Arc<Trust>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A peer with which TLS does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distrusted {
    /// The peer's address, as dialled.
    pub address: String,
    /// Why TLS does not work, in words.
    pub why: String,
    /// Whether TLS with the peer worked before.
    pub lost: bool,
}

/// Whether this process and its peers trust each other's certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerTrust {
    /// The peers with which TLS does not work.
    pub distrusted: Vec<Distrusted>,
    /// Whether TLS worked at the last dial of some peer, or a connection with certificates is open.
    pub trusted: bool,
}

impl PeerTrust {
    /// Whether TLS failed with some peer and works with no peer.
    pub fn is_cut_off(&self) -> bool {
        !self.trusted && !self.distrusted.is_empty()
    }
}

impl Trust {
    pub(super) fn opened(self: &Arc<Self>) -> OpenConnection {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(self))
    }

    pub(super) fn has_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    pub(super) fn agreed(&self, address: &str) {
        self.note(address, |dialled| {
            dialled.trusted = true;
            dialled.last = Last::Agreed;
        });
    }

    pub(super) fn refused(&self, address: &str, why: &str) {
        let why: String = why.chars().take(LONGEST_REASON).collect();
        self.note(address, |dialled| dialled.last = Last::Refused(why));
    }

    pub(super) fn unknown(&self, address: &str) {
        if let Some(dialled) = self.peers.lock().get_mut(address) {
            dialled.last = Last::Unknown;
        }
    }

    fn note(&self, address: &str, change: impl FnOnce(&mut Dialled)) {
        let mut peers = self.peers.lock();
        if peers.len() >= MOST && !peers.contains_key(address) {
            let oldest = peers.iter().min_by_key(|(_, dialled)| dialled.at);
            if let Some(oldest) = oldest.map(|(address, _)| address.clone()) {
                peers.remove(&oldest);
            }
        }
        let dialled = peers.entry(address.to_owned()).or_insert(Dialled {
            at: Instant::now(),
            trusted: false,
            last: Last::Unknown,
        });
        dialled.at = Instant::now();
        change(dialled);
    }

    pub(super) fn with_peers<'a>(&self, addresses: impl Iterator<Item = &'a str>) -> PeerTrust {
        let peers = self.peers.lock();
        let mut found = PeerTrust {
            trusted: self.has_open(),
            ..PeerTrust::default()
        };
        for address in addresses {
            let Some(dialled) = peers.get(address) else {
                continue;
            };
            match &dialled.last {
                Last::Refused(why) => found.distrusted.push(Distrusted {
                    address: address.to_owned(),
                    why: why.clone(),
                    lost: dialled.trusted,
                }),
                Last::Agreed => found.trusted = true,
                Last::Unknown => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{MOST, Trust};

    #[test]
    fn only_a_process_that_nobody_trusts_is_cut_off() {
        let trust = Arc::new(Trust::default());
        let cut_off = |peers: &[&str]| trust.with_peers(peers.iter().copied()).is_cut_off();
        assert!(!cut_off(&[]), "it is alone");
        assert!(!cut_off(&["a"]), "nobody has been asked");
        trust.unknown("a");
        assert!(!cut_off(&["a"]), "nobody was there");
        trust.refused("a", "no");
        assert!(cut_off(&["a"]));
        assert!(!cut_off(&["b"]), "that peer is gone");
        trust.agreed("b");
        assert!(!cut_off(&["a", "b"]), "one is enough");
        trust.unknown("b");
        assert!(cut_off(&["a", "b"]), "the peer that agreed is away");
        trust.agreed("b");
        assert!(!cut_off(&["a", "b"]), "the peer is back");
        let open = trust.opened();
        assert!(!cut_off(&["a"]), "somebody came in");
        drop(open);
        assert!(cut_off(&["a"]));
        trust.unknown("a");
        assert!(!cut_off(&["a"]), "whoever refused is there no more");
    }

    #[test]
    fn a_peer_that_trusted_once_is_told_from_one_that_never_did() {
        let trust = Trust::default();
        trust.agreed("a");
        trust.refused("a", "expired");
        trust.refused("b", "another authority");
        let found = trust.with_peers(["a", "b"].into_iter());
        let lost: Vec<bool> = found.distrusted.iter().map(|peer| peer.lost).collect();
        assert_eq!(lost, [true, false]);
    }

    #[test]
    fn addresses_that_come_and_go_take_bounded_room() {
        let trust = Trust::default();
        for peer in 0..2 * MOST {
            trust.agreed(&peer.to_string());
        }
        assert_eq!(trust.peers.lock().len(), MOST);
    }
}
