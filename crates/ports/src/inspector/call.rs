use serde::{Deserialize, Serialize};

/// A call in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallReport {
    /// The call's id.
    pub id: String,
    /// The MCP method.
    pub method: String,
    /// The tool, prompt or resource.
    pub target: Option<String>,
    /// The call's session; `None` for modern calls.
    pub session: Option<String>,
    /// The client's name and version.
    pub client: Option<String>,
    /// The [mark](super::mark_of) of the principal.
    pub principal: String,
    /// The worker that accepted the call.
    pub worker: Option<String>,
    /// Whether the call is journaled and runs once.
    pub journaled: bool,
    /// Whether a modern client sent the call.
    pub modern: bool,
    /// Milliseconds since the call began here.
    pub age_ms: u64,
    /// The call's state.
    pub state: CallState,
}

/// The state of a call in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallState {
    /// No worker has accepted the call.
    Starting,
    /// An operator has cancelled the call.
    Cancelling,
    /// A worker has accepted the call. Also stands for states that only newer releases know.
    #[default]
    #[serde(other)]
    Running,
}

/// A request that was refused or failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorReport {
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// The method, if readable.
    pub method: Option<String>,
    /// The tool, prompt or resource.
    pub target: Option<String>,
    /// The JSON-RPC error code; 0 if a tool reported the failure.
    pub code: i64,
    /// A tool reported the failure (`isError`).
    pub tool_failed: bool,
    /// The message, shortened.
    pub message: String,
    /// The session.
    pub session: Option<String>,
    /// The trace id, from the `traceparent` in `_meta`.
    pub trace: Option<String>,
}
