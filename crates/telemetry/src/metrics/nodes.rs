//! The nodes of the cluster, and the lease that this one holds.

use std::sync::Arc;
use std::time::Duration;

use super::Registration;
use super::area::area;
use super::definition::SHORT_SECONDS;
use super::labels::{OUTCOME, ROLE, STATE, labels};

area! {
    /// The metrics of nodes and leases.
    NodeMetrics {
        /// Observes how many nodes this one sees, by role and state. A node with several roles counts
        /// in each.
        pub observe_nodes: UpDownCounter(u64) [role: Role, state: NodeState]
            = "shoal.node.seen", "{node}", "Nodes that this node sees, including itself.";
        /// Observes whether this node wants traffic; `None` after the node has ended.
        pub observe_ready: Gauge(Option<bool>) []
            = "shoal.node.ready", "{node}", "1 if this node wants traffic, else 0.";
        roles: Gauge(u64) [role: Role]
            = "shoal.node.roles", "{node}", "Always 1, for each role of this node.";
        /// Observes the clock difference to peers; `None` while it is unknown.
        pub observe_clock_skew: Gauge(Option<Duration>) []
            = "shoal.clock.skew", "s",
            "Lower bound of the largest clock difference to a linked process.";
        lease_held: Gauge(bool) []
            = "shoal.lease.held", "{lease}", "1 if this node may own sessions, else 0.";
        lease_left: Gauge(Duration) []
            = "shoal.lease.remaining", "s", "Remaining time of this node's lease.";
        /// Records how long a lease renewal took.
        pub renewed: Histogram(SHORT_SECONDS) [outcome: LeaseOutcome]
            = "shoal.lease.renewal.duration", "s", "Lease renewals.";
        /// Counts a lease that ended before its renewal.
        pub lapsed: Counter []
            = "shoal.lease.lapses", "{lease}",
            "Leases that expired; other nodes took the sessions.";
        /// Counts a request that was delivered again.
        pub redelivered: Counter []
            = "shoal.route.redelivered", "{request}",
            "Requests delivered again after a change of owner.";
    }
}

labels! {
    /// A role.
    Role: ROLE {
        /// Serves clients over HTTP.
        Edge = "edge",
        /// Holds sessions.
        Session = "session",
        /// Runs tools.
        Worker = "worker",
    }
}

labels! {
    /// The state of a node, seen from this one.
    NodeState: STATE {
        /// Announced and reachable.
        Reachable = "reachable",
        /// Announced but unreachable.
        Unreachable = "unreachable",
        /// Starting, and not ready yet.
        Starting = "starting",
        /// Stopping.
        Draining = "draining",
    }
}

labels! {
    /// The outcome of a renewal.
    LeaseOutcome: OUTCOME {
        /// The lease was extended.
        Renewed = "renewed",
        /// The lease had ended before the renewal.
        Lapsed = "lapsed",
        /// The lease was valid, but another node that could not reach this one has claimed sessions from it.
        Contested = "contested",
        /// The store did not answer.
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
