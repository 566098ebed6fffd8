//! Operators' view of a session.

use serde::{Deserialize, Serialize};

use super::CallReport;

/// A session's summary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionReport {
    /// The session's id.
    pub id: String,
    /// The [mark](super::mark_of) of the principal.
    pub principal: String,
    /// The client's name and version.
    pub client: Option<String>,
    /// The negotiated revision; `None` before `initialize`.
    pub revision: Option<String>,
    /// Whether all answers use one stream (HTTP+SSE, stdio).
    pub single_stream: bool,
    /// Whether the session is in memory. Otherwise it is passivated.
    pub live: bool,
    /// The task's status, if the session is a task; `ended` while passivated.
    pub task: Option<String>,
    /// Requests in flight.
    pub in_flight: usize,
    /// Number of streams that the node is writing.
    pub streams: usize,
    /// Number of these streams that a client reads.
    pub streams_read: usize,
    /// Milliseconds since the last use.
    pub idle_ms: u64,
    /// The session's epoch, which counts its claims.
    pub epoch: u64,
}

/// A session with all details.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionDetail {
    /// The session's summary.
    pub session: SessionReport,
    /// The log level that the client set; `None` while passivated.
    pub log_level: Option<String>,
    /// The first subscribed URIs, shortened.
    pub subscriptions: Vec<String>,
    /// Total number of subscriptions.
    pub subscriptions_total: usize,
    /// The first streams that the node is writing.
    pub streams: Vec<StreamReport>,
    /// The session's running calls.
    pub calls: Vec<CallReport>,
}

/// A stream that is being written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamReport {
    /// The id of the newest event.
    pub last: String,
    /// Whether this is the standalone stream.
    pub standalone: bool,
    /// Whether a client reads the stream.
    pub read: bool,
}
