mod call;
mod node;
mod rates;
mod session;
mod tool;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use call::{CallReport, CallState, ErrorReport};
pub use node::{NodeReport, PoolReport, Remembered, WorkerReport};
pub use rates::{LATENCY_BOUNDS, LatencyHistogram, Outcomes, Step, quantile};
pub use session::{SessionDetail, SessionReport, StreamReport};
pub use tool::{RecentCalls, ToolAnnotations, ToolDetail, ToolReport};

use crate::{CallId, Principal, SessionId};

/// Inspects a node for operators: its own sessions, calls and tools.
///
/// Inspecting does not count as use of a session. [`shown`] shortens untrusted texts, which callers
/// must escape. Nodes of different releases exchange reports as JSON, so members keep their
/// meaning, and new ones have a default. Actions complete even if their futures are dropped.
#[async_trait]
pub trait Inspector: Send + Sync + 'static {
    /// Reports on the node.
    async fn node(&self) -> Result<NodeReport, InspectError>;

    /// Lists the node's sessions, the last used first. `filter` matches part of the id, client,
    /// revision or principal's mark, or the exact principal.
    async fn sessions(
        &self,
        filter: &str,
        limit: usize,
    ) -> Result<Listing<SessionReport>, InspectError>;

    /// Reports on one session of the node.
    async fn session(&self, session: &SessionId) -> Result<Option<SessionDetail>, InspectError>;

    /// Lists calls in flight, the oldest first.
    async fn calls(&self, limit: usize) -> Result<Listing<CallReport>, InspectError>;

    /// Lists the tools whose name, title or pool contains `filter`, the most called first.
    async fn tools(&self, filter: &str, limit: usize) -> Result<Listing<ToolReport>, InspectError>;

    /// Reports on a tool by its name for clients.
    async fn tool(&self, name: &str) -> Result<Option<ToolDetail>, InspectError>;

    /// Lists the failed requests that the node remembers, the newest first.
    async fn errors(&self, limit: usize) -> Result<Listing<ErrorReport>, InspectError>;

    /// Ends a session. Returns `false` if another node owns it.
    async fn end_session(&self, session: &SessionId) -> Result<bool, InspectError>;

    /// Cancels a call, which may still end with a result. Returns `false` if the call is not on
    /// this node.
    async fn cancel_call(&self, call: CallId, reason: &str) -> Result<bool, InspectError>;
}

/// A list that a limit may have shortened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing<T> {
    /// The items within the limit.
    pub items: Vec<T>,
    /// The number of items without the limit.
    pub total: usize,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            total: 0,
        }
    }
}

/// Why a node cannot be inspected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// The release does not support inspection.
    #[error("the node's release cannot be inspected; its own admin port shows what there is")]
    Unsupported,
    /// The node did not answer.
    #[error("the node cannot be reached: {0}")]
    Unreachable(String),
    /// The node reported a failure.
    #[error("{0}")]
    Failed(String),
}

/// Returns a principal's mark in reports: 12 hexadecimal digits of its name's SHA-256.
pub fn mark_of(principal: &Principal) -> String {
    let hash = Sha256::digest(principal.as_str().as_bytes());
    hash.iter().take(6).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::mark_of;
    use crate::Principal;

    #[test]
    fn a_mark_says_who_without_the_name() {
        let alice = mark_of(&Principal::new("alice"));
        assert_eq!(alice, "2bd806c97f0e");
        assert_ne!(alice, mark_of(&Principal::new("bob")));
    }
}
