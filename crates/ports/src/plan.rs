//! What is settled of a call before anything of it is journaled or started.

use std::sync::Arc;

use futures::future::{BoxFuture, Either, Ready, ready};
use shoal_protocol::RawJson;

use crate::{Binding, Call, CallFailure, CallOutcome, RunningCall};

/// A call that may be started: its way is found, its arguments have been checked, and there is a worker for it.
#[derive(Clone, Debug)]
pub struct CallPlan {
    /// The call as its client sent it, with the durability that its tool asks for.
    pub call: Call,
    /// Where it goes. `None` for a modern request that goes on with an earlier one: what that was, its start finds out.
    pub route: Option<Route>,
    /// The worker that is offered the call first, and its ledger's number. `None` where the call was bound before.
    pub worker: Option<Binding>,
}

/// Where a call goes, with what its backend knows it by.
#[derive(Clone, Debug)]
pub struct Route {
    /// The pool.
    pub pool: Arc<str>,
    /// The backend's name of the tool, if the call is one of a tool.
    pub tool: Option<Arc<str>>,
    /// The parameters as the backend gets them.
    pub params: Option<RawJson>,
}

/// The plan of a call, or the answer to one that is not to be started: a list, or a refusal.
pub type Planned = Result<CallPlan, CallOutcome>;

/// A call that is being planned: mostly that is done at once.
pub type Planning = Either<Ready<Planned>, BoxFuture<'static, Planned>>;

/// A call that is being started: at once, mostly where its worker is in this process.
pub type Starting = Either<Ready<Started>, BoxFuture<'static, Started>>;

/// A call that runs, or why it does not.
pub type Started = Result<RunningCall, CallFailure>;

impl CallPlan {
    /// Binds the call to the planned worker: no other may run it from now on.
    pub fn bind(&mut self) {
        if let Some(Binding { worker, ledger }) = self.worker.take() {
            self.call.worker = Some(worker);
            self.call.ledger = ledger;
        }
    }
}

/// What need not be waited for.
pub fn at_once<T>(done: T) -> Either<Ready<T>, BoxFuture<'static, T>> {
    Either::Left(ready(done))
}

/// What takes a while.
pub fn later<T>(
    doing: impl Future<Output = T> + Send + 'static,
) -> Either<Ready<T>, BoxFuture<'static, T>> {
    Either::Right(Box::pin(doing))
}
