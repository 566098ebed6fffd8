//! What operators see of tools and of their calls.

use serde::{Deserialize, Serialize};
use shoal_protocol::RawJson;

use super::Outcomes;
use super::rates::add_latency;

/// A tool as clients call it, and what became of its calls lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolReport {
    /// The name that clients call.
    pub name: String,
    /// Its name for people, shortened.
    pub title: Option<String>,
    /// A short description of the tool.
    pub description: Option<String>,
    /// The pool that serves it.
    pub pool: String,
    /// What it says of itself.
    pub annotations: ToolAnnotations,
    /// Its calls at the node's edge.
    pub recent: RecentCalls,
}

/// The annotations of a tool; `None` where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolAnnotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// What it changes may be lost.
    pub destructive: Option<bool>,
    /// An execution after a first one changes nothing.
    pub idempotent: Option<bool>,
    /// It deals with more than the server's own data.
    pub open_world: Option<bool>,
}

/// Calls that ended within the last minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentCalls {
    /// Seconds that are told of; 0 where the calls of this tool are not counted.
    pub seconds: u64,
    /// How they ended.
    pub outcomes: Outcomes,
    /// How long they took, as in [`Step::latency`](super::Step::latency).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<u64>,
}

impl RecentCalls {
    /// Adds those that ended elsewhere, or at another time of the same seconds.
    pub fn add(&mut self, outcomes: &Outcomes, latency: &[u64]) {
        self.outcomes.add(outcomes);
        add_latency(&mut self.latency, latency);
    }
}

/// A tool, in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDetail {
    /// The pool that serves it.
    #[serde(default)]
    pub pool: String,
    /// The `Tool` object that clients get.
    pub definition: RawJson,
}
