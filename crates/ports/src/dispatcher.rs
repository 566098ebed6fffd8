//! The seam between whoever has a request and the pools that run it.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::Either;
use shoal_protocol::{Body, RawJson, RpcError};
use tokio::sync::{broadcast, watch};

use crate::{
    Binding, Call, CallFailure, CallId, CallPlan, Caller, EdgePlan, Expected, Planning,
    RequestPlan, ResourceUpdated, RunningCall, ServerFacts, SessionId, SettledFacts, Starting,
    WorkerId,
};

/// Plans calls, and runs what was planned on workers.
///
/// A call is planned once: there its tool, its pool, its worker and whether it may be repeated are settled, and its
/// arguments checked. Whoever must journals the plan; then it is started. What is refused is refused in the plan, so a
/// refusal costs no store anything.
///
/// The era bridge stands inside: a legacy caller only ever sees [`Ask`](crate::CallEventKind::Ask)
/// events and complete results; a modern caller only ever sees results, which may be
/// `InputRequiredResult`s with a sealed `requestState`.
#[async_trait]
pub trait Dispatcher: Send + Sync + 'static {
    /// The server's facts now; the receiver tells of changes.
    fn facts(&self) -> watch::Receiver<Arc<ServerFacts>>;

    /// Waits for the pools that a node which has just started does not know yet, and returns the server's facts then: for every
    /// answer by which a client decides what to ask for later. Cancellation safe.
    ///
    /// # Errors
    /// `NotReady` if the pools do not come in time, or if none has come at all.
    async fn settled_facts(&self) -> Result<SettledFacts, CallFailure> {
        Ok(SettledFacts {
            facts: self.facts().borrow().clone(),
            lacks: None,
        })
    }

    /// What workers report from now on of the resources that are [subscribed](Self::subscribe) to in this process, in the
    /// order of each worker. A receiver that is told that it has lagged is to assume that all of them have changed.
    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated>;

    /// Checks the `Mcp-Param-*` headers of a modern `tools/call` against its arguments.
    /// `header` gets the lower-case part after `Mcp-Param-`.
    ///
    /// # Errors
    /// -32020 when a header that the tool's schema asks for is missing or differs.
    fn check_param_headers(
        &self,
        caller: &Caller,
        params: Option<&RawJson>,
        header: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<(), RpcError>;

    /// Whether a `tools/call` names a tool that only clients with tasks can call.
    fn requires_task(&self, _caller: &Caller, _params: Option<&RawJson>) -> bool {
        false
    }

    /// Whether a `tools/call` names a tool whose calls may be tasks.
    fn may_be_task(&self, _params: Option<&RawJson>) -> bool {
        true
    }

    /// Whether a `tools/call` names a tool that says itself that its calls may be tasks, or none that its caller may use: that
    /// is refused when it is planned.
    fn says_may_be_task(&self, _caller: &Caller, _params: Option<&RawJson>) -> bool {
        true
    }

    /// Rewrites the arguments of calls whose pools want them as the tool's schema does. It comes before everything that reads
    /// them.
    fn coerce(&self, _body: &mut Body) {}

    /// Plans a call: one of the four backend methods, or of the four list methods, which are answered here. The plan
    /// decides on [`Call::repeat`]; a call that has a [`worker`](Call::worker) keeps it.
    ///
    /// Where no worker is there for a call that must be journaled, one is waited for, for as long as one that
    /// is away is waited for. Cancellation safe: a plan takes nothing.
    ///
    /// # Errors
    /// The answer in the call's place: a list, an error of the request itself (unknown tool, arguments that fail the
    /// schema, a bad cursor), or `Failed` where a limit was reached or nobody is there to run it.
    fn plan(&self, call: Call) -> Planning;

    /// Plans a legacy call ahead of its session's owner, who goes by the plan; `None` for what must be waited for, and for what is
    /// left to the owner: that plans it anew, and whoever plans in the end tells what the rules say.
    fn plan_ahead(&self, call: Call) -> Option<EdgePlan> {
        match self.plan(call) {
            Either::Left(planned) => RequestPlan::settled(planned.into_inner()),
            Either::Right(_) => None,
        }
    }

    /// Whether a plan depends on which client its caller uses. Then only those can plan who know that.
    fn asks_of_clients(&self) -> bool {
        false
    }

    /// Whether a plan may depend on what was granted to its caller. Then whoever plans must be told.
    fn asks_of_grants(&self) -> bool {
        false
    }

    /// Counts a call that was planned here and is started by another node, until what is returned is dropped: else all calls
    /// would go to the worker that was idle a moment ago.
    fn expect(&self, _worker: &WorkerId) -> Option<Expected> {
        None
    }

    /// Whether a worker that another node has planned is there as this node sees, and the plan's caller has not failed too
    /// often there. The answer lets one call through to a worker on trial.
    fn takes(&self, _worker: &WorkerId, _plan: &CallPlan) -> bool {
        true
    }

    /// Another worker for a planned call that the one before has certainly not executed; `None` when there is none, or
    /// enough were tried. `tried` are out. What was checked is not checked again.
    fn replan(&self, plan: &CallPlan, tried: &[WorkerId]) -> Option<Binding>;

    /// Starts a call as planned. Starting an id that is known to its worker attaches to it. A call with a
    /// [`worker`](Call::worker) runs there or not at all.
    ///
    /// Where that takes no waiting, it has begun when this returns, and may have ended: to be called in a runtime.
    /// Otherwise nothing is done before the future is polled, and then it is not cancellation safe: if it is dropped the
    /// call may or may not run.
    fn start(&self, plan: &CallPlan) -> Starting;

    /// Goes on with a call that an earlier owner of its session began, from after event `after`.
    ///
    /// A journaled call is attached to at its worker, which is waited for a moment if it is not there; a
    /// worker that has certainly never seen the call starts it. A call that is safe to repeat and
    /// cannot be found is started anew on any worker.
    ///
    /// # Errors
    /// `OutcomeUnknown` when a journaled call's worker is gone or has forgotten it.
    async fn resume(&self, call: Call, after: u64) -> Result<RunningCall, CallFailure>;

    /// Tells a worker that the end of a call is safe: the edge has the whole answer, or the log has. Its result need not be
    /// kept any longer.
    fn acknowledge(&self, _worker: &WorkerId, _call: CallId) {}

    /// Makes sure that updates of the resource come as [`resource_updates`](Self::resource_updates). Counted: as many `unsubscribe`s end it. Dropped before its
    /// end, it does not count. `caller` is who asks for it; `None` for what was granted before.
    ///
    /// # Errors
    /// When no pool has the resource, or its backend refuses.
    async fn subscribe(&self, caller: Option<&Caller>, uri: &str) -> Result<(), RpcError>;

    /// Takes one `subscribe` back, even if it is dropped before its end.
    async fn unsubscribe(&self, uri: &str);

    /// Tells every worker that a legacy session is over.
    async fn end_session(&self, session: &SessionId);
}
