//! `[reload]`: changes of the configuration while the process works.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;

use super::Period;

settings! {
    /// Changes of the configuration file while the process works.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Reload {
        /// Reads the file again whenever it has changed, too.
        pub watch: bool = false,
        /// How often to look whether it has. It is read when it looks the same twice in a row.
        pub watch_every: Period = Period::seconds(2),
        /// How long a legacy session may keep a process (`isolation = "session"`), or a session at a server behind a URL, of a
        /// pool that was changed. Its calls go there until it ends, or this is over.
        pub sessions: Period = Period::seconds(300),
    }
}
