//! What is settled of a call before anything of it is journaled or started.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Either, Ready, ready};
use shoal_protocol::RawJson;

use crate::{Binding, Call, CallFailure, CallOutcome, Repeat, RunningCall};

/// A call that may be started: its way is found, its arguments have been checked, and there is a worker for it.
#[derive(Clone, Debug)]
pub struct CallPlan {
    /// The call as its client sent it, with the repeat that its tool asks for.
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
    /// How long a call there that must not run twice is held before it is journaled, where the pool has a time of its own.
    pub hold: Option<Duration>,
    /// The policy rule that allows the call, where that was asked, for the audit trail.
    pub rule: Option<Arc<str>>,
}

/// What an edge settles of a request before that goes to its session: a plan without its call, which only the session can
/// make.
#[derive(Clone, Debug)]
pub struct RequestPlan {
    /// Whether it may be repeated.
    pub repeat: Repeat,
    /// Where it goes.
    pub route: Route,
    /// The worker that is offered it first, and the number of that one's ledger. A call that must not be repeated is bound
    /// to it: whoever owns the session by then starts it there, under the same id, and so never twice.
    pub worker: Binding,
}

/// What an edge settled of a request, or the answer to it, which its session gives if it lets the request in.
pub type EdgePlan = Result<RequestPlan, CallOutcome>;

/// The plan of a call, or the answer to one that is not to be started: a list, or a refusal.
pub type Planned = Result<CallPlan, CallOutcome>;

/// A call that is being planned: mostly that is done at once.
pub type Planning = Either<Ready<Planned>, BoxFuture<'static, Planned>>;

/// A call that is being started: at once, mostly where its worker is in this process.
pub type Starting = Either<Ready<Started>, BoxFuture<'static, Started>>;

/// A call that runs, or why it does not.
pub type Started = Result<RunningCall, CallFailure>;

impl RequestPlan {
    /// What an edge settles of a request by this plan; `None` for what is left to the session's owner.
    pub fn settled(planned: Planned) -> Option<EdgePlan> {
        Some(match planned {
            // Its session puts the question.
            Ok(plan) if plan.call.asks_first => return None,
            // Without a number its worker's refusals are not final, so that nobody could bind it anew.
            Ok(plan) if plan.is_once() && plan.worker.as_ref()?.ledger.is_none() => return None,
            Ok(plan) => Ok(plan.into_request()?),
            // The owner may see more.
            Err(CallOutcome::Failed(_)) => return None,
            Err(answer) => Err(answer),
        })
    }
}

impl CallPlan {
    /// The plan without its call, if it names a way and a worker.
    pub fn into_request(self) -> Option<RequestPlan> {
        Some(RequestPlan {
            repeat: self.call.repeat,
            route: self.route?,
            worker: self.worker?,
        })
    }

    /// Takes over what was settled without the call.
    pub fn fill(&mut self, settled: RequestPlan) {
        self.call.repeat = settled.repeat;
        self.route = Some(settled.route);
        self.worker = Some(settled.worker);
    }

    /// Whether the call must not run twice.
    pub fn is_once(&self) -> bool {
        self.call.repeat == Repeat::Never
    }

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
