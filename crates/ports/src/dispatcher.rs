//! The seam between edges or sessions and the pools.

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
/// Planning settles a call's tool, pool, worker and whether it may be repeated, and checks its arguments. Refusals
/// happen here, before any store access. The caller journals the plan if necessary, then starts it.
///
/// Legacy callers receive [`Ask`](crate::CallEventKind::Ask) events and complete results. Modern callers receive
/// results, among them `InputRequiredResult`s with a sealed `requestState`.
#[async_trait]
pub trait Dispatcher: Send + Sync + 'static {
    /// The server's current facts. The receiver reports changes.
    fn facts(&self) -> watch::Receiver<Arc<ServerFacts>>;

    /// Returns the server's facts once a newly started node knows all pools, for answers that guide a client's later
    /// requests. Cancellation safe.
    ///
    /// # Errors
    /// `NotReady` if the pools do not arrive in time.
    async fn settled_facts(&self) -> Result<SettledFacts, CallFailure> {
        Ok(SettledFacts {
            facts: self.facts().borrow().clone(),
            lacks: None,
        })
    }

    /// Reports updates of [subscribed](Self::subscribe) resources, in each worker's order. A lagging receiver must
    /// assume that all changed.
    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated>;

    /// Checks a modern call's `Mcp-Param-*` headers. `header` takes the lower-case part after `Mcp-Param-`.
    ///
    /// # Errors
    /// -32020 if a required header is missing or differs.
    fn check_param_headers(
        &self,
        caller: &Caller,
        params: Option<&RawJson>,
        header: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<(), RpcError>;

    /// Whether the named tool requires a client with tasks.
    fn requires_task(&self, _caller: &Caller, _params: Option<&RawJson>) -> bool {
        false
    }

    /// Whether the named tool's calls may be tasks.
    fn may_be_task(&self, _params: Option<&RawJson>) -> bool {
        true
    }

    /// Whether the named tool declares that its calls may be tasks. Also true if the caller cannot use the tool:
    /// planning refuses that.
    fn says_may_be_task(&self, _caller: &Caller, _params: Option<&RawJson>) -> bool {
        true
    }

    /// Converts arguments to the tool's schema, where pools want this. Runs first.
    fn coerce(&self, _body: &mut Body) {}

    /// Plans a call, or answers a list method. Decides [`Call::repeat`] and keeps a given [`worker`](Call::worker).
    ///
    /// Waits for a worker if a call that must be journaled has none. Cancellation safe: a plan reserves no resources.
    ///
    /// # Errors
    /// The answer instead: a list, a request error, or `Failed` if a limit was reached or no worker can run the call.
    fn plan(&self, call: Call) -> Planning;

    /// Plans a legacy call for its session's owner. `None` if planning would wait, or is left to the owner. The final
    /// planner reports the policy decision.
    fn plan_ahead(&self, call: Call) -> Option<EdgePlan> {
        match self.plan(call) {
            Either::Left(planned) => RequestPlan::settled(planned.into_inner()),
            Either::Right(_) => None,
        }
    }

    /// Whether plans depend on the caller's client.
    fn asks_of_clients(&self) -> bool {
        false
    }

    /// Whether plans may depend on the caller's grant.
    fn asks_of_grants(&self) -> bool {
        false
    }

    /// Counts a planned call that another node starts, until the guard is dropped. Otherwise calls would pile up on a
    /// worker that was just idle.
    fn expect(&self, _worker: &WorkerId) -> Option<Expected> {
        None
    }

    /// Whether the planned worker is present, and the caller has not failed there too often. Admits one call to a
    /// worker on trial.
    fn takes(&self, _worker: &WorkerId, _plan: &CallPlan) -> bool {
        true
    }

    /// Picks a worker outside `tried` after the previous one certainly did not execute the call. `None` if no worker is
    /// left, or enough were tried.
    fn replan(&self, plan: &CallPlan, tried: &[WorkerId]) -> Option<Binding>;

    /// Starts a planned call, or attaches if its worker knows it. A given [`worker`](Call::worker) is the only choice.
    ///
    /// Call within a runtime. If no waiting is needed, the call has begun, and may have ended, on return.
    ///
    /// # Cancel safety
    /// If a polled future is dropped, the call may or may not run.
    fn start(&self, plan: &CallPlan) -> Starting;

    /// Resumes an earlier owner's call after event `after`.
    ///
    /// Attaches to a journaled call at its worker, which starts it if it certainly has not seen it. A repeatable call
    /// that cannot be found starts anew.
    ///
    /// # Errors
    /// `OutcomeUnknown` if a journaled call's worker is gone or has forgotten it.
    async fn resume(&self, call: Call, after: u64) -> Result<RunningCall, CallFailure>;

    /// Tells a worker that it may drop a delivered or logged result.
    fn acknowledge(&self, _worker: &WorkerId, _call: CallId) {}

    /// Subscribes to a resource's [updates](Self::resource_updates). Each call needs one `unsubscribe`, unless its
    /// future was dropped. `caller` is `None` for an earlier subscription.
    ///
    /// # Errors
    /// If no pool has the resource, or its backend refuses.
    async fn subscribe(&self, caller: Option<&Caller>, uri: &str) -> Result<(), RpcError>;

    /// Takes back one `subscribe`, even if the future is dropped.
    async fn unsubscribe(&self, uri: &str);

    /// Tells all workers that a session has ended.
    async fn end_session(&self, session: &SessionId);
}
