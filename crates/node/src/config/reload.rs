use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;

use super::Period;

settings! {
    /// Changes of the configuration file at run time.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Reload {
        /// Also reloads the file when it changes.
        pub watch: bool = false,
        /// How often Shoal checks the file for changes.
        pub watch_every: Period = Period::seconds(2),
        /// How long legacy sessions keep their old process or server session after their pool's `backend` has changed.
        pub sessions: Period = Period::seconds(300),
    }
}
