//! What there is to say of a server, whatever carries its messages.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::ListScope;

use super::binding::Binding;

/// In which era a server is spoken to.
// Requests of servers to clients exist only in the legacy era. Tools that ask by `InputRequiredResult`, which exists only in
// the modern one, are called over a modern connection to the same server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Era")]
pub enum EraChoice {
    /// Legacy if supported (HTTP: with sessions), modern for tools that ask by `InputRequiredResult`.
    #[default]
    Auto,
    /// 2025-11-25 and before.
    Legacy,
    /// 2026-07-28.
    Modern,
}

/// How connections to a server are opened and kept.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// In which era.
    pub(crate) era: EraChoice,
    /// For whom a connection is that callers share.
    pub(crate) shared: Binding,
    /// Whether legacy sessions have connections of their own, at a legacy server.
    pub(crate) sessions_have_own: bool,
    /// Sessions that may have a connection of their own at once.
    pub(crate) sessions: usize,
    /// After how long without a call a session's connection is closed.
    pub(crate) session_idle: Duration,
    /// How long the handshake may take.
    pub(crate) start_timeout: Duration,
    /// How long a server may say nothing to `initialize` before it is sent `server/discover` too.
    pub(crate) probe_timeout: Duration,
    /// The pause before the first new attempt; it doubles with each failure in a row.
    pub(crate) restart_delay: Duration,
    /// The longest of these pauses.
    pub(crate) max_restart_delay: Duration,
    /// The headers of clients' requests that its calls bring along, in lower case.
    pub(crate) headers: Vec<Arc<str>>,
    /// Whose the server's lists are.
    pub(crate) lists: ListScope,
    /// The longest of these pauses that a call of a session waits for; else it is refused at once, since it may go elsewhere.
    pub(crate) waits_to_reopen: Duration,
}
