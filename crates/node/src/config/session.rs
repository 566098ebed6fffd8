use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;
use shoal_session::SessionConfig;

use super::Period;

settings! {
    /// The life of a legacy session (`initialize`, `Mcp-Session-Id`).
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Session {
        /// How long an unused session lives.
        pub idle: Period = SessionConfig::default().idle.into(),
        /// How long a session without calls and streams stays in memory.
        pub passivate_after: Period = SessionConfig::default().passivate_after.into(),
        /// No effect; the next release removes it.
        #[serde(skip_serializing)]
        #[schemars(extend("deprecated" = true))]
        pub doze_after: Option<Period> = None,
        /// How often Shoal looks for idle sessions.
        pub sweep_every: Period = SessionConfig::default().sweep_every.into(),
        /// Maximum bytes of a value that tools keep in a session.
        pub state_value_bytes: usize = SessionConfig::default().state_value_bytes,
        /// Maximum bytes of all keys and values of a session.
        pub state_bytes: usize = SessionConfig::default().state_bytes,
        /// Maximum values of a session; 0 turns them off.
        pub state_keys: usize = SessionConfig::default().state_keys,
    }
}
