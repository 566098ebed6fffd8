//! The backend that runs any stdio MCP server: as few processes as the calls allow, kept running.
//!
//! | file | its part |
//! |---|---|
//! | `config` | what an operator can say |
//! | `child`, `family`, `process` | the operating system's side; all descendants; the tasks around a process and its end |
//! | `lines`, `outgoing` | bytes in, bytes out, bounded |
//! | `link`, `flights`, `router` | requests in flight; whom a message from the process concerns |
//! | `binding`, `era`, `params` | for whom a process runs; the opening; a call's parameters |
//! | `carry` | one call, from its queue to its outcome |
//! | `placement`, `pool`, `sessions` | which process a call runs on |
//! | `modern_side` | tools that ask in the modern way, of a server that speaks both eras |
//! | `launcher`, `supervisor`, `restart_delay` | bringing processes up, again and again |
//! | `lists`, `subscriptions` | what the server offers; what changes there |

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::{BusEvent, Call, CallFailure, CallOutcome, SessionId};
use shoal_protocol::{ClientCapability, Era, Method, RpcError, declares};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use self::launcher::Launcher;
use self::modern_side::ModernSide;
use self::placement::Want;
use self::pool::Pool;
use self::sessions::Sessions;
use self::supervisor::Supervisor;
use crate::{Backend, BackendState, CallContext};

mod binding;
mod carry;
mod child;
mod config;
mod era;
mod error;
mod family;
mod flights;
mod launcher;
mod lines;
mod link;
mod lists;
mod modern_side;
mod outgoing;
mod params;
mod placement;
mod pool;
mod process;
mod restart_delay;
mod router;
mod sessions;
mod subscriptions;
mod supervisor;
mod throttle;

pub use self::config::{EraChoice, Isolation, StdioConfig};
pub use self::lines::{Line, Lines};

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
///   to its newest call.
///
/// A server that asks in the background, after the call is answered, is safe only in the latter.
///
/// # Eras
/// [`EraChoice`] says in which era a server that speaks both is spoken to.
///
/// # Outcomes
/// When a process ends, calls that had been written to it end as `OutcomeUnknown`, others as
/// `NotExecuted`. A cancelled call's process is told by `notifications/cancelled`.
pub struct StdioBackend {
    launcher: Arc<Launcher>,
    pool: Arc<Pool>,
    sessions: Option<Arc<Sessions>>,
    modern_side: ModernSide,
    state: watch::Receiver<BackendState>,
    supervisor: Mutex<Option<JoinHandle<()>>>,
}

impl StdioBackend {
    /// Starts the command in the background; [`Backend::state`] tells when it is ready, or why not.
    /// Dropping the backend ends its processes, without waiting for it.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(config: StdioConfig) -> Self {
        let (sender, state) = watch::channel(BackendState {
            catalog: None,
            detail: Some("starting".to_owned()),
        });
        let launcher = Arc::new(Launcher::new(config));
        let pool = Arc::new(Pool::new(launcher.clone()));
        let own = launcher.config.isolation == Isolation::Session;
        let sessions = own.then(|| Arc::new(Sessions::new(launcher.clone())));
        let supervisor = Supervisor::new(launcher.clone(), pool.clone(), sender);
        Self {
            modern_side: ModernSide::new(launcher.clone()),
            launcher,
            pool,
            sessions,
            state,
            supervisor: Mutex::new(Some(tokio::spawn(supervisor.run()))),
        }
    }

    /// The session's own processes, where a call of it has one: modern servers know no sessions.
    fn own_process(&self, call: &Call) -> Option<(&Arc<Sessions>, SessionId)> {
        let sessions = self.sessions.as_ref()?;
        let session = call.caller.session.clone()?;
        (self.launcher.era() == Some(Era::Legacy)).then_some((sessions, session))
    }

    /// Whether the client of a call can be asked something during it by a shared process.
    fn is_askable(&self, call: &Call) -> bool {
        let config = &self.launcher.config;
        let can = |question| declares(&call.caller.capabilities, question);
        let can_answer = can(ClientCapability::Sampling)
            || can(ClientCapability::ElicitationForm)
            || can(ClientCapability::ElicitationUrl);
        call.method.may_require_input()
            && (config.may_ask && can_answer || config.share_roots && can(ClientCapability::Roots))
    }

    async fn try_run(
        &self,
        call: &Call,
        context: &CallContext,
    ) -> Result<CallOutcome, CallFailure> {
        if self.launcher.closing.is_cancelled() {
            return Err(CallFailure::not_executed("the server is shutting down"));
        }
        if self.modern_side.takes(call) {
            let answered = self.run_modern(call, context).await;
            // It takes nothing more if the server has just turned out to be legacy only.
            if answered.is_ok() || self.modern_side.takes(call) {
                return answered;
            }
        }
        let outcome = self.run_here(call, context).await?;
        if self.modern_side.is_wanted_by(call, &outcome)
            && let Ok(answered) = self.run_modern(call, context).await
        {
            self.modern_side.remember(call);
            return Ok(answered);
        }
        Ok(outcome)
    }

    async fn run_modern(
        &self,
        call: &Call,
        context: &CallContext,
    ) -> Result<CallOutcome, CallFailure> {
        let process = self.modern_side.process(context.cancelled()).await?;
        Ok(carry::carry(&process.link, call, context, None).await)
    }

    async fn run_here(
        &self,
        call: &Call,
        context: &CallContext,
    ) -> Result<CallOutcome, CallFailure> {
        if let Some((sessions, session)) = self.own_process(call) {
            let hold = sessions.hold(&session, &call.caller, context).await?;
            return Ok(carry::carry(&hold.process.link, call, context, None).await);
        }
        let want = Want {
            alone: self.is_askable(call),
            principal: call.caller.principal.clone(),
            session: call.caller.session.clone(),
        };
        let lease = self.pool.lease(want, context).await?;
        Ok(carry::carry(&lease.process.link, call, context, Some(&lease)).await)
    }
}

#[async_trait]
impl Backend for StdioBackend {
    fn state(&self) -> watch::Receiver<BackendState> {
        self.state.clone()
    }

    fn news(&self) -> broadcast::Receiver<BusEvent> {
        self.launcher.subscriptions.news()
    }

    async fn run(&self, call: &Call, context: &CallContext) -> CallOutcome {
        let outcome = self.try_run(call, context).await;
        outcome.unwrap_or_else(CallOutcome::Failed)
    }

    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        if self.launcher.subscriptions.contains(uri) {
            return Ok(());
        }
        if let Some(process) = self.pool.any() {
            let link = &process.link;
            if !link.greeting().offers("resources", "subscribe") {
                let method = Method::ResourcesSubscribe;
                return Err(RpcError::method_not_found(method.as_str()));
            }
            if link.greeting().era == Era::Legacy {
                // One process is asked first, because it may know that there is no such resource.
                let subscribed = subscriptions::subscribe(link, uri).await;
                subscribed.map_err(error::RequestError::into_rpc)?;
            }
        }
        self.launcher.subscriptions.add(uri);
        Ok(())
    }

    async fn unsubscribe(&self, uri: &str) {
        self.launcher.subscriptions.remove(uri);
    }

    async fn end_session(&self, session: &SessionId) {
        if let Some(sessions) = &self.sessions {
            sessions.end(session).await;
        }
    }

    fn restarts(&self) -> u64 {
        self.launcher.restarts.load(Ordering::Relaxed)
    }

    async fn shutdown(&self) {
        self.launcher.closing.cancel();
        let sessions = async {
            if let Some(sessions) = &self.sessions {
                sessions.end_all().await;
            }
        };
        tokio::join!(self.pool.close(), sessions, self.modern_side.close());
        let supervisor = self.supervisor.lock().take();
        if let Some(supervisor) = supervisor {
            // It fails only if the supervisor panicked, which tokio has reported.
            let _ = supervisor.await;
        }
    }
}

impl Drop for StdioBackend {
    fn drop(&mut self) {
        self.launcher.closing.cancel();
    }
}

#[cfg(test)]
mod tests;
