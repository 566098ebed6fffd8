//! The binding of a call to the one worker that may run it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CallId, WorkerId};

/// A number in a worker's ledger, the worker's memory of calls that it accepted or refused. The number counts up, and
/// the worker remembers the calls of its latest numbers.
///
/// A call carries the number that was current when it was bound. The worker refuses the call if it may have forgotten
/// calls of that number, without comparing clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerNumber {
    /// Drawn when the worker starts: a restarted worker has forgotten its calls.
    pub incarnation: u64,
    /// The count within the incarnation.
    pub number: u64,
}

/// The worker that a call is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The worker's id.
    pub worker: WorkerId,
    /// The worker's ledger number from before the call was journaled or started. `None` if the worker announces none.
    pub ledger: Option<LedgerNumber>,
}

/// An edge's choice of the worker for a request, before the session's owner plans the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// The request runs once, at this worker only.
    Bound(Binding),
    /// The request is safe to repeat, so the session's owner chooses the worker.
    Repeatable,
    /// The edge could not draw a worker. The session's owner chooses one or waits for one, and journals the call if it
    /// must run once.
    Nothing,
}

/// The place where a call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The call's id. A call that waited for its client's answers keeps the id from the client's first request.
    pub call: CallId,
    /// The pool of the worker.
    pub pool: Arc<str>,
    /// The worker, with a ledger number from before the call.
    pub worker: Binding,
}
