//! The seam between edges or sessions and the pools that run their requests.

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

/// Plans calls and runs them on workers.
///
/// Planning settles a call's tool, pool, worker and whether it may be repeated, and checks its arguments. All refusals
/// happen here, so they cost no store access. The session journals the plan if necessary, then starts it.
///
/// The dispatcher bridges the eras. A legacy caller receives [`Ask`](crate::CallEventKind::Ask) events and complete
/// results. A modern caller receives results only, among them `InputRequiredResult`s with a sealed `requestState`.
#[async_trait]
pub trait Dispatcher: Send + Sync + 'static {
    /// The server's current facts. The receiver reports changes.
    fn facts(&self) -> watch::Receiver<Arc<ServerFacts>>;

    /// Waits for the pools that a node which has just started does not know yet, then returns the server's facts. Use
    /// it for answers that decide what a client asks for later. Cancellation safe.
    ///
    /// # Errors
    /// `NotReady` if the pools do not arrive in time.
    async fn settled_facts(&self) -> Result<SettledFacts, CallFailure> {
        Ok(SettledFacts {
            facts: self.facts().borrow().clone(),
            lacks: None,
        })
    }

    /// Reports updates of [subscribed](Self::subscribe) resources, in each worker's order. A receiver that has lagged
    /// must assume that all of them changed.
    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated>;

    /// Checks the `Mcp-Param-*` headers of a modern `tools/call` against its arguments. `header` receives the
    /// lower-case part after `Mcp-Param-`.
    ///
    /// # Errors
    /// -32020 if a header that the tool's schema requires is missing or differs.
    fn check_param_headers(
        &self,
        caller: &Caller,
        params: Option<&RawJson>,
        header: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<(), RpcError>;

    /// Whether a `tools/call` names a tool that requires a client with tasks.
    fn requires_task(&self, _caller: &Caller, _params: Option<&RawJson>) -> bool {
        false
    }

    /// Whether a `tools/call` names a tool whose calls may be tasks.
    fn may_be_task(&self, _params: Option<&RawJson>) -> bool {
        true
    }

    /// Whether the tool of a `tools/call` declares that its calls may be tasks. Also true if the caller cannot use the
    /// tool, because planning refuses that call.
    fn says_may_be_task(&self, _caller: &Caller, _params: Option<&RawJson>) -> bool {
        true
    }

    /// Converts arguments to the types of the tool's schema, for pools that want this. Runs before anything reads them.
    fn coerce(&self, _body: &mut Body) {}

    /// Plans a call of the four backend methods, or answers one of the four list methods. The plan decides
    /// [`Call::repeat`]. A call with a [`worker`](Call::worker) keeps it.
    ///
    /// If a call that must be journaled has no worker, this waits as long as for a worker that is away. Cancellation
    /// safe: a plan reserves no resources.
    ///
    /// # Errors
    /// The answer instead of a plan: a list, a request error (unknown tool, arguments that fail the schema, a bad
    /// cursor), or `Failed` if a limit was reached or no worker can run the call.
    fn plan(&self, call: Call) -> Planning;

    /// Plans a legacy call before its session's owner sees it. `None` if planning would wait, or is left to the owner,
    /// which then plans afresh. The node that makes the final plan reports the policy decision.
    fn plan_ahead(&self, call: Call) -> Option<EdgePlan> {
        match self.plan(call) {
            Either::Left(planned) => RequestPlan::settled(planned.into_inner()),
            Either::Right(_) => None,
        }
    }

    /// Whether plans depend on the caller's client, so that only a node that knows the client can plan.
    fn asks_of_clients(&self) -> bool {
        false
    }

    /// Whether plans may depend on the caller's grant, so that the planner needs it.
    fn asks_of_grants(&self) -> bool {
        false
    }

    /// Counts a call that was planned here and starts on another node, until the returned guard is dropped. Otherwise
    /// all calls would go to the worker that was idle a moment ago.
    fn expect(&self, _worker: &WorkerId) -> Option<Expected> {
        None
    }

    /// Whether this node sees the planned worker as present, and the plan's caller has not failed there too often.
    /// Admits one call to a worker on trial.
    fn takes(&self, _worker: &WorkerId, _plan: &CallPlan) -> bool {
        true
    }

    /// Picks another worker for a planned call that the previous worker certainly did not execute, excluding `tried`.
    /// `None` if there is no other, or enough were tried. Checks are not repeated.
    fn replan(&self, plan: &CallPlan, tried: &[WorkerId]) -> Option<Binding>;

    /// Starts a planned call. Starting an id that its worker knows attaches to it. A call with a
    /// [`worker`](Call::worker) runs only there.
    ///
    /// Call this within a runtime. If no waiting is needed, the call has begun, and may have ended, when this returns.
    /// Otherwise work begins when the future is first polled. From then on it is not cancellation safe: if the future
    /// is dropped, the call may or may not run.
    fn start(&self, plan: &CallPlan) -> Starting;

    /// Resumes a call of an earlier session owner after event `after`.
    ///
    /// For a journaled call, the dispatcher attaches at its worker and briefly waits for it if it is away. A worker
    /// that certainly has not seen the call starts it. A call that is safe to repeat and cannot be found starts anew on
    /// any worker.
    ///
    /// # Errors
    /// `OutcomeUnknown` if a journaled call's worker is gone or has forgotten it.
    async fn resume(&self, call: Call, after: u64) -> Result<RunningCall, CallFailure>;

    /// Tells a worker that the edge or the log has the whole answer, so the worker may drop the result.
    fn acknowledge(&self, _worker: &WorkerId, _call: CallId) {}

    /// Requests updates of a resource through [`resource_updates`](Self::resource_updates). Subscriptions are counted:
    /// each needs one `unsubscribe`. A future dropped before its end does not count. `caller` is `None` for a
    /// subscription that was granted earlier.
    ///
    /// # Errors
    /// If no pool has the resource, or its backend refuses.
    async fn subscribe(&self, caller: Option<&Caller>, uri: &str) -> Result<(), RpcError>;

    /// Takes back one `subscribe`, even if the future is dropped before its end.
    async fn unsubscribe(&self, uri: &str);

    /// Tells all workers that a legacy session has ended.
    async fn end_session(&self, session: &SessionId);
}
