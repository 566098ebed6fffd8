use super::area::area;
use super::labels::{OUTCOME, REASON, labels};

area! {
    /// The metrics of discovered servers.
    DiscoveryMetrics {
        /// Observes the controller's pools.
        pub observe_pools: UpDownCounter(u64) []
            = "shoal.discovery.pools", "{pool}", "Pools that the controller makes of Kubernetes objects.";
        /// Observes refused objects.
        pub observe_refused: UpDownCounter(u64) [reason: DiscoveryRefusal]
            = "shoal.discovery.refused", "{object}", "Kubernetes objects that the controller refuses.";
        /// Observes whether this controller holds the Lease.
        pub observe_leader: Gauge(bool) []
            = "shoal.discovery.leader", "{controller}", "1 if this controller holds the Lease, 0 if not.";
        /// Observes when the pools were last found up to date or published, in seconds since the epoch;
        /// `None` before the first time.
        pub observe_last_success: Gauge(Option<u64>) []
            = "shoal.discovery.last_success", "s",
            "Unix time at which this leader last saw all pools published.";
        /// Counts a comparison of the plan with the published pools.
        pub reconciled: Counter [outcome: ReconcileOutcome]
            = "shoal.discovery.reconciles", "{reconcile}",
            "Times that the leader compared the Kubernetes objects with the published pools.";
    }
}

labels! {
    /// The outcome of comparing the pools with the published ones.
    ReconcileOutcome: OUTCOME {
        /// The leader published a change.
        Published = "published",
        /// The published pools were current.
        Unchanged = "unchanged",
        /// The leader could not read a Secret, or could not write the pools.
        Failed = "failed",
    }
}

labels! {
    /// Why the controller refuses an object: the reason in its Event.
    DiscoveryRefusal: REASON {
        /// The object's URL leads to a forbidden target.
        TargetNotAllowed = "TargetNotAllowed",
        /// An annotation of the object is invalid.
        InvalidAnnotation = "InvalidAnnotation",
        /// Your configuration, or an older object, has a pool of this name.
        NameTaken = "NameTaken",
        /// Older objects use up the limit on pools or bytes.
        LimitReached = "LimitReached",
        /// The object's token is not available.
        TokenUnavailable = "TokenUnavailable",
        /// The pool's configuration is invalid.
        PoolInvalid = "PoolInvalid",
    }
}
