use std::sync::Arc;
use std::time::Duration;

use super::Registration;
use super::area::area;
use super::definition::SHORT_SECONDS;
use super::labels::{OUTCOME, ROLE, STATE, labels};

area! {
    /// The metrics of nodes and leases.
    NodeMetrics {
        /// Observes how many nodes this one sees. A node with several roles counts in each.
        pub observe_nodes: UpDownCounter(u64) [role: Role, state: NodeState]
            = "shoal.node.seen", "{node}", "Nodes that this one sees, including itself.";
        /// Observes whether this node wants traffic; `None` after the node has ended.
        pub observe_ready: Gauge(Option<bool>) []
            = "shoal.node.ready", "{node}", "1 if this node is ready for traffic, 0 if not.";
        roles: Gauge(u64) [role: Role]
            = "shoal.node.roles", "{node}", "Always 1, for each role of this node.";
        /// Observes the clock difference to peers.
        pub observe_clock_skew: Gauge(Option<Duration>) []
            = "shoal.clock.skew", "s", "Largest known clock difference to a linked process.";
        lease_held: Gauge(bool) []
            = "shoal.lease.held", "{lease}", "1 if this node may own sessions, 0 if not.";
        lease_left: Gauge(Duration) []
            = "shoal.lease.remaining", "s", "Time left of this node's lease.";
        /// Records a lease renewal's duration.
        pub renewed: Histogram(SHORT_SECONDS) [outcome: LeaseOutcome]
            = "shoal.lease.renewal.duration", "s", "Time of lease renewals.";
        /// Counts a lapsed lease.
        pub lapsed: Counter []
            = "shoal.lease.lapses", "{lease}",
            "Expired leases: other nodes could take the sessions.";
        /// Counts a redelivered request.
        pub redelivered: Counter []
            = "shoal.route.redelivered", "{request}",
            "Requests delivered again to a new owner.";
    }
}

labels! {
    /// A role.
    Role: ROLE {
        /// Edge.
        Edge = "edge",
        /// Session.
        Session = "session",
        /// Worker.
        Worker = "worker",
    }
}

labels! {
    /// The state of a node, seen from this one.
    NodeState: STATE {
        /// Reachable.
        Reachable = "reachable",
        /// Announced, but not reached.
        Unreachable = "unreachable",
        /// Starting.
        Starting = "starting",
        /// Draining.
        Draining = "draining",
    }
}

labels! {
    /// The outcome of a renewal.
    LeaseOutcome: OUTCOME {
        /// Renewed.
        Renewed = "renewed",
        /// The lease had ended.
        Lapsed = "lapsed",
        /// A node that could not reach this one took a session before the lease ended.
        Contested = "contested",
        /// No answer from the store.
        Failed = "failed",
    }
}

impl NodeMetrics {
    /// Observes the roles of this node.
    pub fn observe_roles(
        &self,
        read: impl Fn(&mut dyn FnMut(Role)) + Send + Sync + 'static,
    ) -> Registration {
        self.roles(move |to| read(&mut |role| to(role, 1)))
    }

    /// Observes the remaining time of the lease.
    pub fn observe_lease(
        &self,
        read: impl Fn() -> Option<Duration> + Send + Sync + 'static,
    ) -> [Registration; 2] {
        let read = Arc::new(read);
        let left = Arc::clone(&read);
        [
            self.lease_held(move || read().is_some()),
            self.lease_left(move || left().unwrap_or_default()),
        ]
    }
}
