//! To which addresses a worker is joined: pure, so that it can be tested without a network.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use shoal_ports::{NodeId, NodeInfo};
use tokio::time::Instant;

use super::JoinConfig;

/// How often the plan is revised when nothing asks for it sooner.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A link as it is now.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    pub(super) address: String,
    /// The node there, once it has been reached.
    pub(super) node: Option<NodeId>,
    pub(super) connected: bool,
    /// The nodes that it tells of.
    pub(super) nodes: Vec<NodeInfo>,
}

/// What to change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// For each link that there is, whether it stays.
    pub(super) keep: Vec<bool>,
    /// Addresses to join.
    pub(super) start: Vec<String>,
}

/// The nodes that somebody has told of.
pub(super) struct Roll {
    config: JoinConfig,
    me: Option<NodeId>,
    nodes: HashMap<NodeId, KnownNode>,
    /// Since when no node can be reached.
    alone_since: Option<Instant>,
    begun: bool,
}

struct KnownNode {
    address: String,
    told: Instant,
}

impl Roll {
    pub(super) fn new(config: JoinConfig, me: Option<NodeId>) -> Self {
        Self {
            config,
            me,
            nodes: HashMap::new(),
            alone_since: None,
            begun: false,
        }
    }

    /// What to change, given the links and what the own node knows (`told`).
    pub(super) fn revise(
        &mut self,
        now: Instant,
        joins: &[Joined],
        told: Option<Vec<NodeInfo>>,
    ) -> Plan {
        self.hear(now, joins, told);
        let keep = self.keep(joins);
        let mut start = self.uncovered(joins, &keep);
        if self.needs_seeds(now, joins) {
            let joined = |seed: &String| joins.iter().any(|join| join.address == *seed);
            let seeds = self.config.seeds.iter().filter(|seed| !joined(seed));
            start.extend(seeds.cloned());
        }
        start.sort_unstable();
        start.dedup();
        Plan { keep, start }
    }

    /// Enters the nodes that are told of, and forgets those that nobody has told of for a while. While
    /// nobody tells anything, nobody is forgotten.
    fn hear(&mut self, now: Instant, joins: &[Joined], told: Option<Vec<NodeInfo>>) {
        let tellers = joins
            .iter()
            .filter(|join| join.connected && !join.nodes.is_empty());
        let lists: Vec<&[NodeInfo]> = tellers
            .map(|join| join.nodes.as_slice())
            .chain(told.as_deref())
            .collect();
        if lists.is_empty() {
            self.nodes.values_mut().for_each(|known| known.told = now);
            return;
        }
        let heard = lists.into_iter().flatten();
        // Only these dispatch calls.
        let heard = heard.filter(|node| node.edge || node.session);
        for node in heard.filter(|node| Some(&node.id) != self.me.as_ref()) {
            let known = KnownNode {
                address: node.address.clone(),
                told: now,
            };
            self.nodes.insert(node.id.clone(), known);
        }
        let linked: HashSet<&NodeId> = joins
            .iter()
            .filter(|join| join.connected)
            .filter_map(|join| join.node.as_ref())
            .collect();
        let forget_after = self.config.forget_after;
        self.nodes.retain(|id, known| {
            // A link that is up tells enough.
            if linked.contains(id) {
                known.told = now;
            }
            now.duration_since(known.told) < forget_after
        });
    }

    /// Which links stay: one for each node, and those that may yet lead to one.
    fn keep(&self, joins: &[Joined]) -> Vec<bool> {
        let mut linked = HashSet::new();
        let mut keep = vec![false; joins.len()];
        // A node's own address comes before a seed that happens to lead there.
        let (own, other): (Vec<_>, Vec<_>) =
            (0..joins.len()).partition(|at| self.is_address(&joins[*at].address));
        // What is up comes before what is dialled: a second link to a node would replace the first there, and be replaced
        // by it in turn.
        let up = |at: &usize| joins[*at].connected;
        let (up, down): (Vec<_>, Vec<_>) = own.into_iter().chain(other).partition(up);
        for at in up.into_iter().chain(down) {
            let join = &joins[at];
            keep[at] = match &join.node {
                Some(node) if Some(node) == self.me.as_ref() => false,
                Some(node) if join.connected => linked.insert(node.clone()),
                Some(node) if linked.contains(node) => false,
                _ => self.is_address(&join.address) || self.config.seeds.contains(&join.address),
            };
        }
        keep
    }

    fn is_address(&self, address: &str) -> bool {
        self.nodes.values().any(|known| known.address == address)
    }

    /// Addresses of nodes to which no link that stays leads.
    fn uncovered(&self, joins: &[Joined], keep: &[bool]) -> Vec<String> {
        let leads = |join: &Joined, id: &NodeId, known: &KnownNode| {
            join.address == known.address || (join.connected && join.node.as_ref() == Some(id))
        };
        let covered = |id: &NodeId, known: &KnownNode| {
            let mut kept = joins.iter().zip(keep).filter(|(_, keep)| **keep);
            kept.any(|(join, _)| leads(join, id, known))
        };
        let uncovered = self.nodes.iter().filter(|(id, known)| !covered(id, known));
        uncovered.map(|(_, known)| known.address.clone()).collect()
    }

    fn needs_seeds(&mut self, now: Instant, joins: &[Joined]) -> bool {
        let first = !std::mem::replace(&mut self.begun, true);
        if joins.iter().any(|join| join.connected) {
            self.alone_since = None;
            return false;
        }
        let since = *self.alone_since.get_or_insert(now);
        first || now.duration_since(since) >= self.config.reseed_after
    }
}

#[cfg(test)]
mod tests;
