use std::time::Duration;

use shoal_ports::{CallSettings, ClusterSettings, settings};

settings! {
    /// Settings of cluster membership: leases, announcements and unreachable nodes.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct MembersConfig {
        /// How long the node owns its sessions after it has renewed its lease. The node renews the lease, and announces
        /// itself, every third of this time. An announcement lasts as long as a lease.
        pub lease: Duration = Duration::from_secs(6),
        /// How often the node reads the list of nodes from the store, besides reads on demand. With more than 100
        /// nodes, the interval grows in proportion.
        pub refresh: Duration = Duration::from_secs(1),
        /// How long messages still go to a session owner whose announcement is missing, for example after the store
        /// lost its data. The node gets no new sessions during this time.
        pub keep_missing: Duration = Duration::from_secs(6),
        /// How long a node is the last choice after an attempt to reach it has failed.
        pub suspicion: Duration = Duration::from_secs(1),
    }
}

settings! {
    /// Settings for routing messages to session owners.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RoutingConfig {
        /// The cluster. If `patience` is shorter than a lease, clients notice the death of a node.
        pub cluster: ClusterSettings = ClusterSettings::default(),
        /// Calls.
        pub calls: CallSettings = CallSettings::default(),
        /// First pause before the node looks up a session's owner again. Each further pause is twice as long, minus a
        /// random part.
        pub resolve_every: Duration = Duration::from_millis(100),
        /// Maximum pause between two lookups. The pause ends early when a node leaves.
        pub resolve_at_most: Duration = Duration::from_secs(1),
        /// Maximum time to look up an owner in the store, including the wait for a free lookup.
        pub lookup_within: Duration = Duration::from_secs(2),
        /// Maximum concurrent lookups of owners. Further lookups wait, within `lookup_within`.
        pub lookups_at_once: usize = 64,
        /// Maximum owners in the cache.
        pub cached_owners: usize = 100_000,
        /// How long the node uses a cached owner without a lookup. While the store is unreachable, the node uses older
        /// entries too.
        pub cached_for: Duration = Duration::from_secs(10 * 60),
        /// How much longer the cache keeps an owner, for use while the store is unreachable. Set it to the idle time of
        /// sessions.
        pub cached_idle: Duration = Duration::from_secs(30 * 60),
        /// How long a new session waits for a reachable node that takes sessions.
        pub open_within: Duration = Duration::from_secs(5),
        /// Maximum nodes that the node asks in turn to open a session before it waits.
        pub open_attempts: usize = 3,
    }
}
