//! The rules of placement and of waiting by themselves, for simulations of many nodes in one thread.
//!
//! Nothing here has rules of its own: what is simulated is what nodes do.

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
use crate::view::{Rules, View};
use crate::{placement, rendezvous};

/// An edge that places sessions by what it has heard, at a time that the caller keeps.
pub struct Placer {
    me: NodeInfo,
    view: View,
    begun: Instant,
    config: MembersConfig,
}

impl Placer {
    /// An edge of this name that has heard of nobody.
    pub fn new(name: &str) -> Self {
        let me = node(name, false, 0);
        Self {
            view: View::alone(me.clone()),
            me,
            begun: Instant::now(),
            config: MembersConfig::default(),
        }
    }

    /// Reads the list of nodes from the store, so long after the edge began; times never fall.
    pub fn hear(&mut self, listed: Vec<NodeInfo>, at: Duration) {
        let rules = Rules {
            now: self.begun + at,
            keep_missing: self.config.keep_missing,
            announced_every: self.config.lease / crate::members::BEATS,
            peers: &NoPeers,
        };
        self.view = self.view.refreshed(listed, self.me.clone(), &rules);
    }

    /// Places a session that is opened now.
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

/// What a session node (or an edge) says of itself.
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

/// How often a node reads the list of nodes, when it holds so many.
pub fn look_every(nodes: usize) -> Duration {
    look(MembersConfig::default().refresh, nodes)
}

/// How often it reads them while somebody waits for one to come or go.
pub fn look_closely_every(nodes: usize) -> Duration {
    look(CLOSELY, nodes)
}

/// Who takes a session that nobody owns, of these nodes: where it stands in the list.
pub fn taker(session: &SessionId, nodes: &[NodeId]) -> Option<usize> {
    (0..nodes.len()).max_by_key(|at| rendezvous::weight(session, &nodes[*at]))
}

/// Over how long they look again who wait for the same node.
pub const SPREAD: Duration = crate::routed::SPREAD;

/// The pauses of who searches for an owner, one after the other.
pub struct Pauses(Backoff);

impl Default for Pauses {
    fn default() -> Self {
        let config = RoutingConfig::default();
        Self(Backoff::new(config.resolve_every, config.resolve_at_most))
    }
}

impl Pauses {
    /// The next one.
    pub fn next(&mut self, rng: &mut impl Rng) -> Duration {
        self.0.pause_by(rng)
    }
}
