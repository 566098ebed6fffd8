//! What operators see of calls and of what became of them.

use serde::{Deserialize, Serialize};

/// A call in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallReport {
    /// Its id.
    pub id: String,
    /// Its method.
    pub method: String,
    /// The tool, prompt or resource that it names; `None` when it names none.
    pub target: Option<String>,
    /// The session that it belongs to; `None` for modern calls.
    pub session: Option<String>,
    /// Name and version of its client, as it gave them.
    pub client: Option<String>,
    /// The [mark](super::mark_of) of its principal.
    pub principal: String,
    /// The worker that runs it; `None` before one has taken it.
    pub worker: Option<String>,
    /// Whether it is journaled, so that it is never executed twice; else it is safe to repeat.
    pub journaled: bool,
    /// Whether a modern client sent it.
    pub modern: bool,
    /// Milliseconds since this node began with it.
    pub age_ms: u64,
    /// How far it is.
    pub state: CallState,
}

/// How far a call in flight is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallState {
    /// No worker has taken it yet.
    Starting,
    /// It was told to stop by an operator.
    Cancelling,
    /// A worker has it; also whatever another release says beside these.
    #[default]
    #[serde(other)]
    Running,
}

/// A request that was refused or failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorReport {
    /// When, in milliseconds since 1970, on the clock of the node.
    pub at_ms: u64,
    /// The request's method; `None` when the request could not be read.
    pub method: Option<String>,
    /// The tool, prompt or resource that it names.
    pub target: Option<String>,
    /// The JSON-RPC error code; 0 for a tool that failed.
    pub code: i64,
    /// Whether it has a result, in which the tool says that it failed (`isError`).
    pub tool_failed: bool,
    /// The error's message, or what the tool said; shortened.
    pub message: String,
    /// The session that it was for.
    pub session: Option<String>,
    /// The id of the trace that it belongs to, from the `traceparent` in its `_meta`.
    pub trace: Option<String>,
}
