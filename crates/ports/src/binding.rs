//! The one worker that may run a call, and the number that its ledger had when the call was bound to it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CallId, WorkerId};

/// How far a worker's ledger is: it counts up by itself, and remembers what it took or refused for its last numbers.
///
/// A call is bound under the number that the binder knew. A worker of another incarnation, or one that has counted on
/// too far, can no longer say whether it had the call before, and does not run it. So no clock is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerNumber {
    /// Drawn when the worker started: one that has started anew remembers nothing.
    pub incarnation: u64,
    /// The count.
    pub number: u64,
}

/// The worker that a call is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The worker.
    pub worker: WorkerId,
    /// Its ledger's number as the binder knew it, before the call was journaled or started; `None` where the worker
    /// announces none, as older releases do.
    pub ledger: Option<LedgerNumber>,
}

/// Where a call runs, as its worker knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The call. One that waited for its client has the id of the request that began it.
    pub call: CallId,
    /// The worker's pool.
    pub pool: Arc<str>,
    /// The worker, and the number of its ledger before the call came there.
    pub worker: Binding,
}
