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
            = "shoal.node.seen", "{node}", "Nodes that this node sees, including itself.";
        /// Observes whether this node wants traffic; `None` after the node has ended.
        pub observe_ready: Gauge(Option<bool>) []
            = "shoal.node.ready", "{node}", "1 if this node wants traffic, 0 if not.";
        roles: Gauge(u64) [role: Role]
            = "shoal.node.roles", "{node}", "Always 1, for each role of this node.";
        /// Observes the clock difference to peers.
        pub observe_clock_skew: Gauge(Option<Duration>) []
            = "shoal.clock.skew", "s", "Largest clock difference to a linked process. The real one may be larger.";
        lease_held: Gauge(bool) []
            = "shoal.lease.held", "{lease}", "1 if this node may own sessions, 0 if not.";
        lease_left: Gauge(Duration) []
            = "shoal.lease.remaining", "s", "Time until this node's lease ends.";
        /// Records a lease renewal's duration.
        pub renewed: Histogram(SHORT_SECONDS) [outcome: LeaseOutcome]
            = "shoal.lease.renewal.duration", "s", "Time of the renewals of this node's lease.";
        /// Counts a lapsed lease.
        pub lapsed: Counter []
            = "shoal.lease.lapses", "{lease}",
            "Times that this node's lease expired, so that other nodes could take its sessions.";
        /// Counts a redelivered request.
        pub redelivered: Counter []
            = "shoal.route.redelivered", "{request}",
            "Requests that Shoal delivered again after their session's owner changed.";
    }
}

labels! {
    /// A role.
    Role: ROLE {
        /// Serves clients over HTTP.
        Edge = "edge",
        /// Owns legacy sessions.
        Session = "session",
        /// Runs tools.
        Worker = "worker",
    }
}

labels! {
    /// The state of a node, seen from this one.
    NodeState: STATE {
        /// The node is announced, and this node reaches it.
        Reachable = "reachable",
        /// The node is announced, but this node does not reach it.
        Unreachable = "unreachable",
        /// The node starts and is not ready yet.
        Starting = "starting",
        /// The node is stopping.
        Draining = "draining",
    }
}

labels! {
    /// The outcome of a renewal.
    LeaseOutcome: OUTCOME {
        /// The store extended the lease.
        Renewed = "renewed",
        /// The lease had ended before the renewal.
        Lapsed = "lapsed",
        /// The lease had not ended, but a node that could not reach this one has taken a session from it.
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
