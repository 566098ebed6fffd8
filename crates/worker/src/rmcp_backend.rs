//! A backend that runs any rmcp `ServerHandler` in this process.
//!
//! | | |
//! |---|---|
//! | `invoke` | raw parameters → the handler's method → raw result |
//! | `context` | what a handler may ask of the call that it runs |
//! | `peers` | the rmcp peer that each call borrows from its caller's |
//! | `client_end`, `wire` | what goes through a peer, and to whom |
//! | `host` | Shoal as a client of the handler |
//! | `catalog`, `hub` | what the handler offers and announces |

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
use hub::Hub;
use peers::PeerCache;

/// Runs the calls of all clients on one shared handler.
///
/// * Each call has a [`Peer`](rmcp::Peer) of its own while it runs: what a tool sends through it goes to the call's
///   client. Peers belong to callers: a clone that a tool keeps beyond its call reaches nobody, or a later call of the
///   same caller (its session or, without one, its principal), never another caller. Only announcements (changed lists,
///   updated resources) are taken from any peer at any time, as long as it is kept: the latest thousand or so are.
/// * A peer describes its client in the revision 2025-11-25, where servers may ask their client; the
///   request's own `_meta` is in the context's `meta`. So one tool can ask clients of every revision.
/// * [`RequestContextExt`] says what Shoal knows of the call: its principal, deadline, trace and session. The context's
///   extensions hold the [`SessionState`](shoal_ports::SessionState) of the caller's session too.
/// * The handler meets one client that stays: Shoal itself, to which `on_initialized` is told, for which
///   the lists are read, and in whose name resources are subscribed to.
///
/// rmcp logs each of its service loops at `info`; the filter `rmcp=warn` keeps that out.
pub struct RmcpBackend<H: ServerHandler> {
    handler: Arc<H>,
    hub: Arc<Hub>,
    peers: PeerCache,
    host: Arc<Host<H>>,
    lister: AbortHandle,
    state: watch::Receiver<BackendState>,
    requests: AtomicI64,
}

impl<H: ServerHandler> RmcpBackend<H> {
    /// Starts a backend, and lists what its handler offers. If that fails it is not ready, says why, and
    /// tries again.
    pub async fn start(handler: H) -> Arc<Self> {
        let handler = Arc::new(handler);
        let hub = Arc::new(Hub::new());
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
        // As rmcp does when a request is answered: whatever the tool left behind is told to stop.
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

/// Catches a panic of the handler where no call of the runtime is around it.
async fn guarded<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let done = AssertUnwindSafe(future).catch_unwind().await;
    if done.is_err() {
        tracing::error!("the handler panicked");
    }
    done
}
