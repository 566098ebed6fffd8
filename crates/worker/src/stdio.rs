//! The backend that runs any stdio MCP server in as few processes as its calls allow.
//!
//! | file | part |
//! |---|---|
//! | `child`, `family`, `process` | the process; its descendants; the tasks around it |
//! | `writer` | messages to a process |
//! | `placement`, `demand`, `pool` | choice and number of shared processes |
//! | `crashes` | principals whose calls end processes |

use std::sync::Arc;

use async_trait::async_trait;
use shoal_ports::{
    Call, CallFailure, CallOutcome, Caller, ListOwner, OwnLists, Principal, ResourceUpdated,
    SessionId,
};
use shoal_protocol::{ClientCapability, Era, RpcError, declares};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use self::demand::Want;
use self::pool::{PoolOpening, ProcessLease, ProcessPool};
use crate::upstream::{
    ConnectionBinding, Launcher, NeverWritten, Server, ServerConnection, ServerSessions,
    ServerSubscriptions, SessionOwner, StartError, Transport, carry, failure_key,
};
use crate::{Backend, BackendState, CallContext};

mod child;
mod config;
mod crashes;
mod demand;
mod family;
mod placement;
mod pool;
mod process;
mod writer;

pub use self::config::{Isolation, StdioConfig};

/// A backend for an existing stdio MCP server of either era.
///
/// # Questions to clients
/// A legacy server's `elicitation/create`, `sampling/createMessage` and `roots/list` do not name their call,
/// and one user's answer must not reach another:
///
/// * In a shared process, a call whose client declared one of these capabilities runs alone. Other calls wait
///   or use another process. Questions outside such a call get an error.
/// * After such a call is cancelled, its process serves no other questions until the server confirms the
///   call's end. If the process is needed sooner, the backend replaces it.
/// * Shared processes are offered no roots unless [`StdioConfig::share_roots`] is set.
/// * With [`Isolation::Session`], a session has its own process, and questions go to its newest
///   call. Calls without a session share processes of their principal. There, the newest call
///   answers for roots, and a call that is alone answers other questions.
/// * If a server asks for roots at its start, the first call's client answers before the server
///   gets the call.
///
/// A server that asks after it has answered the call is safe only in a session's process.
///
/// # Eras
/// [`EraChoice`] selects the era for a server that speaks both.
///
/// # Outcomes
/// When a process ends, calls written to it end as `OutcomeUnknown`. Other calls move to a new
/// process, or end as `NotExecuted` if the command fails to start. Calls similar to those that
/// ended processes run apart from other callers, and later with growing pauses. A cancellation
/// reaches the process as `notifications/cancelled`.
pub struct StdioBackend {
    server: Server,
    config: Arc<StdioConfig>,
    pool: Arc<ProcessPool>,
    modern: Arc<ProcessPool>,
    sessions: Option<Arc<ServerSessions>>,
}

impl StdioBackend {
    /// Starts the command in the background; [`Backend::state`] reports its readiness. Dropping the backend
    /// ends its processes in the background.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(config: StdioConfig) -> Self {
        let config = Arc::new(config);
        let settings = config.settings();
        let launcher = Arc::new(Launcher::new(settings, ServerCommand(config.clone())));
        let opening = PoolOpening::BesideLead(config.binding(&launcher.settings.shared));
        let pool = ProcessPool::new(launcher.clone(), config.placement(), opening);
        let pool = Arc::new(pool);
        let own = config.isolation == Isolation::Session;
        let server = Server::start(launcher.clone(), pool.clone());
        let opening = PoolOpening::Modern(server.modern_side.clone());
        let modern = ProcessPool::new(launcher.clone(), config.modern_placement(), opening);
        Self {
            sessions: own.then(|| Arc::new(ServerSessions::new(launcher))),
            server,
            config,
            pool,
            modern: Arc::new(modern),
        }
    }

    fn own_process(&self, call: &Call) -> Option<(&Arc<ServerSessions>, SessionId)> {
        let sessions = self.sessions.as_ref()?;
        let session = call.caller.session.clone()?;
        (self.server.launcher.era() == Some(Era::Legacy)).then_some((sessions, session))
    }

    fn is_askable(&self, call: &Call) -> bool {
        let config = &self.config;
        let can = |question| declares(&call.caller.capabilities, question);
        let can_answer = can(ClientCapability::Sampling)
            || can(ClientCapability::ElicitationForm)
            || can(ClientCapability::ElicitationUrl);
        let asks_for_roots = config.share_roots && config.isolation == Isolation::Shared;
        call.method.may_require_input()
            && (config.may_ask && can_answer || asks_for_roots && can(ClientCapability::Roots))
    }

    /// Runs a call, again if its process ended before reading it. The pauses of `crashes` limit the repetitions.
    async fn run_in(
        &self,
        pool: &Arc<ProcessPool>,
        call: &Call,
        context: &CallContext,
    ) -> Result<CallOutcome, CallFailure> {
        loop {
            let lease = self.lease(pool, call, context).await?;
            if let Some(owner) = self.owner_of_lists(call) {
                pool.is_of(&lease, owner);
            }
            let ended = carry(&lease.process.link, call, context, Some(&lease)).await;
            if let Ok(outcome) = &ended {
                pool.ended(&lease, outcome);
            }
            let process = lease.process.clone();
            drop(lease);
            match ended {
                Ok(outcome) => return Ok(outcome),
                Err(never_written) => self.may_go_on(&process, never_written, context).await?,
            }
        }
    }

    async fn run_in_session(
        &self,
        (sessions, session): (&Arc<ServerSessions>, SessionId),
        call: &Call,
        context: &CallContext,
    ) -> Result<CallOutcome, CallFailure> {
        let owner = SessionOwner::Session(session);
        loop {
            let hold = match sessions.hold(&owner, call, context).await {
                Ok(hold) => hold,
                Err(not_held) => return not_held.into(),
            };
            match carry(&hold.connection.link, call, context, None).await {
                Ok(outcome) => {
                    hold.ended(&outcome);
                    return Ok(outcome);
                }
                Err(never_written) => {
                    self.may_go_on(&hold.connection, never_written, context)
                        .await?;
                }
            }
        }
    }

    /// Waits until `process`, which ended before it read the call, takes no further calls.
    async fn may_go_on(
        &self,
        process: &ServerConnection,
        never_written: NeverWritten,
        context: &CallContext,
    ) -> Result<(), CallFailure> {
        if self.server.launcher.closing.is_cancelled() {
            return Err(never_written.into());
        }
        tokio::select! {
            () = process.closes() => Ok(()),
            () = context.cancelled().cancelled() => Err(never_written.into()),
        }
    }

    fn owner_of_lists(&self, call: &Call) -> Option<ListOwner> {
        if self.config.isolation != Isolation::Session {
            return None;
        }
        let Caller {
            principal, session, ..
        } = &*call.caller;
        let is_legacy = self.server.launcher.era() == Some(Era::Legacy);
        Some(match session {
            // Here, outside a session's own process, only the modern side runs the session's calls.
            Some(_) if is_legacy => return None,
            Some(session) if *principal == Principal::anonymous() => {
                ListOwner::Session(session.clone())
            }
            Some(_) => ListOwner::Principal(principal.clone()),
            None if is_legacy || *principal == Principal::anonymous() => {
                ListOwner::Sessionless(principal.clone())
            }
            None => ListOwner::Principal(principal.clone()),
        })
    }

    async fn lease(
        &self,
        pool: &Arc<ProcessPool>,
        call: &Call,
        context: &CallContext,
    ) -> Result<ProcessLease, CallFailure> {
        let key = failure_key(call);
        let want = Want {
            alone: self.is_askable(call),
            apart: None,
            may_share: true,
            principal: call.caller.principal.clone(),
            session: call.caller.session.clone(),
            owner: (self.config.isolation == Isolation::Session).then_some(key),
        };
        pool.lease(want, key, context).await
    }
}

#[async_trait]
impl Backend for StdioBackend {
    fn state(&self) -> watch::Receiver<BackendState> {
        self.server.state()
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.server.resource_updates()
    }

    fn own_lists(&self) -> watch::Receiver<OwnLists> {
        self.server.own_lists()
    }

    async fn run(&self, call: &Call, context: &CallContext) -> CallOutcome {
        // Boxed, because only one of them runs in most calls.
        let here = async {
            match self.own_process(call) {
                Some(own) => Box::pin(self.run_in_session(own, call, context)).await,
                None => Box::pin(self.run_in(&self.pool, call, context)).await,
            }
        };
        let modern = async { Box::pin(self.run_in(&self.modern, call, context)).await };
        self.server.run(call, here, modern).await
    }

    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        self.server.subscribe(uri, self.pool.any()).await
    }

    async fn unsubscribe(&self, uri: &str) {
        self.server.unsubscribe(uri);
    }

    fn has_session(&self, session: &SessionId) -> bool {
        let sessions = self.sessions.as_ref();
        sessions.is_some_and(|sessions| sessions.has(session))
    }

    fn sessions(&self) -> usize {
        self.sessions
            .as_ref()
            .map_or(0, |sessions| sessions.count())
    }

    async fn end_session(&self, session: &SessionId) {
        if let Some(sessions) = &self.sessions {
            sessions.end(&SessionOwner::Session(session.clone())).await;
        }
    }

    fn last_words(&self) -> Vec<String> {
        self.server.last_words()
    }

    fn restarts(&self) -> u64 {
        self.server.restarts()
    }

    async fn shutdown(&self) {
        let sessions = async {
            if let Some(sessions) = &self.sessions {
                sessions.end_all().await;
            }
        };
        let processes = async {
            tokio::join!(self.pool.close(), self.modern.close(), sessions);
        };
        self.server.shutdown(processes).await;
    }
}

struct ServerCommand(Arc<StdioConfig>);

impl Transport for ServerCommand {
    fn open(
        &self,
        binding: ConnectionBinding,
        subscriptions: Arc<ServerSubscriptions>,
        closing: &CancellationToken,
    ) -> Result<ServerConnection, StartError> {
        let spawned = child::spawn(&self.0).map_err(|source| StartError::Spawn {
            command: self.0.command.clone(),
            source: source.into(),
        })?;
        let attended = process::attend(spawned, &self.0, binding, subscriptions, closing);
        Ok(attended)
    }

    fn has_servers_of_their_own(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
