//! The seam between whoever has a request and the pools that run it.

use std::sync::Arc;

use async_trait::async_trait;
use shoal_protocol::{Method, RawJson, RpcError};
use tokio::sync::watch;

use crate::{
    Binding, Call, CallFailure, Durability, RunningCall, ServerFacts, SessionId, WorkerId,
};

/// Finds the pool for a call, checks the call against the catalog, and runs it on a worker.
///
/// The era bridge stands inside: a legacy caller only ever sees [`Ask`](crate::CallEventKind::Ask)
/// events and complete results; a modern caller only ever sees results, which may be
/// `InputRequiredResult`s with a sealed `requestState`.
///
/// Errors that belong to the request (unknown tool, arguments that fail the schema, a bad cursor) come
/// back as a finished call, so that they take the same way as a backend's.
#[async_trait]
pub trait Dispatcher: Send + Sync + 'static {
    /// The server's facts now; the receiver tells of changes.
    fn facts(&self) -> watch::Receiver<Arc<ServerFacts>>;

    /// How this call must be carried. Unknown names are `Repeatable`: they will only be refused.
    fn durability(&self, method: &Method, params: Option<&RawJson>) -> Durability;

    /// Checks the `Mcp-Param-*` headers of a modern `tools/call` against its arguments.
    /// `header` gets the lower-case part after `Mcp-Param-`.
    ///
    /// # Errors
    /// -32020 when a header that the tool's schema asks for is missing or differs.
    fn check_param_headers(
        &self,
        params: Option<&RawJson>,
        header: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<(), RpcError>;

    /// The worker that would run this call now, and its ledger's number, so that the journal can name both before it is
    /// started;
    /// `None` when the call needs none (a list, an unknown tool) or none is there. `tried` are out.
    fn choose(
        &self,
        method: &Method,
        params: Option<&RawJson>,
        session: Option<&SessionId>,
        tried: &[WorkerId],
    ) -> Option<Binding>;

    /// Runs a call: the four backend methods and the four list methods. Starting an id that is known
    /// to its worker attaches to it. A call with a [`worker`](Call::worker) runs there or not at all.
    ///
    /// Not cancellation safe once it has begun: if the future is dropped the call may or may not run.
    async fn start(&self, call: Call) -> Result<RunningCall, CallFailure>;

    /// As [`start`](Self::start), where that takes no waiting: mostly, with a worker in this process. `None` where it
    /// does, and then nothing has been done. To be called in a runtime.
    fn start_now(&self, _call: &Call) -> Option<Result<RunningCall, CallFailure>> {
        None
    }

    /// Goes on with a call that an earlier owner of its session began, from after event `after`.
    ///
    /// A journaled call is attached to at its worker, which is waited for a moment if it is not there; a
    /// worker that has certainly never seen the call starts it. A call that is safe to repeat and
    /// cannot be found is started anew on any worker.
    ///
    /// # Errors
    /// `OutcomeUnknown` when a journaled call's worker is gone or has forgotten it.
    async fn resume(&self, call: Call, after: u64) -> Result<RunningCall, CallFailure>;

    /// Makes sure that updates of the resource arrive on the bus as
    /// [`ResourceUpdated`](crate::BusEvent::ResourceUpdated). Counted: as many `unsubscribe`s end it. Dropped before its
    /// end, it does not count.
    ///
    /// # Errors
    /// When no pool has the resource, or its backend refuses.
    async fn subscribe(&self, uri: &str) -> Result<(), RpcError>;

    /// Takes one `subscribe` back, even if it is dropped before its end.
    async fn unsubscribe(&self, uri: &str);

    /// Tells every worker that a legacy session is over.
    async fn end_session(&self, session: &SessionId);
}
