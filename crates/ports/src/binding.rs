//! The one worker that may run a call, and the ledger number under which the call was bound to it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CallId, WorkerId};

/// The position of a worker's ledger. It counts up, and the worker remembers which calls it took or refused under its
/// latest numbers.
///
/// A call carries the number that the binder knew. A worker refuses the call if its incarnation differs or its ledger
/// has moved too far, because it can no longer say whether it already had the call. This needs no comparison of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerNumber {
    /// Drawn when the worker starts, because a restarted worker has forgotten its calls.
    pub incarnation: u64,
    /// The count.
    pub number: u64,
}

/// The worker that a call is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The worker.
    pub worker: WorkerId,
    /// The worker's ledger number that the binder knew before the call was journaled or started. `None` if the worker
    /// announces none, as older releases do.
    pub ledger: Option<LedgerNumber>,
}

/// Where a call runs, as reported by its worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The call. A call that waited for its client keeps the id of the first request.
    pub call: CallId,
    /// The worker's pool.
    pub pool: Arc<str>,
    /// The worker, with its ledger number from before the call arrived.
    pub worker: Binding,
}
