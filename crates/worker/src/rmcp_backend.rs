//! A backend that runs any rmcp `ServerHandler` in this process.
//!
//! | | |
//! |---|---|
//! | `invoke` | raw parameters → the handler's method → raw result |
//! | `peers`, `gauge` | the rmcp peer that each call borrows |
//! | `seat`, `wire` | what goes through a peer, and to whom |
//! | `catalog`, `hub` | what the handler offers and announces |

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use futures::FutureExt;
use parking_lot::Mutex;
use rmcp::ServerHandler;
use rmcp::model::{
    ClientCapabilities, ClientNotification, Implementation, InitializeRequestParams,
    InitializedNotification, JsonRpcMessage, ProtocolVersion, RequestId, SubscribeRequestParams,
    UnsubscribeRequestParams,
};
use rmcp::service::{Peer, RequestContext, RoleServer, RunningService, serve_directly};
use shoal_ports::{BusEvent, Call, CallOutcome};
use shoal_protocol::RpcError;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use crate::backend::{Backend, BackendState, CallContext};

mod catalog;
mod gauge;
mod hub;
mod invoke;
mod peers;
mod seat;
#[cfg(test)]
mod tests;
mod wire;

use catalog::Lister;
use hub::Hub;
use peers::Peers;
use seat::{InProcess, Seat};

/// Runs the calls of all clients on one shared handler.
///
/// * Each call has a [`Peer`] of its own while it runs: what a tool sends through it goes to the call's
///   client, and once the call has ended to nobody. Only announcements (changed lists, updated
///   resources) are taken from any peer at any time.
/// * A peer describes its client in the revision 2025-11-25, where servers may ask their client; the
///   request's own `_meta` is in the context's `meta`. So one tool can ask clients of every revision.
/// * The context's extensions hold the `Arc<`[`Caller`](shoal_ports::Caller)`>`.
/// * The handler meets one client that stays: Shoal itself, to which `on_initialized` is told, for which
///   the lists are read, and in whose name resources are subscribed to.
///
/// rmcp logs each of its service loops at `info`; the filter `rmcp=warn` keeps that out.
pub struct RmcpBackend<H: ServerHandler> {
    handler: Arc<H>,
    hub: Arc<Hub>,
    peers: Peers,
    host: Peer<RoleServer>,
    host_service: Mutex<Option<RunningService<RoleServer, Arc<H>>>>,
    lister: AbortHandle,
    state: watch::Receiver<BackendState>,
    requests: AtomicI64,
    // Keeps a handler's `subscribe` and `unsubscribe` of one resource in order.
    subscribing: tokio::sync::Mutex<()>,
}

impl<H: ServerHandler> RmcpBackend<H> {
    /// Starts a backend, and lists what its handler offers. If that fails it is not ready, says why, and
    /// tries again.
    pub async fn start(handler: H) -> Arc<Self> {
        let handler = Arc::new(handler);
        let hub = Arc::new(Hub::new());
        let seat = Seat::new(Arc::clone(&hub));
        seat.push(JsonRpcMessage::notification(
            ClientNotification::InitializedNotification(InitializedNotification::default()),
        ));
        let host_service = serve_directly(Arc::clone(&handler), InProcess(seat), Some(host()));
        let host = host_service.peer().clone();

        let (publish, state) = watch::channel(BackendState::default());
        let lister = Lister {
            handler: Arc::clone(&handler),
            peer: host.clone(),
            hub: Arc::clone(&hub),
            state: publish,
        };
        let catalog = lister.start().await;
        let lister = tokio::spawn(lister.follow(catalog)).abort_handle();
        Arc::new(Self {
            handler,
            peers: Peers::start(Arc::clone(&hub)).await,
            hub,
            host,
            host_service: Mutex::new(Some(host_service)),
            lister,
            state,
            requests: AtomicI64::new(1),
            subscribing: tokio::sync::Mutex::default(),
        })
    }

    fn next_id(&self) -> i64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    fn host_context(&self) -> RequestContext<RoleServer> {
        RequestContext::new(RequestId::Number(self.next_id()), self.host.clone())
    }
}

#[async_trait]
impl<H: ServerHandler> Backend for RmcpBackend<H> {
    fn state(&self) -> watch::Receiver<BackendState> {
        self.state.clone()
    }

    fn news(&self) -> broadcast::Receiver<BusEvent> {
        self.hub.news()
    }

    async fn run(&self, call: &Call, context: &CallContext) -> CallOutcome {
        let lent = self.peers.lend(context, &call.caller);
        let ran = invoke::invoke(&*self.handler, call, context, lent.peer(), self.next_id());
        let outcome = invoke::outcome(ran.await);
        // As rmcp does when a request is answered: whatever the tool left behind is told to stop.
        context.cancelled().cancel();
        outcome
    }

    #[expect(deprecated, reason = "what subscribing was called until 2025-11-25")]
    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        let _in_order = self.subscribing.lock().await;
        // First, so that an update right after the handler's answer is not missed.
        if !self.hub.subscribe(uri) {
            return Ok(());
        }
        let request = SubscribeRequestParams::new(uri);
        let subscribed = guarded(self.handler.subscribe(request, self.host_context())).await;
        let subscribed = match subscribed {
            Ok(subscribed) => subscribed.map_err(wire::rpc_error),
            Err(_) => Err(RpcError::internal("the handler panicked")),
        };
        if subscribed.is_err() {
            self.hub.unsubscribe(uri);
        }
        subscribed
    }

    #[expect(deprecated, reason = "what unsubscribing was called until 2025-11-25")]
    async fn unsubscribe(&self, uri: &str) {
        let _in_order = self.subscribing.lock().await;
        if self.hub.unsubscribe(uri) {
            let request = UnsubscribeRequestParams::new(uri);
            let done = guarded(self.handler.unsubscribe(request, self.host_context())).await;
            if let Ok(Err(error)) = done {
                tracing::debug!(uri, %error, "the handler did not unsubscribe");
            }
        }
    }

    async fn shutdown(&self) {
        self.lister.abort();
        self.peers.close();
        drop(self.host_service.lock().take());
    }
}

impl<H: ServerHandler> Drop for RmcpBackend<H> {
    fn drop(&mut self) {
        self.lister.abort();
    }
}

/// Shoal, as a client of the handler.
fn host() -> InitializeRequestParams {
    let info = Implementation::new("shoal", env!("CARGO_PKG_VERSION"));
    InitializeRequestParams::new(ClientCapabilities::default(), info)
        .with_protocol_version(ProtocolVersion::V_2025_11_25)
}

/// Catches a panic of the handler where no call of the runtime is around it.
async fn guarded<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let done = AssertUnwindSafe(future).catch_unwind().await;
    if done.is_err() {
        tracing::error!("the handler panicked");
    }
    done
}
