//! The plan of a call.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Either, Ready, ready};
use shoal_protocol::RawJson;

use crate::{Binding, Call, CallFailure, CallOutcome, Repeat, RunningCall};

/// A call ready to start.
#[derive(Clone, Debug)]
pub struct CallPlan {
    /// The call, with its repeat setting.
    pub call: Call,
    /// The route; `None` for a modern request that continues another.
    pub route: Option<Route>,
    /// The worker to try first, unless the call is bound.
    pub worker: Option<Binding>,
}

/// The route of a call.
#[derive(Clone, Debug)]
pub struct Route {
    /// The pool.
    pub pool: Arc<str>,
    /// The backend's name of the tool.
    pub tool: Option<Arc<str>>,
    /// The parameters for the backend.
    pub params: Option<RawJson>,
    /// The pool's own time to hold run-once calls.
    pub hold: Option<Duration>,
    /// The policy rule that allows the call, for the audit trail.
    pub rule: Option<Arc<str>>,
}

/// An edge's plan for a request, without the call.
#[derive(Clone, Debug)]
pub struct RequestPlan {
    /// Whether the call may be repeated.
    pub repeat: Repeat,
    /// The route.
    pub route: Route,
    /// The worker to try first. A run-once call is bound to it, under the same id on any session owner.
    pub worker: Binding,
}

/// An edge's plan, or the answer if the session admits the request.
pub type EdgePlan = Result<RequestPlan, CallOutcome>;

/// A call's plan, or the answer in its place.
pub type Planned = Result<CallPlan, CallOutcome>;

/// A plan in progress, usually ready at once.
pub type Planning = Either<Ready<Planned>, BoxFuture<'static, Planned>>;

/// A start in progress, usually ready for a local worker.
pub type Starting = Either<Ready<Started>, BoxFuture<'static, Started>>;

/// A running call, or why not.
pub type Started = Result<RunningCall, CallFailure>;

impl RequestPlan {
    /// Converts a plan for the session's owner, unless the owner must plan.
    pub fn settled(planned: Planned) -> Option<EdgePlan> {
        Some(match planned {
            // The session asks the user.
            Ok(plan) if plan.call.asks_first => return None,
            // Without a ledger number the call could not be bound again.
            Ok(plan) if plan.is_once() && plan.worker.as_ref()?.ledger.is_none() => return None,
            Ok(plan) => Ok(plan.into_request()?),
            // The owner may know more workers.
            Err(CallOutcome::Failed(_)) => return None,
            Err(answer) => Err(answer),
        })
    }
}

impl CallPlan {
    /// Removes the call, given a route and a worker.
    pub fn into_request(self) -> Option<RequestPlan> {
        Some(RequestPlan {
            repeat: self.call.repeat,
            route: self.route?,
            worker: self.worker?,
        })
    }

    /// Takes over an edge's plan.
    pub fn fill(&mut self, settled: RequestPlan) {
        self.call.repeat = settled.repeat;
        self.route = Some(settled.route);
        self.worker = Some(settled.worker);
    }

    /// Whether the call must not run twice.
    pub fn is_once(&self) -> bool {
        self.call.repeat == Repeat::Never
    }

    /// Binds the call to the planned worker.
    pub fn bind(&mut self) {
        if let Some(Binding { worker, ledger }) = self.worker.take() {
            self.call.worker = Some(worker);
            self.call.ledger = ledger;
        }
    }
}

/// A result that is ready.
pub fn at_once<T>(done: T) -> Either<Ready<T>, BoxFuture<'static, T>> {
    Either::Left(ready(done))
}

/// A result that takes time.
pub fn later<T>(
    doing: impl Future<Output = T> + Send + 'static,
) -> Either<Ready<T>, BoxFuture<'static, T>> {
    Either::Right(Box::pin(doing))
}
