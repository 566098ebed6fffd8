use super::area::area;
use super::labels::{OUTCOME, labels};

area! {
    /// The metrics of the configuration file.
    ConfigurationMetrics {
        /// Counts a reload.
        pub reloaded: Counter [outcome: ReloadOutcome]
            = "shoal.config.reloads", "{reload}", "Reloads of the configuration file.";
        /// Observes when the configuration was last found usable, in seconds since the epoch; `None` if unknown.
        pub observe_last_success: Gauge(Option<u64>) []
            = "shoal.config.last_success", "s",
            "Unix time of the last usable configuration.";
    }
}

labels! {
    /// The outcome of a reload.
    ReloadOutcome: OUTCOME {
        /// The new settings or rules apply, some settings from the next start.
        Changed = "changed",
        /// The settings or rules are the same as before.
        Unchanged = "unchanged",
        /// Invalid: the old settings or rules stay.
        Refused = "refused",
    }
}
