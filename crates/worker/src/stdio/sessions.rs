//! A process for each legacy session.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{CallFailure, Caller, Principal, SessionId};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::binding::Binding;
use super::launcher::Launcher;
use super::process::Process;
use super::restart_delay::RestartDelay;
use crate::CallContext;

/// What a call is told that has waited for a session's process too long.
const BUSY: &str = "every session that has a process of this server is in use, or another principal's and no larger share, or half of the processes are being started for this principal";

/// The processes of the sessions that have called lately.
pub(super) struct Sessions {
    launcher: Arc<Launcher>,
    limit: usize,
    idle: Duration,
    seats: Mutex<HashMap<SessionId, Arc<Seat>>>,
    /// Tells that a seat has become idle, or free.
    freed: Arc<Notify>,
}

/// A session's place.
struct Seat {
    /// Whose session it is.
    principal: Principal,
    use_: Mutex<Use>,
    /// Held while the process is started, so that it is started once.
    process: tokio::sync::Mutex<Running>,
    over: CancellationToken,
}

struct Use {
    calls: usize,
    last: Instant,
    /// Whether the first process has neither come up nor failed. Without calls nobody is starting it.
    starts: bool,
}

struct Running {
    process: Option<Arc<Process>>,
    began: Instant,
    restart_delay: RestartDelay,
    /// Before this, a process that failed is not started again.
    not_before: Instant,
}

/// A call's hold on its session's process. Idleness begins when it is dropped.
pub(super) struct Hold {
    /// The process.
    pub(super) process: Arc<Process>,
    _guest: Guest,
}

struct Guest {
    seat: Arc<Seat>,
    freed: Arc<Notify>,
}

impl Sessions {
    /// Room for as many sessions as may have a process.
    pub(super) fn new(launcher: Arc<Launcher>) -> Self {
        Self {
            limit: launcher.config.most_processes(),
            idle: launcher.config.session_idle.get(),
            launcher,
            seats: Mutex::default(),
            freed: Arc::default(),
        }
    }

    /// The process of a session, started if there is none. If there is no room for it, the call waits as long as it may.
    ///
    /// # Errors
    /// Nothing was executed: there was no room, the process could not be started, or the call was
    /// cancelled first.
    pub(super) async fn hold(
        self: &Arc<Self>,
        session: &SessionId,
        caller: &Caller,
        context: &CallContext,
    ) -> Result<Hold, CallFailure> {
        let cancelled = context.cancelled();
        let guest = match self.enter(session, &caller.principal) {
            Some(guest) => guest,
            None => {
                let entered = self.entered(session, &caller.principal, cancelled);
                context.wait(BUSY, entered).await?
            }
        };
        let seat = guest.seat.clone();
        let process = tokio::select! {
            biased;
            process = self.process_of(&seat, caller) => process?,
            () = cancelled.cancelled() => {
                return Err(CallFailure::not_executed("the session's process was not ready in time"));
            }
            () = seat.over.cancelled() => return Err(CallFailure::not_executed("the session has ended")),
        };
        Ok(Hold {
            process,
            _guest: guest,
        })
    }

    /// Ends a session's process.
    pub(super) async fn end(&self, session: &SessionId) {
        let seat = self.seats.lock().remove(session);
        self.freed.notify_waiters();
        if let Some(seat) = seat {
            seat.end().await;
        }
    }

    /// Ends them all.
    pub(super) async fn end_all(&self) {
        let seats: Vec<_> = self.seats.lock().drain().collect();
        futures::future::join_all(seats.iter().map(|(_, seat)| seat.end())).await;
    }

    /// Returns once there is room.
    async fn entered(
        self: &Arc<Self>,
        session: &SessionId,
        principal: &Principal,
        cancelled: &CancellationToken,
    ) -> Result<Guest, CallFailure> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if let Some(guest) = self.enter(session, principal) {
                return Ok(guest);
            }
            tokio::select! {
                biased;
                () = freed => {}
                () = cancelled.cancelled() => {
                    return Err(CallFailure::not_executed("no process became free for the session in time"));
                }
            }
        }
    }

    /// A hold on the session's seat, unless it has none and there is no room for it.
    fn enter(self: &Arc<Self>, session: &SessionId, principal: &Principal) -> Option<Guest> {
        let mut seats = self.seats.lock();
        let guest = |seat: &Arc<Seat>| Guest::new(seat, &self.freed);
        if let Some(seat) = seats.get(session) {
            return Some(guest(seat));
        }
        // A start takes processor time of everybody's, so one principal never has all of the processes start.
        if starting(&seats, principal) >= (self.limit / 2).max(1) {
            return None;
        }
        if seats.len() >= self.limit {
            let spare = spare(&seats, principal)?;
            let given_up = seats.remove(&spare);
            tracing::debug!(target: "shoal::stdio", "an idle session's process makes room for another's");
            tokio::spawn(async move {
                if let Some(seat) = given_up {
                    seat.end().await;
                }
            });
        }
        let seat = Arc::new(Seat::new(&self.launcher, principal));
        let guest = guest(&seat);
        tokio::spawn(self.clone().watch(session.clone(), seat.clone()));
        seats.insert(session.clone(), seat);
        Some(guest)
    }

    async fn process_of(&self, seat: &Seat, caller: &Caller) -> Result<Arc<Process>, CallFailure> {
        let mut running = seat.process.lock().await;
        if let Some(process) = running.process.take_if(|process| !process.is_alive()) {
            let reason = process.link.flights.ended().unwrap_or_default();
            tracing::warn!(target: "shoal::stdio", %reason, "a session's process is gone, and with it what it remembered");
            running.failed();
        }
        if let Some(process) = &running.process {
            return Ok(process.clone());
        }
        let now = Instant::now();
        if now < running.not_before {
            return Err(CallFailure::not_executed(
                "the session's process failed and restarts soon",
            ));
        }
        running.began = now;
        let launched = self.launcher.launch(&Binding::session_of(caller)).await;
        seat.use_.lock().starts = false;
        self.freed.notify_waiters();
        match launched {
            Ok(process) => {
                running.process = Some(process.clone());
                Ok(process)
            }
            Err(error) => {
                running.failed();
                Err(CallFailure::not_executed(error.to_string()))
            }
        }
    }

    /// Ends a seat that nobody has used for long.
    async fn watch(self: Arc<Self>, session: SessionId, seat: Arc<Seat>) {
        loop {
            let wake = seat.use_.lock().last + self.idle;
            tokio::select! {
                () = tokio::time::sleep_until(wake) => {}
                () = seat.over.cancelled() => return,
            }
            let is_idle = {
                let mut seats = self.seats.lock();
                let is_idle = seat.use_.lock().is_idle(self.idle);
                if is_idle {
                    seats.remove(&session);
                }
                is_idle
            };
            if is_idle {
                self.freed.notify_waiters();
                seat.end().await;
                return;
            }
        }
    }
}

/// The idle session that makes room for one of `principal`: of whoever has most, the one that was used last the longest ago.
/// A principal takes from its own and from those who have more than it will have; one that has none takes from any.
fn spare(seats: &HashMap<SessionId, Arc<Seat>>, principal: &Principal) -> Option<SessionId> {
    let mut counts = HashMap::<&Principal, usize>::new();
    for seat in seats.values() {
        *counts.entry(&seat.principal).or_default() += 1;
    }
    let own = counts.get(principal).copied().unwrap_or(0);
    let idle = seats.iter().filter_map(|(session, seat)| {
        let has = counts.get(&seat.principal).copied().unwrap_or(0);
        let may_take = seat.principal == *principal || own == 0 || has > own + 1;
        let use_ = seat.use_.lock();
        (may_take && use_.calls == 0).then_some((has, Reverse(use_.last), session))
    });
    let spare = idle.max_by_key(|(has, last, _)| (*has, *last));
    spare.map(|(_, _, session)| session.clone())
}

/// How many sessions of a principal have a process that starts.
fn starting(seats: &HashMap<SessionId, Arc<Seat>>, principal: &Principal) -> usize {
    let own = seats.values().filter(|seat| seat.principal == *principal);
    let starting = own.filter(|seat| {
        let use_ = seat.use_.lock();
        use_.starts && use_.calls > 0
    });
    starting.count()
}

impl Seat {
    fn new(launcher: &Launcher, principal: &Principal) -> Self {
        let config = &launcher.config;
        let now = Instant::now();
        Self {
            principal: principal.clone(),
            use_: Mutex::new(Use {
                calls: 0,
                last: now,
                starts: true,
            }),
            process: tokio::sync::Mutex::new(Running {
                process: None,
                began: now,
                restart_delay: RestartDelay::of(config),
                not_before: now,
            }),
            over: CancellationToken::new(),
        }
    }

    async fn end(&self) {
        // Whoever is starting the process gives up and lets go of it.
        self.over.cancel();
        let process = self.process.lock().await.process.take();
        if let Some(process) = process {
            process.shutdown().await;
        }
    }
}

impl Use {
    fn is_idle(&mut self, idle: Duration) -> bool {
        let now = Instant::now();
        if self.calls > 0 {
            self.last = now;
        }
        self.calls == 0 && now >= self.last + idle
    }
}

impl Running {
    fn failed(&mut self) {
        self.not_before = Instant::now() + self.restart_delay.after_failure(self.began);
    }
}

impl Guest {
    fn new(seat: &Arc<Seat>, freed: &Arc<Notify>) -> Self {
        seat.use_.lock().calls += 1;
        Self {
            seat: seat.clone(),
            freed: freed.clone(),
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut use_ = self.seat.use_.lock();
        use_.calls -= 1;
        use_.last = Instant::now();
        let is_idle = use_.calls == 0;
        drop(use_);
        if is_idle {
            self.freed.notify_waiters();
        }
    }
}
