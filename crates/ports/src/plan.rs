//! The plan of a call.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Either, Ready, ready};
use shoal_protocol::RawJson;

use crate::{Binding, Call, CallFailure, CallOutcome, Repeat, RunningCall};

/// A call ready to start.
#[derive(Clone, Debug)]
pub struct CallPlan {
    /// The call, with [`Call::repeat`] decided.
    pub call: Call,
    /// The pool and tool of the call; `None` for a modern request that continues another.
    pub route: Option<Route>,
    /// The worker to try first, unless the call is already bound.
    pub worker: Option<Binding>,
}

/// The pool and tool that a call goes to.
#[derive(Clone, Debug)]
pub struct Route {
    /// The name of the pool.
    pub pool: Arc<str>,
    /// The tool's name at the backend.
    pub tool: Option<Arc<str>>,
    /// The parameters for the backend.
    pub params: Option<RawJson>,
    /// How long the pool's run-once calls are held, if the pool sets this.
    pub hold: Option<Duration>,
    /// The policy rule that allows the call, for the audit trail.
    pub rule: Option<Arc<str>>,
}

/// An edge's plan for a request, without the call.
#[derive(Clone, Debug)]
pub struct RequestPlan {
    /// Whether the call may be repeated.
    pub repeat: Repeat,
    /// The call's pool and tool.
    pub route: Route,
    /// The worker to try first. A run-once call is bound to this worker, under the same call id on any session owner.
    pub worker: Binding,
}

/// An edge's plan, or the answer to give if the session admits the request.
pub type EdgePlan = Result<RequestPlan, CallOutcome>;

/// A call's plan, or the answer in its place.
pub type Planned = Result<CallPlan, CallOutcome>;

/// A plan in progress, usually ready at once.
pub type Planning = Either<Ready<Planned>, BoxFuture<'static, Planned>>;

/// A start in progress, usually ready for a local worker.
pub type Starting = Either<Ready<Started>, BoxFuture<'static, Started>>;

/// A running call, or why it did not start.
pub type Started = Result<RunningCall, CallFailure>;

impl RequestPlan {
    /// Converts an edge's result for the session's owner. `None` if the owner must plan the call itself.
    pub fn settled(planned: Planned) -> Option<EdgePlan> {
        Some(match planned {
            Ok(plan) if plan.call.asks_first => return None,
            // Without the ledger number, the call could not be bound to another worker later.
            Ok(plan) if plan.runs_once() && plan.worker.as_ref()?.ledger.is_none() => return None,
            Ok(plan) => Ok(plan.into_request()?),
            // The session's owner may know more workers.
            Err(CallOutcome::Failed(_)) => return None,
            Err(answer) => Err(answer),
        })
    }
}

impl CallPlan {
    /// Returns the plan without the call. `None` if there is no route or worker.
    pub fn into_request(self) -> Option<RequestPlan> {
        Some(RequestPlan {
            repeat: self.call.repeat,
            route: self.route?,
            worker: self.worker?,
        })
    }

    /// Fills this plan from an edge's plan.
    pub fn fill(&mut self, settled: RequestPlan) {
        self.call.repeat = settled.repeat;
        self.route = Some(settled.route);
        self.worker = Some(settled.worker);
    }

    /// Whether the call must not run twice.
    pub fn runs_once(&self) -> bool {
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

/// Wraps a result that is ready.
pub fn at_once<T>(done: T) -> Either<Ready<T>, BoxFuture<'static, T>> {
    Either::Left(ready(done))
}

/// Wraps a result that takes time.
pub fn later<T>(
    doing: impl Future<Output = T> + Send + 'static,
) -> Either<Ready<T>, BoxFuture<'static, T>> {
    Either::Right(Box::pin(doing))
}
