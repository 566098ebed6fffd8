use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Period, settings};

settings! {
    /// The life of a legacy session (`initialize`, `Mcp-Session-Id`).
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    #[schemars(rename = "Session")]
    pub struct SessionSettings {
        /// How long an unused session lives.
        pub idle: Period = Period::seconds(30 * 60),
        /// How long a session without calls and streams stays in memory.
        pub passivate_after: Period = Period::seconds(30),
        /// No effect; the next release removes it.
        #[serde(skip_serializing)]
        #[schemars(extend("deprecated" = true))]
        pub doze_after: Option<Period> = None,
        /// How often Shoal looks for idle sessions.
        pub sweep_every: Period = Period::seconds(5),
        /// Maximum bytes of a value that tools keep in a session.
        pub state_value_bytes: usize = 16 * 1024,
        /// Maximum bytes of all keys and values of a session.
        pub state_bytes: usize = 64 * 1024,
        /// Maximum values of a session; 0 turns them off.
        pub state_keys: usize = 64,
    }
}
