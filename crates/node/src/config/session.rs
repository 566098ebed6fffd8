//! `[session]`: the life of a legacy session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_session::SessionConfig;

use super::Period;

/// The life of a legacy session (`initialize`, `Mcp-Session-Id`).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Session {
    /// How long a session lives without being used.
    pub idle: Period,
    /// How long a session without calls and streams stays in memory before it is written to the store
    /// and let go; its next message brings it back.
    pub passivate_after: Period,
    /// How often idle sessions and ended streams are looked for.
    pub sweep_every: Period,
}

impl Default for Session {
    fn default() -> Self {
        let session = SessionConfig::default();
        Self {
            idle: session.idle.into(),
            passivate_after: session.passivate_after.into(),
            sweep_every: session.sweep_every.into(),
        }
    }
}
