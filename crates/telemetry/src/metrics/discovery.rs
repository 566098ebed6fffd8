use super::area::area;
use super::labels::{OUTCOME, REASON, labels};

area! {
    /// The metrics of discovered servers.
    DiscoveryMetrics {
        /// Observes the controller's pools.
        pub observe_pools: UpDownCounter(u64) []
            = "shoal.discovery.pools", "{pool}", "Pools made of Kubernetes objects.";
        /// Observes refused objects.
        pub observe_refused: UpDownCounter(u64) [reason: DiscoveryRefusal]
            = "shoal.discovery.refused", "{object}", "Refused Kubernetes objects.";
        /// Observes whether this controller holds the Lease.
        pub observe_leader: Gauge(bool) []
            = "shoal.discovery.leader", "{controller}", "1 if this controller holds the Lease, 0 if not.";
        /// Observes when the pools were last found up to date or published, in seconds since the epoch;
        /// `None` before the first time.
        pub observe_last_success: Gauge(Option<u64>) []
            = "shoal.discovery.last_success", "s",
            "Unix time when this leader last saw all pools published.";
        /// Counts a comparison of the plan with the published pools.
        pub reconciled: Counter [outcome: ReconcileOutcome]
            = "shoal.discovery.reconciles", "{reconcile}",
            "Comparisons of the Kubernetes objects with the published pools.";
    }
}

labels! {
    /// The outcome of comparing the pools with the published ones.
    ReconcileOutcome: OUTCOME {
        /// Leader published a change.
        Published = "published",
        /// Unchanged.
        Unchanged = "unchanged",
        /// Secret unreadable, or pools not written.
        Failed = "failed",
    }
}

labels! {
    /// Why the controller refuses an object: the reason in its Event.
    DiscoveryRefusal: REASON {
        /// Forbidden URL.
        TargetNotAllowed = "TargetNotAllowed",
        /// Invalid annotation.
        InvalidAnnotation = "InvalidAnnotation",
        /// By your configuration or an older object.
        NameTaken = "NameTaken",
        /// Older objects use up the limit on pools or bytes.
        LimitReached = "LimitReached",
        /// Token unavailable.
        TokenUnavailable = "TokenUnavailable",
        /// Invalid configuration.
        PoolInvalid = "PoolInvalid",
    }
}
