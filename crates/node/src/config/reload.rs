//! `[reload]`: changes of the configuration in a running process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;

use super::Period;

settings! {
    /// Changes of the configuration file at run time.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Reload {
        /// Also reloads when the file changes.
        pub watch: bool = false,
        /// How often Shoal checks the file.
        pub watch_every: Period = Period::seconds(2),
        /// How long legacy sessions may keep their process or server session of a changed pool.
        pub sessions: Period = Period::seconds(300),
    }
}
