//! Plans the addresses to which a worker is linked. Uses no network.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use shoal_ports::{NodeId, NodeInfo};
use tokio::time::Instant;

use super::JoinConfig;

pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(super) struct Joined {
    pub(super) address: String,
    pub(super) node: Option<NodeId>,
    pub(super) connected: bool,
    pub(super) nodes: Vec<NodeInfo>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) keep: Vec<bool>,
    pub(super) start: Vec<String>,
}

pub(super) struct Roll {
    config: JoinConfig,
    me: Option<NodeId>,
    nodes: HashMap<NodeId, KnownNode>,
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

    /// `told` lists the nodes that this process knows as a member of the cluster.
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
            let seeds = self.config.cluster.join.iter().filter(|seed| !joined(seed));
            start.extend(seeds.cloned());
        }
        start.sort_unstable();
        start.dedup();
        Plan { keep, start }
    }

    /// Forgets nodes that were not reported for a while, unless nobody reports any.
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
        // Nodes that are neither edges nor session nodes dispatch no calls.
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
            if linked.contains(id) {
                known.told = now;
            }
            now.duration_since(known.told) < forget_after
        });
    }

    fn keep(&self, joins: &[Joined]) -> Vec<bool> {
        let mut linked = HashSet::new();
        let mut keep = vec![false; joins.len()];
        // Prefer a node's own address to a seed.
        let (own, other): (Vec<_>, Vec<_>) =
            (0..joins.len()).partition(|at| self.is_address(&joins[*at].address));
        // Prefer open links, because two links to one node would keep replacing each other.
        let up = |at: &usize| joins[*at].connected;
        let (up, down): (Vec<_>, Vec<_>) = own.into_iter().chain(other).partition(up);
        for at in up.into_iter().chain(down) {
            let join = &joins[at];
            keep[at] = match &join.node {
                Some(node) if Some(node) == self.me.as_ref() => false,
                Some(node) if join.connected => linked.insert(node.clone()),
                Some(node) if linked.contains(node) => false,
                _ => {
                    self.is_address(&join.address)
                        || self.config.cluster.join.contains(&join.address)
                }
            };
        }
        keep
    }

    fn is_address(&self, address: &str) -> bool {
        self.nodes.values().any(|known| known.address == address)
    }

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
