//! Operators' view of tools and their calls.

use serde::{Deserialize, Serialize};
use shoal_protocol::RawJson;

use super::Outcomes;
use super::rates::add_latency;

/// A tool and its recent calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolReport {
    /// The name that clients call.
    pub name: String,
    /// The tool's title, shortened.
    pub title: Option<String>,
    /// The tool's description, shortened.
    pub description: Option<String>,
    /// The pool that serves the tool.
    pub pool: String,
    /// The tool's annotations.
    pub annotations: ToolAnnotations,
    /// The tool's calls at this edge.
    pub recent: RecentCalls,
}

/// The annotations that a tool's definition contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolAnnotations {
    /// The tool changes no data.
    pub read_only: Option<bool>,
    /// The tool may destroy data.
    pub destructive: Option<bool>,
    /// Repeating a call has no further effect.
    pub idempotent: Option<bool>,
    /// The tool reaches beyond the server's own data.
    pub open_world: Option<bool>,
}

/// Calls that ended within the last minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentCalls {
    /// The number of seconds that the counts cover; 0 if calls are not counted.
    pub seconds: u64,
    /// The calls by outcome.
    pub outcomes: Outcomes,
    /// The calls' latencies, as in [`Step::latency`](super::Step::latency).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<u64>,
}

impl RecentCalls {
    /// Adds the counts of other calls in the same seconds.
    pub fn add(&mut self, outcomes: &Outcomes, latency: &[u64]) {
        self.outcomes.add(outcomes);
        add_latency(&mut self.latency, latency);
    }
}

/// A tool with its full definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDetail {
    /// The pool that serves the tool.
    #[serde(default)]
    pub pool: String,
    /// The `Tool` object that clients get.
    pub definition: RawJson,
}
