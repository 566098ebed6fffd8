//! `[session]`: the life of a legacy session.

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
        /// How long a session lives without being used.
        pub idle: Period = SessionConfig::default().idle.into(),
        /// How long a session without calls and streams stays in memory. Then it is written to the store and dropped
        /// from memory. Its next message loads it again.
        pub passivate_after: Period = SessionConfig::default().passivate_after.into(),
        /// Has no effect any more. The next release will not know it.
        #[serde(skip_serializing)]
        pub doze_after: Option<Period> = None,
        /// How often idle sessions and ended streams are looked for.
        pub sweep_every: Period = SessionConfig::default().sweep_every.into(),
        /// The bytes of one value that tools keep in a session, at most. What they keep is part of the session's
        /// record and lives as long as the session.
        pub state_value_bytes: usize = SessionConfig::default().state_value_bytes,
        /// The bytes of everything that tools keep in one session, keys and values, at most.
        pub state_bytes: usize = SessionConfig::default().state_bytes,
        /// The values that tools keep in one session, at most. With 0 they keep nothing.
        pub state_keys: usize = SessionConfig::default().state_keys,
    }
}
