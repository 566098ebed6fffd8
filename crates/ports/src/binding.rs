//! The binding of a call to the one worker that may run it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CallId, WorkerId};

/// The position of a worker's ledger, which counts up. The worker remembers which calls it took or refused under its
/// latest numbers.
///
/// A call carries the number that the binder knew. The worker refuses the call if it may have forgotten something
/// since. This needs no comparison of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerNumber {
    /// Drawn when the worker starts and forgets its calls.
    pub incarnation: u64,
    /// The count.
    pub number: u64,
}

/// The worker that a call is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The worker.
    pub worker: WorkerId,
    /// The ledger number before the call was journaled or started. `None` if the worker announces none, as older
    /// releases do.
    pub ledger: Option<LedgerNumber>,
}

/// Where a call runs, as reported by its worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The call. A call that waited keeps its first request's id.
    pub call: CallId,
    /// The worker's pool.
    pub pool: Arc<str>,
    /// The worker, with its earlier ledger number.
    pub worker: Binding,
}
