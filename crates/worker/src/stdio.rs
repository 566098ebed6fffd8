//! The backend that runs any stdio MCP server: as few processes as the calls allow, kept running.
//!
//! What it has in common with the backends of other transports is in `upstream`.
//!
//! | file | its part |
//! |---|---|
//! | `config` | what an operator can say |
//! | `child`, `family`, `process` | the operating system's side; all descendants; the tasks around a process and its end |
//! | `writer` | messages to a process |
//! | `placement`, `demand`, `pool` | which shared process a call runs on; when there are more |
//! | `crashes` | whose calls end processes |

use std::sync::Arc;

use async_trait::async_trait;
use shoal_ports::{
    Call, CallFailure, CallOutcome, Caller, ListOwner, OwnLists, Principal, ResourceUpdated,
    SessionId,
};
use shoal_protocol::{ClientCapability, Era, RpcError, declares};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use self::placement::Want;
use self::pool::{Lease, PoolOpening, ProcessPool};
use crate::upstream::{
    Binding, Connection, Launcher, NeverWritten, Server, SessionOwner, Sessions, StartError,
    Subscriptions, Transport, carry, failure_key,
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

/// An existing stdio MCP server of either era, as a backend.
///
/// # Questions to clients
/// A legacy server's `elicitation/create`, `sampling/createMessage` and `roots/list` do not say
/// which call they belong to, and the answer of one user must never reach another:
///
/// * In a shared process a call whose client declared one of these capabilities runs alone. Others
///   go to another process (started on demand) or wait. A question outside such a call is answered
///   with an error. While the call waits for its client, another process may be started in its stead.
/// * When such a call is cancelled, the process is not used for the questions of others until it
///   has confirmed the end of the call; if it is needed for them before that, it is replaced.
/// * Roots are not offered to shared processes unless [`StdioConfig::share_roots`] says so.
/// * With [`Isolation::Session`] a session's questions come from a process that only it uses, and go
///   to its newest call. Calls without a session run in processes of their principal alone: roots are asked of its newest
///   call, and whatever else is asked of a call that is alone there.
/// * Roots that a server asks for at its start are asked of the first call, before the server gets it.
///
/// A server that asks in the background, after the call is answered, is safe only in a session's process.
///
/// # Eras
/// [`EraChoice`] says in which era a server that speaks both is spoken to.
///
/// # Outcomes
/// When a process ends, calls that had been written to it end as `OutcomeUnknown`, others have another one started at once, or
/// end as `NotExecuted` if the command fails to start. Calls like those that ended processes run apart, and then wait. A
/// cancelled call's process is told by `notifications/cancelled`.
pub struct StdioBackend {
    server: Server,
    config: Arc<StdioConfig>,
    pool: Arc<ProcessPool>,
    /// Processes of a legacy server that were opened in the modern era.
    modern: Arc<ProcessPool>,
    sessions: Option<Arc<Sessions>>,
}

impl StdioBackend {
    /// Starts the command in the background; [`Backend::state`] tells when it is ready, or why not.
    /// Dropping the backend ends its processes, without waiting for it.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(config: StdioConfig) -> Self {
        let config = Arc::new(config);
        let settings = config.settings();
        let launcher = Arc::new(Launcher::new(settings, Command(config.clone())));
        let opening = PoolOpening::BesideLead(config.binding(&launcher.settings.shared));
        let pool = ProcessPool::new(launcher.clone(), config.placement(), opening);
        let pool = Arc::new(pool);
        let own = config.isolation == Isolation::Session;
        let server = Server::start(launcher.clone(), pool.clone());
        let opening = PoolOpening::Modern(server.modern_side.clone());
        let modern = ProcessPool::new(launcher.clone(), config.modern_placement(), opening);
        Self {
            sessions: own.then(|| Arc::new(Sessions::new(launcher))),
            server,
            config,
            pool,
            modern: Arc::new(modern),
        }
    }

    /// The session's own processes, where a call of it has one: modern servers know no sessions.
    fn own_process(&self, call: &Call) -> Option<(&Arc<Sessions>, SessionId)> {
        let sessions = self.sessions.as_ref()?;
        let session = call.caller.session.clone()?;
        (self.server.launcher.era() == Some(Era::Legacy)).then_some((sessions, session))
    }

    /// Whether the client of a call can be asked something during it by a shared process.
    fn is_askable(&self, call: &Call) -> bool {
        let config = &self.config;
        let can = |question| declares(&call.caller.capabilities, question);
        let can_answer = can(ClientCapability::Sampling)
            || can(ClientCapability::ElicitationForm)
            || can(ClientCapability::ElicitationUrl);
        // Those of an owner are no call's.
        let asks_for_roots = config.share_roots && config.isolation == Isolation::Shared;
        call.method.may_require_input()
            && (config.may_ask && can_answer || asks_for_roots && can(ClientCapability::Roots))
    }

    /// Runs a call in a process that lives: one that ended before the call was written to it never read it, and the call is
    /// placed again. The pauses of those whose calls end processes bound how often.
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

    /// The same in the process of the call's session.
    async fn run_in_session(
        &self,
        (sessions, session): (&Arc<Sessions>, SessionId),
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

    /// Waits until a process that did not read a call takes no other.
    ///
    /// # Errors
    /// The call does not go on in another one.
    async fn may_go_on(
        &self,
        process: &Connection,
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

    /// Who sees what the process lists that a call runs in, if the process is nobody else's.
    fn owner_of_lists(&self, call: &Call) -> Option<ListOwner> {
        if self.config.isolation != Isolation::Session {
            return None;
        }
        let Caller {
            principal, session, ..
        } = &*call.caller;
        let is_legacy = self.server.launcher.era() == Some(Era::Legacy);
        Some(match session {
            // A session's calls are in a process of its own, but for those that only the modern side of its server takes.
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
    ) -> Result<Lease, CallFailure> {
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
        let here = async {
            match self.own_process(call) {
                Some(own) => self.run_in_session(own, call, context).await,
                None => self.run_in(&self.pool, call, context).await,
            }
        };
        let modern = self.run_in(&self.modern, call, context);
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

/// Each connection is a process of this command.
struct Command(Arc<StdioConfig>);

impl Transport for Command {
    fn open(
        &self,
        binding: Binding,
        subscriptions: Arc<Subscriptions>,
        closing: &CancellationToken,
    ) -> Result<Connection, StartError> {
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
