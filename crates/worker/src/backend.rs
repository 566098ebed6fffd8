//! The seam between the worker runtime and whatever runs the tools.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use shoal_ports::{
    Call, CallFailure, CallOutcome, OwnLists, PoolCatalog, ResourceUpdated, SessionId,
    SessionState, StateDoor,
};
use shoal_protocol::{Method, Outcome, RawJson, RpcError};
use shoal_telemetry::metrics::Transport;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

/// Something that runs tools, resources and prompts: an rmcp service, a stdio command, …
///
/// The runtime bounds how many calls run at once, keeps deadlines, and keeps results for those who
/// attach; a backend only runs calls.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Whether it is ready and what it offers. The catalog's `generations` grow with each change. Code that runs in Shoal's
    /// process may also announce changes that the lists do not show; an MCP server's announcements count only if they do.
    fn state(&self) -> watch::Receiver<BackendState>;

    /// What changes of the resources that were subscribed to. A receiver that is told that it has lagged is to assume that all of them have.
    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated>;

    /// Who sees other lists than the catalog. It answers the list methods of these callers, and of all if the catalog says so,
    /// with all pages in one.
    fn own_lists(&self) -> watch::Receiver<OwnLists> {
        watch::channel(OwnLists::default()).1
    }

    /// Runs one call to its end. When [`CallContext::cancelled`] fires it should end soon; the runtime
    /// drops the future a little later. Whatever goes wrong becomes an outcome that tells whether
    /// anything was executed.
    async fn run(&self, call: &Call, context: &CallContext) -> CallOutcome;

    /// Starts reporting updates of a resource. Idempotent.
    async fn subscribe(&self, uri: &str) -> Result<(), RpcError>;

    /// Stops reporting updates of a resource.
    async fn unsubscribe(&self, uri: &str);

    /// How often what runs the tools was started anew, after it had ended or could not be started.
    fn restarts(&self) -> u64 {
        0
    }

    /// What a server that failed wrote last for its operators, line by line. It may hold secrets: it is for logs, and for the
    /// terminal of whoever started the server.
    fn last_words(&self) -> Vec<String> {
        Vec::new()
    }

    /// What carries its messages, for metrics.
    fn transport(&self) -> Transport {
        Transport::Pipe
    }

    /// Whether what runs a legacy session's calls is that session's alone, and runs.
    fn has_session(&self, _session: &SessionId) -> bool {
        false
    }

    /// For how many legacy sessions that is so.
    fn sessions(&self) -> usize {
        0
    }

    /// A legacy session is over.
    async fn end_session(&self, _session: &SessionId) {}

    /// Ends everything the backend runs, bounded in time.
    async fn shutdown(&self);
}

/// Whether a backend can take calls.
#[derive(Clone, Debug, Default)]
pub struct BackendState {
    /// What it offers; `None` while it is not ready.
    pub catalog: Option<Arc<PoolCatalog>>,
    /// Why it is not ready, or what is degraded.
    pub detail: Option<String>,
}

impl BackendState {
    /// How `detail` begins while a backend that was never ready cannot be started, for a reason that does not pass by itself.
    pub const CANNOT_START: &str = "cannot start: ";
}

/// A running call's way back to its client.
///
/// Cheap to clone; outliving the call is harmless (everything is refused then).
#[derive(Clone)]
pub struct CallContext {
    line: Arc<dyn CallLine>,
}

/// How long a call waits in its backend.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience<'a> {
    /// As long as for a place of its pool; what there is too little of.
    OfPool(&'a str),
    /// Until its own deadline.
    OfCall,
}

/// What the runtime implements behind [`CallContext`].
#[async_trait]
pub(crate) trait CallLine: StateDoor {
    /// As [`CallLine::notify`] when that need not wait; else gives back what it was given.
    fn notify_now(
        &self,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<(), (Method, Option<RawJson>)>;
    async fn notify(&self, method: Method, params: Option<RawJson>);
    async fn wait(
        &self,
        patience: Patience<'_>,
        ready: BoxFuture<'_, Result<(), CallFailure>>,
    ) -> Result<(), CallFailure>;
    async fn ask(&self, method: Method, params: Option<RawJson>) -> Outcome;
    async fn close_stream(&self, retry: Duration);
    fn cancelled(&self) -> &CancellationToken;
}

impl CallContext {
    pub(crate) fn new(line: Arc<dyn CallLine>) -> Self {
        Self { line }
    }

    /// As [`CallContext::notify`] when the way back is not full.
    ///
    /// # Errors
    /// With what it was given, when it is.
    pub(crate) fn notify_now(
        &self,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<(), (Method, Option<RawJson>)> {
        self.line.notify_now(method, params)
    }

    /// Waits for what the call needs before it can begin, as it waits for a place of its pool: it has none meanwhile, counts
    /// as queued, and is refused as overloaded once it has waited as long as it may.
    ///
    /// # Errors
    /// Those of `ready`; or the call has waited too long, or has ended.
    pub(crate) async fn wait<T: Send>(
        &self,
        patience: Patience<'_>,
        ready: impl Future<Output = Result<T, CallFailure>> + Send,
    ) -> Result<T, CallFailure> {
        let mut found = None;
        let ready = async {
            found = Some(ready.await?);
            Ok(())
        };
        self.line.wait(patience, Box::pin(ready)).await?;
        Ok(found.expect("a wait that succeeds has waited to the end"))
    }

    /// Sends `notifications/progress` or `notifications/message` to the caller. Waits while the way
    /// back is full. Log messages that the caller did not ask for are dropped here.
    pub async fn notify(&self, method: Method, params: Option<RawJson>) {
        self.line.notify(method, params).await;
    }

    /// Puts a request to the client and waits for its answer, however long the client takes (the
    /// call's deadline bounds it). The answer is an error at once when the client did not declare the
    /// capability that the request needs.
    pub async fn ask(&self, method: Method, params: Option<RawJson>) -> Outcome {
        self.line.ask(method, params).await
    }

    /// What the tools keep in the caller's session. It refuses everything when the caller has none.
    pub fn session_state(&self) -> SessionState {
        SessionState::new(Arc::clone(&self.line) as _)
    }

    /// Asks that the client's connection be closed and polled again later (SEP-1699).
    pub async fn close_stream(&self, retry: Duration) {
        self.line.close_stream(retry).await;
    }

    /// Fires when the call is cancelled or its deadline passes.
    pub fn cancelled(&self) -> &CancellationToken {
        self.line.cancelled()
    }
}
