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
    /// Whether one stream carries all answers (HTTP+SSE, WebSocket, stdio).
    pub single_stream: bool,
    /// Whether the session is in memory, not passivated.
    pub live: bool,
    /// The task's status, if the session is a task; `ended` while passivated.
    pub task: Option<String>,
    /// Requests in flight.
    pub in_flight: usize,
    /// Streams that the node writes.
    pub streams: usize,
    /// Written streams that a client reads.
    pub streams_read: usize,
    /// Milliseconds since the last use.
    pub idle_ms: u64,
    /// The epoch.
    pub epoch: u64,
}

/// A session with all details.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionDetail {
    /// The session's summary.
    pub session: SessionReport,
    /// The client's log level; `None` while passivated.
    pub log_level: Option<String>,
    /// The first subscribed URIs, shortened.
    pub subscriptions: Vec<String>,
    /// All subscriptions.
    pub subscriptions_total: usize,
    /// The first streams that the node writes.
    pub streams: Vec<StreamReport>,
    /// Running calls.
    pub calls: Vec<CallReport>,
}

/// A stream that the node writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamReport {
    /// The newest event's id.
    pub last: String,
    /// Whether it is the standalone stream.
    pub standalone: bool,
    /// Whether a client reads the stream.
    pub read: bool,
}
