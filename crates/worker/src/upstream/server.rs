use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use shoal_ports::{
    Announcement, Call, CallFailure, CallOutcome, ListScope, OwnLists, ResourceUpdated,
};
use shoal_protocol::{Era, Method, RpcError, code};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use super::carry::carry;
use super::connection::ServerConnection;
use super::error::RequestError;
use super::launcher::Launcher;
use super::modern_side::ModernSide;
use super::subscribing;
use super::supervisor::{Lead, Supervisor};
use crate::{BackendState, CallContext};

/// Dropping it closes the connections in the background.
pub(crate) struct Server {
    pub(crate) launcher: Arc<Launcher>,
    pub(crate) modern_side: Arc<ModernSide>,
    state: watch::Receiver<BackendState>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

impl Server {
    /// Opens the lead connection in the background.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub(crate) fn start(launcher: Arc<Launcher>, lead: impl Lead) -> Self {
        let (sender, state) = watch::channel(BackendState {
            catalog: None,
            detail: Some(Announcement::STARTING.to_owned()),
        });
        let modern_side = Arc::new(ModernSide::new(launcher.clone()));
        let supervisor = Supervisor::new(launcher.clone(), modern_side.clone(), lead, sender);
        Self {
            modern_side,
            launcher,
            state,
            supervisor: Mutex::new(Some(tokio::spawn(supervisor.run()))),
        }
    }

    pub(crate) fn state(&self) -> watch::Receiver<BackendState> {
        self.state.clone()
    }

    pub(crate) fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.launcher.subscriptions.resource_updates()
    }

    pub(crate) fn own_lists(&self) -> watch::Receiver<OwnLists> {
        self.launcher.own_lists.watch()
    }

    pub(crate) fn last_words(&self) -> Vec<String> {
        self.launcher.last_words()
    }

    pub(crate) fn restarts(&self) -> u64 {
        self.launcher.restarts.load(Ordering::Relaxed)
    }

    /// Runs a call with `modern` if it belongs there, otherwise with `here`.
    pub(crate) async fn run(
        &self,
        call: &Call,
        here: impl Future<Output = Result<CallOutcome, CallFailure>> + Send,
        modern: impl Future<Output = Result<CallOutcome, CallFailure>> + Send,
    ) -> CallOutcome {
        let outcome = self.try_run(call, here, modern).await;
        outcome.unwrap_or_else(CallOutcome::Failed)
    }

    async fn try_run(
        &self,
        call: &Call,
        here: impl Future<Output = Result<CallOutcome, CallFailure>> + Send,
        modern: impl Future<Output = Result<CallOutcome, CallFailure>> + Send,
    ) -> Result<CallOutcome, CallFailure> {
        if self.launcher.closing.is_cancelled() {
            return Err(CallFailure::not_executed("the server is shutting down"));
        }
        if self.modern_side.takes(call) {
            let answered = modern.await;
            // The call may have revealed that the server is legacy only.
            if answered.is_ok() || self.modern_side.takes(call) {
                return answered;
            }
            return here.await;
        }
        let outcome = here.await?;
        if self.modern_side.is_wanted_by(call, &outcome)
            && let Ok(answered) = modern.await
        {
            if !is_unknown_method(&answered) {
                self.modern_side.remember(call);
            }
            return Ok(answered);
        }
        Ok(outcome)
    }

    pub(crate) async fn run_modern(
        &self,
        call: &Call,
        context: &CallContext,
    ) -> Result<CallOutcome, CallFailure> {
        let connection = self.modern_side.connection(context.cancelled()).await?;
        Ok(carry(&connection.link, call, context, None).await?)
    }

    /// Asks `connection` first, because the server may reject an unknown resource.
    pub(crate) async fn subscribe(
        &self,
        uri: &str,
        connection: Option<Arc<ServerConnection>>,
    ) -> Result<(), RpcError> {
        if self.launcher.settings.lists == ListScope::Principal {
            // The server has only callers' sessions, and a subscription names no caller.
            return Err(RpcError::new(
                code::METHOD_NOT_FOUND,
                "the server lists to each caller its own resources, and cannot be subscribed to for all callers",
            ));
        }
        if self.launcher.subscriptions.contains(uri) {
            return Ok(());
        }
        if let Some(connection) = connection {
            let link = &connection.link;
            if !link.greeting().offers("resources", "subscribe") {
                let method = Method::ResourcesSubscribe;
                return Err(RpcError::method_not_found(method.as_str()));
            }
            if link.greeting().era == Era::Legacy {
                let subscribed = subscribing::subscribe(link, uri).await;
                subscribed.map_err(RequestError::into_rpc)?;
            }
        }
        self.launcher.subscriptions.add(uri);
        Ok(())
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.launcher.subscriptions.remove(uri);
    }

    pub(crate) async fn shutdown(&self, others: impl Future<Output = ()>) {
        self.launcher.closing.cancel();
        tokio::join!(others, self.modern_side.close());
        let supervisor = self.supervisor.lock().take();
        if let Some(supervisor) = supervisor {
            // Fails only if the supervisor panicked.
            let _ = supervisor.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.launcher.closing.cancel();
    }
}

fn is_unknown_method(outcome: &CallOutcome) -> bool {
    matches!(outcome, CallOutcome::Error(error) if error.code == code::METHOD_NOT_FOUND)
}
