use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::Principal;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::SessionOwner;
use super::blame::Blame;
use crate::upstream::connection::ServerConnection;
use crate::upstream::launcher::Launcher;
use crate::upstream::restart_delay::RestartDelay;

pub(super) struct PooledSession {
    pub(super) principal: Principal,
    pub(super) usage: Mutex<Usage>,
    pub(super) blame: Mutex<Blame>,
    /// Held while the connection opens, so that it opens only once.
    pub(super) connection: tokio::sync::Mutex<SessionConnection>,
    pub(super) over: CancellationToken,
}

pub(super) struct Usage {
    pub(super) calls: usize,
    pub(super) last: Instant,
    /// An opening goes on only while a call waits for it.
    pub(super) starts: bool,
}

pub(super) struct SessionConnection {
    pub(super) connection: Option<Arc<ServerConnection>>,
    pub(super) began: Instant,
    restart_delay: RestartDelay,
    pub(super) not_before: Instant,
    pub(super) was_not_opened: bool,
}

pub(super) struct UsageGuard {
    pub(super) session: Arc<PooledSession>,
    freed: Arc<Notify>,
}

/// Selects the idle session to evict for `principal`: the least recently used one of the principal
/// with the most. A principal may evict its own sessions, and those of principals with more
/// sessions than it will have; without sessions, it may evict any.
pub(super) fn spare(
    sessions: &HashMap<SessionOwner, Arc<PooledSession>>,
    principal: &Principal,
) -> Option<SessionOwner> {
    let mut counts = HashMap::<&Principal, usize>::new();
    for session in sessions.values() {
        *counts.entry(&session.principal).or_default() += 1;
    }
    let own = counts.get(principal).copied().unwrap_or(0);
    let idle = sessions.iter().filter_map(|(owner, session)| {
        let has = counts.get(&session.principal).copied().unwrap_or(0);
        let may_take = session.principal == *principal || own == 0 || has > own + 1;
        let usage = session.usage.lock();
        (may_take && usage.calls == 0).then_some((has, Reverse(usage.last), owner))
    });
    let spare = idle.max_by_key(|(has, last, _)| (*has, *last));
    spare.map(|(_, _, owner)| owner.clone())
}

pub(super) fn starting(
    sessions: &HashMap<SessionOwner, Arc<PooledSession>>,
    principal: &Principal,
) -> usize {
    let own = sessions
        .values()
        .filter(|session| session.principal == *principal);
    let starting = own.filter(|session| {
        let usage = session.usage.lock();
        usage.starts && usage.calls > 0
    });
    starting.count()
}

impl PooledSession {
    pub(super) fn new(launcher: &Launcher, principal: &Principal) -> Self {
        let now = Instant::now();
        Self {
            principal: principal.clone(),
            usage: Mutex::new(Usage {
                calls: 0,
                last: now,
                starts: true,
            }),
            blame: Mutex::default(),
            connection: tokio::sync::Mutex::new(SessionConnection {
                connection: None,
                began: now,
                restart_delay: RestartDelay::of(&launcher.settings),
                not_before: now,
                was_not_opened: false,
            }),
            over: CancellationToken::new(),
        }
    }

    pub(super) async fn end(&self) {
        // An opening under way sees this token and releases the lock.
        self.over.cancel();
        let connection = self.connection.lock().await.connection.take();
        if let Some(connection) = connection {
            connection.shutdown().await;
        }
    }
}

impl Usage {
    pub(super) fn is_idle(&mut self, idle: Duration) -> bool {
        let now = Instant::now();
        if self.calls > 0 {
            self.last = now;
        }
        self.calls == 0 && now >= self.last + idle
    }
}

impl SessionConnection {
    pub(super) fn failed(&mut self) {
        self.not_before = Instant::now() + self.restart_delay.after_failure(self.began);
    }
}

impl UsageGuard {
    pub(super) fn new(session: &Arc<PooledSession>, freed: &Arc<Notify>) -> Self {
        session.usage.lock().calls += 1;
        Self {
            session: session.clone(),
            freed: freed.clone(),
        }
    }
}

impl Drop for UsageGuard {
    fn drop(&mut self) {
        let mut usage = self.session.usage.lock();
        usage.calls -= 1;
        usage.last = Instant::now();
        let is_idle = usage.calls == 0;
        drop(usage);
        if is_idle {
            self.freed.notify_waiters();
        }
    }
}
