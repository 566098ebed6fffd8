//! The times and limits of a node's part in the cluster.

use std::time::Duration;

/// How a node is kept in the cluster, and how it finds the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersConfig {
    /// How long the node owns its sessions without renewing its lease; it renews, and announces itself,
    /// at a third of that. An announcement lives as long as a lease. Default: 6 s.
    pub lease: Duration,
    /// How often the nodes are read from the store when no news asks for it sooner; with more than 100
    /// nodes, less often in proportion. Default: 1 s.
    pub refresh: Duration,
    /// How long a node that is no longer announced can still be addressed as the owner of its sessions;
    /// nothing new is placed there. Spans a store that comes back empty. Default: 6 s.
    pub keep_missing: Duration,
    /// How long a node that could not be reached is asked last. Default: 1 s.
    pub suspicion: Duration,
}

impl Default for MembersConfig {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(6),
            refresh: Duration::from_secs(1),
            keep_missing: Duration::from_secs(6),
            suspicion: Duration::from_secs(1),
        }
    }
}

/// How messages find the owners of their sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingConfig {
    /// How long a message, or a stream, waits for its session to have an owner that can be reached. Longer
    /// than a lease, or a node's death is seen by its clients. Default: 30 s.
    pub patience: Duration,
    /// The first pause before a session's owner is looked up again; each further one is twice as long,
    /// less a random part. Default: 100 ms.
    pub resolve_every: Duration,
    /// The longest such pause; it ends sooner when a node goes. Default: 2 s.
    pub resolve_at_most: Duration,
    /// How long the store may take to say who the owner is. Default: 2 s.
    pub lookup_within: Duration,
    /// Owners that are looked up at the same time; others wait, within `lookup_within`. Default: 64.
    pub lookups_at_once: usize,
    /// Owners that are remembered. Default: 100 000.
    pub cached_owners: usize,
    /// How long an owner is believed without being looked up; longer while the store is away. Default:
    /// 10 min.
    pub cached_for: Duration,
    /// How long it is remembered after that, for while the store is away: as long as a session lives without
    /// being used. Default: 30 min.
    pub cached_idle: Duration,
    /// Nodes that are asked to open one session. Default: 3.
    pub open_attempts: usize,
    /// When refused callers come back. Default: 1 s.
    pub retry_after: Duration,
}

impl Default for RoutingConfig {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
            resolve_every: Duration::from_millis(100),
            resolve_at_most: Duration::from_secs(2),
            lookup_within: Duration::from_secs(2),
            lookups_at_once: 64,
            cached_owners: 100_000,
            cached_for: Duration::from_secs(10 * 60),
            cached_idle: Duration::from_secs(30 * 60),
            open_attempts: 3,
            retry_after: Duration::from_secs(1),
        }
    }
}
