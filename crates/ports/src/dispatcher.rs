use std::sync::Arc;

use async_trait::async_trait;
use shoal_protocol::{Body, RawJson, Request, RpcError};
use tokio::sync::{broadcast, watch};

use crate::{
    Binding, Call, CallFailure, CallId, CallPlan, Caller, Drawn, Expected, Planning,
    ResourceUpdated, RunningCall, ServerFacts, SessionId, SessionRef, SettledFacts, Starting,
    WorkerId,
};

/// Plans calls and runs them on workers.
///
/// Planning chooses a call's tool, pool and worker, decides whether the call may be repeated, and checks or refuses
/// the call before any store access. The caller of `plan` journals the plan if necessary, then starts it.
///
/// Legacy callers receive [`Ask`](crate::CallEventKind::Ask) events and complete results. Modern callers receive
/// results, among them `InputRequiredResult`s with a sealed `requestState`.
#[async_trait]
pub trait Dispatcher: Send + Sync + 'static {
    /// Returns the server's current facts. The receiver reports changes.
    fn facts(&self) -> watch::Receiver<Arc<ServerFacts>>;

    /// Returns the server's facts once a newly started node knows all pools, for answers on which a client bases
    /// later requests. Cancellation safe.
    ///
    /// # Errors
    /// `NotReady` if the pools do not arrive in time.
    async fn settled_facts(&self) -> Result<SettledFacts, CallFailure> {
        Ok(SettledFacts {
            facts: self.facts().borrow().clone(),
            lacks: None,
        })
    }

    /// Reports updates of [subscribed](Self::subscribe) resources. Updates from one worker keep their order. A receiver
    /// that lags must assume that all resources changed.
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

    /// Whether the tool in `params` works only for clients that support tasks.
    fn requires_task(&self, _caller: &Caller, _params: Option<&RawJson>) -> bool {
        false
    }

    /// Whether calls of the tool in `params` may become tasks.
    fn may_be_task(&self, _params: Option<&RawJson>) -> bool {
        true
    }

    /// Whether the tool in `params` declares that its calls may be tasks. Also true if the caller cannot use the
    /// tool, because planning refuses such a call.
    fn says_may_be_task(&self, _caller: &Caller, _params: Option<&RawJson>) -> bool {
        true
    }

    /// Converts a message's arguments to the types of the tool's schema, if the tool's pool asks for this. Call it
    /// before planning.
    fn coerce(&self, _body: &mut Body) {}

    /// Plans a call, or answers a list method. Decides [`Call::repeat`]. A call that has a [`worker`](Call::worker) runs
    /// once, at this worker.
    ///
    /// Waits for a worker if a call that must be journaled has none. Cancellation safe: a plan reserves no resources.
    ///
    /// # Errors
    /// The answer instead: a list, a request error, or `Failed` if a limit was reached or no worker can run the call.
    /// `WorkerAway` if the call's worker is unknown here, or is not in the pool that has the tool in this node's
    /// catalog.
    fn plan(&self, call: Call) -> Planning;

    /// Draws a worker that is not in `tried` for a legacy request that must run once. Reads only the catalog and the
    /// load, because the session's owner [plans](Self::plan) the call and knows the client and its grant.
    fn draw(&self, _to: &SessionRef, _request: &Request, _tried: &[WorkerId]) -> Drawn {
        Drawn::Nothing
    }

    /// Whether plans may depend on the caller's grant.
    fn asks_of_grants(&self) -> bool {
        false
    }

    /// Adds a planned call, which another node starts, to the worker's load until the guard is dropped. Otherwise
    /// calls would pile up on a worker that was just idle.
    fn expect(&self, _worker: &WorkerId) -> Option<Expected> {
        None
    }

    /// Whether the planned worker is connected and accepts the call. Refuses a caller whose calls failed there too
    /// often. A worker whose circuit breaker is half open gets one call.
    fn takes(&self, _worker: &WorkerId, _plan: &CallPlan) -> bool {
        true
    }

    /// Chooses another worker that is not in `tried`. Use this only if the previous worker certainly did not execute
    /// the call. `None` if there is no other worker, or enough were tried.
    fn replan(&self, plan: &CallPlan, tried: &[WorkerId]) -> Option<Binding>;

    /// Starts a planned call, or attaches to it if its worker knows it. If the call has a [`worker`](Call::worker), no
    /// other may run it.
    ///
    /// Call this within a Tokio runtime. If starting needs no waiting, the call has begun when this returns, and may
    /// have ended.
    ///
    /// # Cancel safety
    /// If the future is dropped after a poll, the call may or may not run.
    fn start(&self, plan: &CallPlan) -> Starting;

    /// Resumes a call that an earlier session owner began, after the event `after`.
    ///
    /// Attaches to a journaled call at its worker. The worker starts the call if it certainly has not seen the call
    /// before. A repeatable call that no worker knows starts again.
    ///
    /// # Errors
    /// `OutcomeUnknown` if a journaled call's worker is gone or has forgotten the call.
    async fn resume(&self, call: Call, after: u64) -> Result<RunningCall, CallFailure>;

    /// Tells a worker that it may drop a call's result, which was delivered or logged.
    fn acknowledge(&self, _worker: &WorkerId, _call: CallId) {}

    /// Subscribes to a resource's [updates](Self::resource_updates). Each call needs one `unsubscribe`, unless its
    /// future was dropped. `caller` is `None` if the subscription was granted earlier.
    ///
    /// # Errors
    /// If no pool has the resource, or its backend refuses.
    async fn subscribe(&self, caller: Option<&Caller>, uri: &str) -> Result<(), RpcError>;

    /// Takes back one `subscribe` of the resource. Completes even if the future is dropped.
    async fn unsubscribe(&self, uri: &str);

    /// Tells all workers that a session has ended.
    async fn end_session(&self, session: &SessionId);
}
