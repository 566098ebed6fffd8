//! The seam through which operators inspect a node and act on it.

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

/// One node as operators see it: its own sessions, calls and tools.
///
/// Inspecting does not wake sessions or count as use. Every list is bounded by its `limit` and the node's own limit;
/// [`Listing::total`] counts the omitted items too. [`shown`] shortens texts from clients and tools; callers must
/// escape them.
///
/// Nodes exchange reports as JSON, across releases. A member therefore keeps its meaning, and its default stands for
/// what another release omits.
///
/// Futures that only read may be dropped at any time. Actions complete once they have begun.
#[async_trait]
pub trait Inspector: Send + Sync + 'static {
    /// Reports on the node, its pools and its rates.
    async fn node(&self) -> Result<NodeReport, InspectError>;

    /// Lists the sessions that the node owns, last used first. `filter` matches a part of the id, client, revision or
    /// principal's mark (in any case), or the exact principal.
    async fn sessions(
        &self,
        filter: &str,
        limit: usize,
    ) -> Result<Listing<SessionReport>, InspectError>;

    /// Returns one session; `None` if the node does not own it.
    async fn session(&self, session: &SessionId) -> Result<Option<SessionDetail>, InspectError>;

    /// Lists the calls in flight, oldest first.
    async fn calls(&self, limit: usize) -> Result<Listing<CallReport>, InspectError>;

    /// Lists the tools whose name, title or pool contains `filter` (in any case), most called first.
    async fn tools(&self, filter: &str, limit: usize) -> Result<Listing<ToolReport>, InspectError>;

    /// Returns the tool that clients call `name`, if the node knows it.
    async fn tool(&self, name: &str) -> Result<Option<ToolDetail>, InspectError>;

    /// Lists refused and failed requests and failed tools, newest first. Kept in memory only.
    async fn errors(&self, limit: usize) -> Result<Listing<ErrorReport>, InspectError>;

    /// Ends a session; `false` if the node does not own it.
    async fn end_session(&self, session: &SessionId) -> Result<bool, InspectError>;

    /// Tells a call to stop; `false` if the node does not run it. The client gets the error of a cancelled call, unless
    /// the call ends otherwise first.
    async fn cancel_call(&self, call: CallId, reason: &str) -> Result<bool, InspectError>;
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing<T> {
    /// The items within the limit.
    pub items: Vec<T>,
    /// The total number, at least that of `items`.
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
    /// The node's release does not support inspection.
    #[error("the node's release cannot be inspected; its own admin port shows what there is")]
    Unsupported,
    /// The node did not answer.
    #[error("the node cannot be reached: {0}")]
    Unreachable(String),
    /// The node reported a failure.
    #[error("{0}")]
    Failed(String),
}

/// A principal's mark, which replaces the name in reports: the first 12 hexadecimal digits of the name's SHA-256.
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
