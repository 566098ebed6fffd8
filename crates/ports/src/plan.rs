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

/// A call's plan, or the answer in its place.
pub type Planned = Result<CallPlan, CallOutcome>;

/// A plan in progress, usually ready at once.
pub type Planning = Either<Ready<Planned>, BoxFuture<'static, Planned>>;

/// A start in progress, usually ready for a local worker.
pub type Starting = Either<Ready<Started>, BoxFuture<'static, Started>>;

/// A running call, or why it did not start.
pub type Started = Result<RunningCall, CallFailure>;

impl CallPlan {
    /// Whether the call must not run twice.
    pub fn runs_once(&self) -> bool {
        self.call.repeat == Repeat::Never
    }

    /// Binds the call to the planned worker.
    pub fn bind(&mut self) {
        if let Some(binding) = self.worker.take() {
            self.call.binding = Some(binding);
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
