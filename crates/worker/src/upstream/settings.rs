use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::ListScope;

use super::binding::ConnectionBinding;

/// Era in which Shoal speaks to a server.
// Only the legacy era has requests from servers to clients, and only the modern era has `InputRequiredResult`. Shoal calls
// tools that ask by `InputRequiredResult` over a modern connection to the same server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Era")]
pub enum EraChoice {
    /// Legacy if the server supports it (over HTTP: if it has sessions). A call that the server
    /// answers with `InputRequiredResult` uses the modern era.
    #[default]
    Auto,
    /// 2025-11-25 and before.
    Legacy,
    /// 2026-07-28.
    Modern,
}

#[derive(Clone, Debug)]
pub(crate) struct UpstreamSettings {
    pub(crate) era: EraChoice,
    pub(crate) shared: ConnectionBinding,
    pub(crate) sessions_have_own: bool,
    pub(crate) sessions: usize,
    pub(crate) session_idle: Duration,
    pub(crate) start_timeout: Duration,
    pub(crate) probe_timeout: Duration,
    pub(crate) restart_delay: Duration,
    pub(crate) max_restart_delay: Duration,
    pub(crate) headers: Vec<Arc<str>>,
    pub(crate) lists: ListScope,
    /// The longest pause before a restart for which a session's call waits; beyond it, the call may go elsewhere.
    pub(crate) waits_to_reopen: Duration,
}
