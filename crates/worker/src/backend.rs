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

/// Runs tools, resources and prompts. The runtime limits concurrency, enforces deadlines and keeps
/// results.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Returns the backend's readiness and catalog, whose `generations` count changes. In-process
    /// code counts each announced change, even if its lists stay equal. The lists of an MCP server
    /// count only if they differ.
    fn state(&self) -> watch::Receiver<BackendState>;

    /// Returns updates of subscribed resources. A receiver that lags must assume that every
    /// resource changed.
    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated>;

    /// Returns the owners whose lists differ from the catalog. For them, or for everyone if the
    /// catalog says so, the backend answers list methods, with all pages in one result.
    fn own_lists(&self) -> watch::Receiver<OwnLists> {
        watch::channel(OwnLists::default()).1
    }

    /// Runs one call to its end. An error's outcome says whether the tool ran. Some time after
    /// [`CallContext::cancelled`] fires, the runtime drops the future.
    async fn run(&self, call: &Call, context: &CallContext) -> CallOutcome;

    /// Starts reporting updates of a resource. Idempotent.
    async fn subscribe(&self, uri: &str) -> Result<(), RpcError>;

    /// Stops reporting updates of a resource.
    async fn unsubscribe(&self, uri: &str);

    /// Counts restarts of the process or connection that runs the tools.
    fn restarts(&self) -> u64 {
        0
    }

    /// Returns a failed server's last stderr lines. They may hold secrets: show them only in logs and at the
    /// operator's terminal.
    fn last_words(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the transport label for metrics.
    fn transport(&self) -> Transport {
        Transport::Pipe
    }

    /// Returns whether a process or connection serves this session alone.
    fn has_session(&self, _session: &SessionId) -> bool {
        false
    }

    /// Counts the legacy sessions for which [`has_session`](Self::has_session) holds.
    fn sessions(&self) -> usize {
        0
    }

    /// Releases everything kept for a legacy session.
    async fn end_session(&self, _session: &SessionId) {}

    /// Ends all processes and connections, in bounded time.
    async fn shutdown(&self);
}

/// A backend's readiness and catalog.
#[derive(Clone, Debug, Default)]
pub struct BackendState {
    /// The offered tools, prompts and resources; `None` until ready.
    pub catalog: Option<Arc<PoolCatalog>>,
    /// Why the backend is not ready or is degraded.
    pub detail: Option<String>,
}

impl BackendState {
    /// The prefix of `detail` if a retry alone will not help.
    pub const CANNOT_START: &str = "cannot start: ";
}

/// The connection from a running call to its client.
///
/// Clones are cheap. After the call ends, no method reaches the client.
#[derive(Clone)]
pub struct CallContext {
    line: Arc<dyn CallLine>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum BackendPatience<'a> {
    OfPool(&'a str),
    OfCall,
}

/// The runtime's side of [`CallContext`].
#[async_trait]
pub(crate) trait CallLine: StateDoor {
    fn notify_now(
        &self,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<(), (Method, Option<RawJson>)>;
    async fn notify(&self, method: Method, params: Option<RawJson>);
    async fn wait(
        &self,
        patience: BackendPatience<'_>,
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

    /// Returns the arguments if the buffer is full.
    pub(crate) fn notify_now(
        &self,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<(), (Method, Option<RawJson>)> {
        self.line.notify_now(method, params)
    }

    /// Waits for `ready` before the call begins. Meanwhile the call has no actor and counts as
    /// queued. With `BackendPatience::OfPool`, it waits at most as long as a call may be queued.
    ///
    /// # Errors
    /// The error of `ready`; or the call waited too long or has ended.
    pub(crate) async fn wait<T: Send>(
        &self,
        patience: BackendPatience<'_>,
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

    /// Sends `notifications/progress` or `notifications/message` to the caller. Waits while the
    /// event buffer is full. Drops log messages that the caller did not request.
    pub async fn notify(&self, method: Method, params: Option<RawJson>) {
        self.line.notify(method, params).await;
    }

    /// Sends a request to the client, and waits until the call's deadline for the answer. Fails at once if
    /// the client lacks the capability.
    pub async fn ask(&self, method: Method, params: Option<RawJson>) -> Outcome {
        self.line.ask(method, params).await
    }

    /// Returns the caller's session state. It refuses every access if the caller has no session.
    pub fn session_state(&self) -> SessionState {
        SessionState::new(Arc::clone(&self.line) as _)
    }

    /// Asks the edge to close the stream, which the client polls again after `retry` (SEP-1699).
    pub async fn close_stream(&self, retry: Duration) {
        self.line.close_stream(retry).await;
    }

    /// Returns the token that fires on cancellation or at the deadline.
    pub fn cancelled(&self) -> &CancellationToken {
        self.line.cancelled()
    }
}
