use serde::{Deserialize, Serialize};
use shoal_protocol::RawJson;

use super::Outcomes;
use super::rates::add_latency;

/// A tool and its recent calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolReport {
    /// The name for clients.
    pub name: String,
    /// The title, shortened.
    pub title: Option<String>,
    /// The description, shortened.
    pub description: Option<String>,
    /// The tool's pool.
    pub pool: String,
    /// The tool's annotations.
    pub annotations: ToolAnnotations,
    /// The tool's recently ended calls at this edge.
    pub recent: RecentCalls,
}

/// A tool's annotations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolAnnotations {
    /// Changes no data.
    pub read_only: Option<bool>,
    /// May destroy data.
    pub destructive: Option<bool>,
    /// May be repeated without further effect.
    pub idempotent: Option<bool>,
    /// Reaches beyond the server's data.
    pub open_world: Option<bool>,
}

/// Recently ended calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecentCalls {
    /// The seconds in which the calls ended; 0 without counts.
    pub seconds: u64,
    /// Calls by outcome.
    pub outcomes: Outcomes,
    /// Latencies, as in [`Step::latency`](super::Step::latency).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<u64>,
}

impl RecentCalls {
    /// Adds counts of other calls from the same time.
    pub fn add(&mut self, outcomes: &Outcomes, latency: &[u64]) {
        self.outcomes.add(outcomes);
        add_latency(&mut self.latency, latency);
    }
}

/// A tool's full definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDetail {
    /// The tool's pool.
    #[serde(default)]
    pub pool: String,
    /// The `Tool` object that clients get.
    pub definition: RawJson,
}
