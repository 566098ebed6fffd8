use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shoal_ports::{NodeId, NodeInfo, NodeTag, SessionId};
use tokio::time::Instant;

use crate::peers::{PeerNode, Peers};
use crate::rendezvous;

/// An immutable view of the nodes, including this one.
#[derive(Clone)]
pub struct View {
    me: NodeId,
    nodes: Vec<Node>,
    generation: u64,
}

/// A node in a [`View`].
#[derive(Clone)]
pub struct Node {
    info: NodeInfo,
    tag: NodeTag,
    missing_since: Option<Instant>,
    counted_since: Instant,
    pub(crate) peer: Arc<PeerNode>,
}

pub(crate) struct PresenceRules<'a> {
    pub(crate) now: Instant,
    pub(crate) keep_missing: Duration,
    pub(crate) announced_every: Duration,
    pub(crate) peers: &'a dyn Peers,
}

impl Node {
    fn new(info: NodeInfo, peer: Arc<PeerNode>, now: Instant) -> Self {
        Self {
            tag: info.id.tag(),
            info,
            missing_since: None,
            counted_since: now,
            peer,
        }
    }

    /// Returns the last announcement.
    pub fn info(&self) -> &NodeInfo {
        &self.info
    }

    /// Whether the node's announcement is valid. A missing node may still own sessions.
    pub fn is_present(&self) -> bool {
        self.missing_since.is_none()
    }

    /// Whether the last attempt to reach the node succeeded. True before the first attempt.
    pub fn is_reachable(&self) -> bool {
        !self.peer.is_broken()
    }

    pub(crate) fn takes_sessions(&self) -> bool {
        self.info.session && !self.info.draining && self.is_present()
    }

    pub(crate) fn load(&self) -> u64 {
        let placed = self.peer.placed.load(Ordering::Relaxed);
        let said = self.info.sessions.saturating_add(self.info.in_flight);
        said.saturating_add(placed)
    }

    /// Sessions that this node placed on the announced node count until the announced numbers include them, for at
    /// most one interval of announcements.
    fn announced(&self, info: NodeInfo, rules: &PresenceRules<'_>) -> Self {
        let told = info != self.info;
        let counted = rules.now.duration_since(self.counted_since) >= rules.announced_every;
        if told || counted {
            self.peer.placed.store(0, Ordering::Relaxed);
        }
        Self {
            info,
            tag: self.tag,
            missing_since: None,
            counted_since: if told || counted {
                rules.now
            } else {
                self.counted_since
            },
            peer: Arc::clone(&self.peer),
        }
    }

    fn missed(&self, rules: &PresenceRules<'_>) -> Option<Self> {
        let since = self.missing_since.unwrap_or(rules.now);
        let stays = rules.now.duration_since(since) < rules.keep_missing;
        stays.then(|| Self {
            missing_since: Some(since),
            ..self.clone()
        })
    }
}

impl View {
    pub(crate) fn alone(me: NodeInfo) -> Self {
        Self {
            me: me.id.clone(),
            nodes: vec![Node::new(me, Arc::new(PeerNode::new(None)), Instant::now())],
            generation: 0,
        }
    }

    /// Returns this node's ID.
    pub fn me(&self) -> &NodeId {
        &self.me
    }

    /// Returns the nodes, by ID.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// Returns a node by its ID.
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.info.id.cmp(id));
        at.ok().map(|at| &self.nodes[at])
    }

    /// Returns the present node whose session IDs have this tag.
    pub(crate) fn tagged(&self, tag: NodeTag) -> Option<&Node> {
        self.nodes
            .iter()
            .find(|node| node.tag == tag && node.is_present())
    }

    /// Changes when nodes come, go or drain, but not with their load.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Equal views give the same node.
    pub(crate) fn taker(&self, session: &SessionId, may: impl Fn(&Node) -> bool) -> Option<&Node> {
        self.nodes
            .iter()
            .filter(|node| node.takes_sessions() && may(node))
            .max_by_key(|node| rendezvous::weight(session, &node.info.id))
    }

    /// In the new view, `me` replaces this node's entry.
    pub(crate) fn refreshed(
        &self,
        listed: Vec<NodeInfo>,
        me: NodeInfo,
        rules: &PresenceRules<'_>,
    ) -> Self {
        let mut before: HashMap<&NodeId, &Node> = self
            .nodes
            .iter()
            .map(|node| (&node.info.id, node))
            .collect();
        let others = listed.into_iter().filter(|info| info.id != self.me);
        let mut nodes: Vec<Node> = Vec::with_capacity(self.nodes.len() + 1);
        for info in others.chain([me]) {
            let known = before.remove(&info.id);
            nodes.push(match known {
                Some(node) if node.info.address == info.address => node.announced(info, rules),
                _ => Node::new(info.clone(), self.meet(&info, rules.peers), rules.now),
            });
        }
        nodes.extend(before.values().filter_map(|node| node.missed(rules)));
        nodes.sort_unstable_by(|one, other| one.info.id.cmp(&other.info.id));
        nodes.dedup_by(|one, other| one.info.id == other.info.id);
        let changed = !self.places(&nodes);
        Self {
            me: self.me.clone(),
            generation: self.generation + u64::from(changed),
            nodes,
        }
    }

    fn meet(&self, info: &NodeInfo, peers: &dyn Peers) -> Arc<PeerNode> {
        let gateways = (info.id != self.me && info.session).then(|| peers.connect(info));
        Arc::new(PeerNode::new(gateways))
    }

    fn places(&self, nodes: &[Node]) -> bool {
        let place = |node: &Node| (node.is_present(), node.info.session, node.info.draining);
        self.nodes.len() == nodes.len()
            && self
                .nodes
                .iter()
                .zip(nodes)
                .all(|(one, other)| one.info.id == other.info.id && place(one) == place(other))
    }
}

#[cfg(test)]
pub(crate) mod tests;
