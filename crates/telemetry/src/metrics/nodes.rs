//! The nodes of the cluster, and the lease that this one holds.

use std::time::Duration;

use super::definition::{Attribute, Kind, SHORT_SECONDS, definitions};
use super::instrument::{Counter, Factory, Histogram};
use super::labels::{OUTCOME, ROLE, STATE, label, labels};
use super::observed::{Observed, Registration, float};

definitions! {
    NODES = Kind::UpDownCounter, "shoal.node.seen", "{node}",
        "Nodes that this one sees, itself included.",
        [
            Attribute::one_of(ROLE, Role::VALUES),
            Attribute::one_of(STATE, NodeState::VALUES),
        ];
    READY = Kind::Gauge, "shoal.node.ready", "{node}",
        "1 while this node wants traffic, 0 while it does not.", [];
    ROLES = Kind::Gauge, "shoal.node.roles", "{node}",
        "Always 1, for each role that this node has.",
        [Attribute::one_of(ROLE, Role::VALUES)];
    CLOCK_SKEW = Kind::Gauge, "shoal.clock.skew", "s",
        "By how much the clock of this process differs at least from that of the linked process that is furthest from it; \
         nothing decides by it.", [];
    LEASE_HELD = Kind::Gauge, "shoal.lease.held", "{lease}",
        "1 while this node may own sessions, 0 while it may not.", [];
    LEASE_LEFT = Kind::Gauge, "shoal.lease.remaining", "s",
        "How long this node's lease still lasts.", [];
    RENEWALS = Kind::Histogram(SHORT_SECONDS), "shoal.lease.renewal.duration", "s",
        "Renewing this node's lease.",
        [Attribute::one_of(OUTCOME, LeaseOutcome::VALUES)];
    LAPSES = Kind::Counter, "shoal.lease.lapses", "{lease}",
        "Leases that ended before they could be renewed; the node's sessions went to others.", [];
    REDELIVERED = Kind::Counter, "shoal.route.redelivered", "{request}",
        "Requests that were delivered again because the session's owner changed.", [];
}

labels! {
    /// What a node does.
    Role {
        /// HTTP in, SSE out.
        Edge = "edge",
        /// Sessions.
        Session = "session",
        /// Tools.
        Worker = "worker",
    }
}

labels! {
    /// How this node sees another.
    NodeState {
        /// It announces itself and can be reached.
        Reachable = "reachable",
        /// It announces itself and cannot be reached.
        Unreachable = "unreachable",
        /// It has just started and takes nothing yet.
        Starting = "starting",
        /// It is stopping.
        Draining = "draining",
    }
}

labels! {
    /// How a renewal ended.
    LeaseOutcome {
        /// The lease lasts longer.
        Renewed = "renewed",
        /// It had ended before.
        Lapsed = "lapsed",
        /// It lived, and another node that could not reach this one has claimed from it.
        Contested = "contested",
        /// The store could not be asked.
        Failed = "failed",
    }
}

/// Nodes and leases.
#[derive(Debug)]
pub struct NodeMetrics {
    nodes: Observed,
    ready: Observed,
    roles: Observed,
    clock_skew: Observed,
    lease_held: Observed,
    lease_left: Observed,
    renewals: Histogram,
    lapses: Counter,
    redelivered: Counter,
}

impl NodeMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            nodes: factory.observed(&NODES),
            ready: factory.observed(&READY),
            roles: factory.observed(&ROLES),
            clock_skew: factory.observed(&CLOCK_SKEW),
            lease_held: factory.observed(&LEASE_HELD),
            lease_left: factory.observed(&LEASE_LEFT),
            renewals: factory.histogram(&RENEWALS),
            lapses: factory.counter(&LAPSES),
            redelivered: factory.counter(&REDELIVERED),
        }
    }

    /// How many nodes this one sees, by role and state; a node with several roles counts in each.
    pub fn observe_nodes(
        &self,
        read: impl Fn(&mut dyn FnMut(Role, NodeState, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.nodes.observe(move |to| {
            read(&mut |role: Role, state: NodeState, count| {
                let attributes = vec![label(ROLE, role.as_str()), label(STATE, state.as_str())];
                to(float(count), attributes);
            });
        })
    }

    /// Whether this node wants traffic; `None` once there is no such node.
    pub fn observe_ready(
        &self,
        read: impl Fn() -> Option<bool> + Send + Sync + 'static,
    ) -> Registration {
        self.ready.observe(move |to| {
            if let Some(ready) = read() {
                to(f64::from(u8::from(ready)), Vec::new());
            }
        })
    }

    /// By how much the clocks of peers differ; `None` while none is known.
    pub fn observe_clock_skew(
        &self,
        read: impl Fn() -> Option<Duration> + Send + Sync + 'static,
    ) -> Registration {
        self.clock_skew.observe(move |to| {
            if let Some(skew) = read() {
                to(skew.as_secs_f64(), Vec::new());
            }
        })
    }

    /// What this node does.
    pub fn observe_roles(
        &self,
        read: impl Fn(&mut dyn FnMut(Role)) + Send + Sync + 'static,
    ) -> Registration {
        self.roles.observe(move |to| {
            read(&mut |role: Role| to(1.0, vec![label(ROLE, role.as_str())]));
        })
    }

    /// How long the lease lasts; `None` while there is none.
    pub fn observe_lease(
        &self,
        read: impl Fn() -> Option<Duration> + Send + Sync + 'static,
    ) -> [Registration; 2] {
        let read = std::sync::Arc::new(read);
        let left = std::sync::Arc::clone(&read);
        [
            (self.lease_held).number(move || f64::from(u8::from(read().is_some()))),
            (self.lease_left).number(move || left().unwrap_or_default().as_secs_f64()),
        ]
    }

    /// A renewal is over.
    pub fn renewed(&self, duration: Duration, outcome: LeaseOutcome) {
        (self.renewals).record(duration, || [label(OUTCOME, outcome.as_str())]);
    }

    /// The lease ended before it could be renewed.
    pub fn lapsed(&self) {
        self.lapses.add(1, || []);
    }

    /// A request was delivered again.
    pub fn redelivered(&self) {
        self.redelivered.add(1, || []);
    }
}
