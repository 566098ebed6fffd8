mod blame;
mod pooled;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use shoal_ports::{
    Call, CallFailure, CallId, CallOutcome, Caller, FailureKey, ListOwner, Principal, SessionId,
};
use shoal_protocol::{Method, RpcError};
use tokio::sync::{MutexGuard, Notify};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::pooled::{PooledSession, SessionConnection, UsageGuard, spare, starting};
use super::binding::{ConnectionBinding, extensions_of};
use super::connection::ServerConnection;
use super::error::{Denied, StartError};
use super::launcher::Launcher;
use crate::CallContext;
use crate::backend::BackendPatience;

const BUSY: &str = "every session that this server has room for is in use, or another principal's and no larger share, or half of them are being opened for this principal";

const REFUSED: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SessionOwner {
    Session(SessionId),
    /// A principal's callers with equal forwarded headers and extensions.
    Principal(Principal, [u8; 32]),
    Call(CallId),
}

impl SessionOwner {
    pub(crate) fn principal_of(caller: &Caller) -> Self {
        let mut told = Sha256::new();
        let mut add = |part: &[u8]| {
            told.update(part.len().to_le_bytes());
            told.update(part);
        };
        for (name, value) in caller.headers.iter() {
            add(name.as_bytes());
            add(value);
        }
        if let Some(extensions) = extensions_of(caller) {
            add(extensions.as_bytes());
        }
        Self::Principal(caller.principal.clone(), told.finalize().into())
    }
}

impl SessionOwner {
    /// The owner of the connection's lists. If sessions have their own connections, the principal's
    /// connection serves only calls without a session.
    fn of_lists(&self, sessions_have_own: bool) -> Option<ListOwner> {
        match self {
            Self::Session(session) => Some(ListOwner::Session(session.clone())),
            Self::Principal(principal, _) if sessions_have_own => {
                Some(ListOwner::Sessionless(principal.clone()))
            }
            Self::Principal(principal, _) => Some(ListOwner::Principal(principal.clone())),
            Self::Call(_) => None,
        }
    }
}

pub(crate) struct ServerSessions {
    launcher: Arc<Launcher>,
    limit: usize,
    idle: Duration,
    sessions: Mutex<HashMap<SessionOwner, Arc<PooledSession>>>,
    freed: Arc<Notify>,
}

/// The idle time starts when the lease is dropped.
pub(crate) struct SessionLease {
    pub(crate) connection: Arc<ServerConnection>,
    key: FailureKey,
    usage: UsageGuard,
}

impl SessionLease {
    pub(crate) fn ended(&self, outcome: &CallOutcome) {
        self.usage.session.blame.lock().note(&self.key, outcome);
    }
}

pub(crate) fn failure_key(call: &Call) -> FailureKey {
    let tool = (call.method == Method::ToolsCall).then(|| call.params.as_ref()?.member("name"));
    let tool = tool.flatten().and_then(|name| name.string());
    FailureKey::of(&call.caller, &call.method, tool.as_deref())
}

pub(crate) enum NotHeld {
    Failed(CallFailure),
    Denied(RpcError),
}

impl From<CallFailure> for NotHeld {
    fn from(failure: CallFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<NotHeld> for Result<CallOutcome, CallFailure> {
    fn from(not: NotHeld) -> Self {
        match not {
            NotHeld::Failed(failure) => Err(failure),
            NotHeld::Denied(error) => Ok(CallOutcome::Error(error)),
        }
    }
}

impl ServerSessions {
    pub(crate) fn new(launcher: Arc<Launcher>) -> Self {
        Self {
            limit: launcher.settings.sessions,
            idle: launcher.settings.session_idle,
            launcher,
            sessions: Mutex::default(),
            freed: Arc::default(),
        }
    }

    /// Leases the owner's connection, and opens it if necessary. Without room, the call waits up to its limit.
    ///
    /// # Errors
    /// There is no room or connection, or the call was cancelled. The call was not executed.
    pub(crate) async fn hold(
        self: &Arc<Self>,
        owner: &SessionOwner,
        call: &Call,
        context: &CallContext,
    ) -> Result<SessionLease, NotHeld> {
        let (caller, key) = (&call.caller, failure_key(call));
        let cancelled = context.cancelled();
        let guard = match self.enter(owner, &caller.principal) {
            Some(guard) => guard,
            None => {
                let entered = self.entered(owner, &caller.principal, cancelled);
                context.wait(self.patience(), entered).await?
            }
        };
        let session = guard.session.clone();
        let connection = tokio::select! {
            biased;
            connection = self.connection_of(&session, owner, caller, &key) => connection?,
            () = cancelled.cancelled() => {
                return Err(CallFailure::not_executed("the session's connection was not ready in time").into());
            }
            () = session.over.cancelled() => return Err(CallFailure::not_executed("the session has ended").into()),
        };
        Ok(SessionLease {
            connection,
            key,
            usage: guard,
        })
    }

    pub(crate) fn has(&self, session: &SessionId) -> bool {
        let owner = SessionOwner::Session(session.clone());
        self.sessions.lock().contains_key(&owner)
    }

    pub(crate) fn count(&self) -> usize {
        let sessions = self.sessions.lock();
        let legacy = |owner: &&SessionOwner| matches!(owner, SessionOwner::Session(_));
        sessions.keys().filter(legacy).count()
    }

    pub(crate) async fn end(&self, owner: &SessionOwner) {
        let session = self.sessions.lock().remove(owner);
        self.freed.notify_waiters();
        if let Some(session) = session {
            session.end().await;
        }
    }

    pub(crate) async fn end_all(&self) {
        let sessions: Vec<_> = self.sessions.lock().drain().collect();
        futures::future::join_all(sessions.iter().map(|(_, session)| session.end())).await;
    }

    async fn entered(
        self: &Arc<Self>,
        owner: &SessionOwner,
        principal: &Principal,
        cancelled: &CancellationToken,
    ) -> Result<UsageGuard, CallFailure> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if let Some(guard) = self.enter(owner, principal) {
                return Ok(guard);
            }
            tokio::select! {
                biased;
                () = freed => {}
                () = cancelled.cancelled() => {
                    return Err(CallFailure::not_executed("no room became free for the session in time"));
                }
            }
        }
    }

    fn enter(self: &Arc<Self>, owner: &SessionOwner, principal: &Principal) -> Option<UsageGuard> {
        let mut sessions = self.sessions.lock();
        let guard = |session: &Arc<PooledSession>| UsageGuard::new(session, &self.freed);
        if let Some(session) = sessions.get(owner) {
            return Some(guard(session));
        }
        // Starts share CPU time, so one principal may use at most half of the places for them.
        if starting(&sessions, principal) >= (self.limit / 2).max(1) {
            return None;
        }
        if sessions.len() >= self.limit {
            let spare = spare(&sessions, principal)?;
            let given_up = sessions.remove(&spare);
            tracing::debug!(target: "shoal::upstream", "an idle session's connection makes room for another's");
            tokio::spawn(async move {
                if let Some(session) = given_up {
                    session.end().await;
                }
            });
        }
        let session = Arc::new(PooledSession::new(&self.launcher, principal));
        let guard = guard(&session);
        tokio::spawn(self.clone().watch(owner.clone(), session.clone()));
        sessions.insert(owner.clone(), session);
        Some(guard)
    }

    /// How long a call waits for room: for a process until its deadline, for a server at a URL as
    /// long as in a queue, because another server may take the call.
    fn patience(&self) -> BackendPatience<'static> {
        match self.launcher.transport.has_servers_of_their_own() {
            true => BackendPatience::OfCall,
            false => BackendPatience::OfPool(BUSY),
        }
    }

    async fn turn<'a>(
        &self,
        session: &'a PooledSession,
        key: &FailureKey,
    ) -> Result<MutexGuard<'a, SessionConnection>, CallFailure> {
        loop {
            let mut opened = session.connection.lock().await;
            if let Some(connection) = opened
                .connection
                .take_if(|connection| !connection.is_alive())
            {
                // If there is no reason, the server forgot the session, and Shoal reopens it at
                // once.
                if let Some(reason) = connection.link.pending.ended() {
                    tracing::warn!(target: "shoal::upstream", %reason, "a session's connection is gone, and with it what its server remembered");
                    opened.failed();
                }
            }
            let waits = opened.was_not_opened || session.blame.lock().may_be_on(key);
            let pause = opened.not_before.saturating_duration_since(Instant::now());
            if !waits || pause.is_zero() {
                return Ok(opened);
            }
            if pause > self.launcher.settings.waits_to_reopen {
                return Err(CallFailure::not_executed(
                    "the session's connection failed and is opened again soon",
                ));
            }
            let not_before = opened.not_before;
            drop(opened);
            tokio::time::sleep_until(not_before).await;
        }
    }

    async fn connection_of(
        &self,
        session: &PooledSession,
        owner: &SessionOwner,
        caller: &Arc<Caller>,
        key: &FailureKey,
    ) -> Result<Arc<ServerConnection>, NotHeld> {
        let mut opened = self.turn(session, key).await?;
        if let Some(connection) = &opened.connection {
            return Ok(connection.clone());
        }
        opened.began = Instant::now();
        let binding = match owner {
            SessionOwner::Session(_) | SessionOwner::Call(_) => {
                ConnectionBinding::session_of(caller)
            }
            SessionOwner::Principal(..) => self.launcher.settings.shared.for_principal_of(caller),
        };
        let launched = self.launcher.launch(&binding).await;
        session.usage.lock().starts = false;
        self.freed.notify_waiters();
        match launched {
            Ok(connection) => {
                opened.was_not_opened = false;
                opened.connection = Some(connection.clone());
                if let Some(owner) = owner.of_lists(self.launcher.settings.sessions_have_own) {
                    self.launcher.own_lists.follow(&connection, owner);
                }
                Ok(connection)
            }
            Err(StartError::Refused(error) | StartError::Rejected(error)) if Denied::is(&error) => {
                Err(NotHeld::Denied(error))
            }
            Err(error) => {
                opened.was_not_opened = true;
                opened.failed();
                Err(self.not_opened(&error).into())
            }
        }
    }

    fn not_opened(&self, error: &StartError) -> CallFailure {
        let reason = error.to_string();
        match error {
            // Other callers may still use the server, so this is no failure of the server.
            StartError::Refused(_) | StartError::Rejected(_)
                if !self.launcher.transport.has_servers_of_their_own() =>
            {
                CallFailure::overloaded(reason, REFUSED)
            }
            _ => CallFailure::not_executed(reason),
        }
    }

    async fn watch(self: Arc<Self>, owner: SessionOwner, session: Arc<PooledSession>) {
        loop {
            let wake = session.usage.lock().last + self.idle;
            tokio::select! {
                () = tokio::time::sleep_until(wake) => {}
                () = session.over.cancelled() => return,
            }
            let is_idle = {
                let mut sessions = self.sessions.lock();
                let is_idle = session.usage.lock().is_idle(self.idle);
                if is_idle {
                    sessions.remove(&owner);
                }
                is_idle
            };
            if is_idle {
                self.freed.notify_waiters();
                session.end().await;
                return;
            }
        }
    }
}
