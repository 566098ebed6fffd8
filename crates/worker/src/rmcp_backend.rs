//! A backend that runs any rmcp `ServerHandler` in this process.
//!
//! | module | part |
//! |---|---|
//! | `invoke` | raw parameters → the handler's method → raw result |
//! | `context` | the call's data for handlers |
//! | `peers` | rmcp peers, lent to one call at a time |
//! | `client_end`, `wire` | a peer's messages and their receivers |
//! | `host` | Shoal as a client of the handler |
//! | `catalog`, `hub` | the handler's lists and announcements |

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use futures::FutureExt;
use rmcp::ServerHandler;
use shoal_ports::{Call, CallOutcome, ResourceUpdated};
use shoal_protocol::RpcError;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use crate::backend::{Backend, BackendState, CallContext};

mod catalog;
mod client_end;
mod context;
mod host;
mod hub;
mod invoke;
mod peers;
#[cfg(test)]
mod tests;
mod wire;

use catalog::Lister;
pub use context::{CallerSession, RequestContextExt};
use host::Host;
use hub::HandlerHub;
use peers::PeerCache;

/// Runs the calls of all clients on one shared handler.
///
/// * Each running call has a [`Peer`](rmcp::Peer) that reaches its client. A peer serves one caller
///   (a session, or a principal without one), so a clone that a tool keeps after the call reaches
///   only later calls of that caller. Shoal keeps about a thousand idle peers, and a clone of each
///   can still announce changed lists and resources.
/// * A peer describes its client in revision 2025-11-25, so that a tool can ask clients of every
///   revision. The context's `meta` holds the request's own `_meta`.
/// * [`RequestContextExt`] gives the call's principal, deadline, trace and session. The context's
///   extensions also hold the [`SessionState`](shoal_ports::SessionState).
/// * Shoal is a permanent client: it calls `on_initialized`, reads the lists and subscribes to resources.
///
/// rmcp logs each service loop at `info`; the filter `rmcp=warn` hides that.
pub struct RmcpBackend<H: ServerHandler> {
    handler: Arc<H>,
    hub: Arc<HandlerHub>,
    peers: PeerCache,
    host: Arc<Host<H>>,
    lister: AbortHandle,
    state: watch::Receiver<BackendState>,
    requests: AtomicI64,
}

impl<H: ServerHandler> RmcpBackend<H> {
    /// Reads the handler's lists. If that fails, reports why and reads again.
    pub async fn start(handler: H) -> Arc<Self> {
        let handler = Arc::new(handler);
        let hub = Arc::new(HandlerHub::new());
        let host = Arc::new(Host::start(Arc::clone(&handler), Arc::clone(&hub)));
        let (publish, state) = watch::channel(BackendState::default());
        let lister = Lister {
            handler: Arc::clone(&handler),
            host: Arc::clone(&host),
            hub: Arc::clone(&hub),
            state: publish,
        };
        let catalog = lister.start().await;
        Arc::new(Self {
            handler,
            peers: PeerCache::new(Arc::clone(&hub)),
            hub,
            host,
            lister: tokio::spawn(lister.follow(catalog)).abort_handle(),
            state,
            requests: AtomicI64::new(1),
        })
    }

    fn next_id(&self) -> i64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }
}

#[async_trait]
impl<H: ServerHandler> Backend for RmcpBackend<H> {
    fn state(&self) -> watch::Receiver<BackendState> {
        self.state.clone()
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.hub.resource_updates()
    }

    async fn run(&self, call: &Call, context: &CallContext) -> CallOutcome {
        let lent = self.peers.lend(context, &call.caller);
        let ran = invoke::invoke(&*self.handler, call, context, lent.peer(), self.next_id());
        let outcome = invoke::outcome(ran.await);
        if !context.cancelled().is_cancelled() {
            lent.give_back();
        }
        // As rmcp does, stops what the tool left running.
        context.cancelled().cancel();
        outcome
    }

    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        self.host.subscribe(uri).await
    }

    async fn unsubscribe(&self, uri: &str) {
        self.host.unsubscribe(uri).await;
    }

    async fn shutdown(&self) {
        self.lister.abort();
        self.peers.close();
        self.host.close();
    }
}

impl<H: ServerHandler> Drop for RmcpBackend<H> {
    fn drop(&mut self) {
        self.lister.abort();
        self.host.close();
    }
}

async fn guarded<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let done = AssertUnwindSafe(future).catch_unwind().await;
    if done.is_err() {
        tracing::error!("the handler panicked");
    }
    done
}
