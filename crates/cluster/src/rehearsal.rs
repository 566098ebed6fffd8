//! The real rules of placement and waiting, for simulations of many nodes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use rand::Rng;
use shoal_ports::{Backoff, NodeId, NodeInfo, SessionId};
use shoal_rpc::Sight;
use tokio::time::Instant;

use crate::config::{MembersConfig, RoutingConfig};
use crate::members::roster::{CLOSELY, look_every as look};
use crate::peers::{PeerGateways, Peers};
use crate::testing::Nowhere;
use crate::view::{PresenceRules, View};
use crate::{placement, rendezvous};

/// An edge that places sessions like a real one, on the caller's clock.
pub struct Placer {
    me: NodeInfo,
    view: View,
    begun: Instant,
    config: MembersConfig,
}

impl Placer {
    /// Makes an edge that knows no nodes.
    pub fn new(name: &str) -> Self {
        let me = node(name, false, 0);
        Self {
            view: View::alone(me.clone()),
            me,
            begun: Instant::now(),
            config: MembersConfig::default(),
        }
    }

    /// Takes the list that the edge reads at `at` after its start. Times must not decrease.
    pub fn hear(&mut self, listed: Vec<NodeInfo>, at: Duration) {
        let rules = PresenceRules {
            now: self.begun + at,
            keep_missing: self.config.keep_missing,
            announced_every: self.config.lease / crate::members::BEATS,
            peers: &NoPeers,
        };
        self.view = self.view.refreshed(listed, self.me.clone(), &rules);
    }

    /// Chooses the node for a new session.
    pub fn place(&self, rng: &mut impl Rng) -> Option<NodeId> {
        let node = placement::choose(&self.view, |_| true, rng)?;
        node.peer.placed.fetch_add(1, Ordering::Relaxed);
        Some(node.info().id.clone())
    }
}

struct NoPeers;

#[async_trait]
impl Peers for NoPeers {
    fn connect(&self, _: &NodeInfo) -> PeerGateways {
        PeerGateways {
            own: Arc::new(Nowhere),
            relay: Arc::new(Nowhere),
        }
    }

    async fn look_for(&self, _: &NodeInfo) -> Sight {
        Sight::Unknown
    }
}

/// Makes the announcement of a session node or an edge.
pub fn node(name: &str, session: bool, sessions: u64) -> NodeInfo {
    NodeInfo {
        id: NodeId::new(name),
        address: name.to_owned(),
        session,
        edge: !session,
        draining: false,
        starting: false,
        pools: Vec::new(),
        sessions,
        in_flight: 0,
        version: String::new(),
    }
}

/// Returns the interval at which an edge reads the list of so many nodes.
pub fn look_every(nodes: usize) -> Duration {
    look(MembersConfig::default().refresh, nodes)
}

/// Like [`look_every`], while a request waits for a node.
pub fn look_closely_every(nodes: usize) -> Duration {
    look(CLOSELY, nodes)
}

/// Returns the index of the node that takes a session without an owner.
pub fn taker(session: &SessionId, nodes: &[NodeId]) -> Option<usize> {
    (0..nodes.len()).max_by_key(|at| rendezvous::weight(session, &nodes[*at]))
}

/// Time over which waiting requests spread their retries.
pub const SPREAD: Duration = crate::routed::SPREAD;

/// The pauses in a search for an owner.
pub struct Pauses(Backoff);

impl Default for Pauses {
    fn default() -> Self {
        let config = RoutingConfig::default();
        Self(Backoff::new(config.resolve_every, config.resolve_at_most))
    }
}

impl Pauses {
    /// Returns the next pause.
    pub fn next(&mut self, rng: &mut impl Rng) -> Duration {
        self.0.pause_by(rng)
    }
}
