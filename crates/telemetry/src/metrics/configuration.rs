//! The configuration file, which is reloaded while the process runs.

use super::area::area;
use super::labels::{OUTCOME, labels};

area! {
    /// Reading the configuration again.
    ConfigurationMetrics {
        /// The configuration was read again.
        pub reloaded: Counter [outcome: ReloadOutcome]
            = "shoal.config.reloads", "{reload}", "How often the configuration file was read again, and what came of it.";
        /// When the configuration was last found usable, in seconds since the epoch; `None` once nobody knows.
        pub observe_last_success: Gauge(Option<u64>) []
            = "shoal.config.last_success", "s",
            "When the configuration was last read and found usable, at the start or later, since the epoch.";
    }
}

labels! {
    /// The outcome of a reload.
    ReloadOutcome: OUTCOME {
        /// Settings changed, now or for the next start.
        Changed = "changed",
        /// The same settings as before.
        Unchanged = "unchanged",
        /// The file is invalid, and the old settings stay.
        Refused = "refused",
    }
}
