//! The configuration file, which is read again while the process works.

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
    /// What came of reading the configuration again.
    ReloadOutcome: OUTCOME {
        /// Something is done otherwise from now on, or at the next start.
        Changed = "changed",
        /// It says what it said before.
        Unchanged = "unchanged",
        /// It cannot be used, and nothing is changed.
        Refused = "refused",
    }
}
