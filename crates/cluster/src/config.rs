//! Settings of cluster membership and of routing to session owners.

use std::time::Duration;

use shoal_ports::settings;

settings! {
    /// How a node is kept in the cluster, and how it finds the others.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct MembersConfig {
        /// How long the node owns its sessions without renewing its lease; it renews, and announces itself,
        /// at a third of that. An announcement lives as long as a lease.
        pub lease: Duration = Duration::from_secs(6),
        /// How often the nodes are read from the store when no news asks for it sooner; with more than 100
        /// nodes, less often in proportion.
        pub refresh: Duration = Duration::from_secs(1),
        /// How long a node that is no longer announced can still be addressed as the owner of its sessions;
        /// nothing new is placed there. Spans a store that comes back empty.
        pub keep_missing: Duration = Duration::from_secs(6),
        /// How long a node that could not be reached is asked last.
        pub suspicion: Duration = Duration::from_secs(1),
    }
}

settings! {
    /// How messages find the owners of their sessions.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RoutingConfig {
        /// How long a message, or a stream, waits for its session to have an owner that can be reached. Longer
        /// than a lease, or a node's death is seen by its clients.
        pub patience: Duration = Duration::from_secs(30),
        /// The first pause before a session's owner is looked up again; each further one is twice as long,
        /// less a random part.
        pub resolve_every: Duration = Duration::from_millis(100),
        /// The longest such pause; it ends sooner when a node goes.
        pub resolve_at_most: Duration = Duration::from_secs(1),
        /// How long the store may take to say who the owner is.
        pub lookup_within: Duration = Duration::from_secs(2),
        /// Owners that are looked up at the same time; others wait, within `lookup_within`.
        pub lookups_at_once: usize = 64,
        /// Owners that are remembered.
        pub cached_owners: usize = 100_000,
        /// How long an owner is believed without being looked up; longer while the store is away.
        pub cached_for: Duration = Duration::from_secs(10 * 60),
        /// How long it is remembered after that, for while the store is away: as long as a session lives without
        /// being used.
        pub cached_idle: Duration = Duration::from_secs(30 * 60),
        /// How long a new session waits for a node that can be reached and takes sessions.
        pub open_within: Duration = Duration::from_secs(5),
        /// Nodes that are asked to open one session, before it waits.
        pub open_attempts: usize = 3,
        /// When refused callers come back.
        pub retry_after: Duration = Duration::from_secs(1),
    }
}
