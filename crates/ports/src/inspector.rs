//! The seam through which operators look into a node, and act on what they see.

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

/// One node as operators see it: what it holds and runs, not what is elsewhere.
///
/// Looking changes nothing: no session is woken or counts as used. Every answer is bounded by the `limit`
/// that it is asked with, and by the node's own where that is lower; [`Listing::total`] tells what is left
/// out. Texts that clients and tools chose are shortened by [`shown`], but not escaped for any medium.
///
/// Between nodes reports are JSON, of releases that are mixed in a rollout: a member is never given another meaning, and
/// its default stands for what another release does not tell.
///
/// Methods that only look may be dropped at any time; what acts is carried out all the same once it has
/// begun.
#[async_trait]
pub trait Inspector: Send + Sync + 'static {
    /// The node itself, its pools and its rates.
    async fn node(&self) -> Result<NodeReport, InspectError>;

    /// Sessions that the node owns, the one used last first. A session is listed if any of its id, client,
    /// revision and principal's mark contains `filter` (in any case), or if its principal is exactly that.
    async fn sessions(
        &self,
        filter: &str,
        limit: usize,
    ) -> Result<Listing<SessionReport>, InspectError>;

    /// One session; `None` when the node does not own it.
    async fn session(&self, session: &SessionId) -> Result<Option<SessionDetail>, InspectError>;

    /// Calls in flight, the oldest first.
    async fn calls(&self, limit: usize) -> Result<Listing<CallReport>, InspectError>;

    /// Tools whose name, title or pool contains `filter` (in any case), the one that is called most first.
    async fn tools(&self, filter: &str, limit: usize) -> Result<Listing<ToolReport>, InspectError>;

    /// The tool that clients call `name`; `None` when the node knows of none.
    async fn tool(&self, name: &str) -> Result<Option<ToolDetail>, InspectError>;

    /// Requests that were refused or failed, and tools that failed, the newest first. Kept in memory only.
    async fn errors(&self, limit: usize) -> Result<Listing<ErrorReport>, InspectError>;

    /// Ends a session as its client could have; `false` when the node does not own it.
    async fn end_session(&self, session: &SessionId) -> Result<bool, InspectError>;

    /// Tells a call in flight to stop; `false` when the node does not run it. Its client gets the error of
    /// a cancelled call, unless the call ends otherwise first.
    async fn cancel_call(&self, call: CallId, reason: &str) -> Result<bool, InspectError>;
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing<T> {
    /// What fits within the limit.
    pub items: Vec<T>,
    /// How many there are in all; at least as many as `items`.
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

/// Why a node cannot be looked into.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// It runs a release that has no such thing.
    #[error("the node's release cannot be inspected; its own admin port shows what there is")]
    Unsupported,
    /// It did not answer.
    #[error("the node cannot be reached: {0}")]
    Unreachable(String),
    /// It answered that it cannot.
    #[error("{0}")]
    Failed(String),
}

/// By what a principal is told from others where its name is not to be shown: the first 12 hexadecimal
/// digits of the SHA-256 of the name.
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
