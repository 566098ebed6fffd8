//! What operators see of a session.

use serde::{Deserialize, Serialize};

use super::CallReport;

/// A session, in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionReport {
    /// Its id.
    pub id: String,
    /// The [mark](super::mark_of) of its principal.
    pub principal: String,
    /// Name and version of its client, as it gave them; `None` before `initialize`.
    pub client: Option<String>,
    /// The negotiated revision; `None` before `initialize`.
    pub revision: Option<String>,
    /// Whether all of its answers go over one stream (HTTP+SSE, stdio).
    pub single_stream: bool,
    /// Whether it is in memory; else it sleeps in the store until its next message.
    pub live: bool,
    /// The status of the task that it is, if it is one; `ended` while it sleeps.
    pub task: Option<String>,
    /// Requests in flight.
    pub in_flight: usize,
    /// Streams that are being written.
    pub streams: usize,
    /// Those of them that a connection reads.
    pub streams_read: usize,
    /// Milliseconds since it was used.
    pub idle_ms: u64,
    /// The generation of its ownership: how often it has been claimed.
    pub epoch: u64,
}

/// A session, in full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionDetail {
    /// In one line.
    pub session: SessionReport,
    /// The least severe log message that its client wants; `None` while it sleeps.
    pub log_level: Option<String>,
    /// URIs of the resources that it is subscribed to, shortened; the first of them.
    pub subscriptions: Vec<String>,
    /// How many there are in all.
    pub subscriptions_total: usize,
    /// Streams that are being written, the first of them.
    pub streams: Vec<StreamReport>,
    /// Calls that run in it.
    pub calls: Vec<CallReport>,
}

/// A stream that is being written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamReport {
    /// The id of its newest event, as clients have it.
    pub last: String,
    /// Whether it is the standalone stream, which belongs to no request.
    pub standalone: bool,
    /// Whether a connection reads it.
    pub read: bool,
}
