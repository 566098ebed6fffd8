//! A process for each legacy session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{CallFailure, Caller, SessionId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::binding::Binding;
use super::launcher::Launcher;
use super::process::Process;
use super::restart_delay::RestartDelay;

/// When a refused session may find a place: sessions end at any time.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The processes of the sessions that have called lately.
pub(super) struct Sessions {
    launcher: Arc<Launcher>,
    limit: usize,
    idle: Duration,
    seats: Mutex<HashMap<SessionId, Arc<Seat>>>,
}

/// A session's place.
struct Seat {
    use_: Mutex<Use>,
    /// Held while the process is started, so that it is started once.
    process: tokio::sync::Mutex<Running>,
    over: CancellationToken,
}

struct Use {
    calls: usize,
    last: Instant,
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

struct Guest(Arc<Seat>);

impl Sessions {
    /// Room for `limit` sessions.
    pub(super) fn new(launcher: Arc<Launcher>, limit: usize, idle: Duration) -> Self {
        Self {
            launcher,
            limit,
            idle,
            seats: Mutex::default(),
        }
    }

    /// The process of a session, started if there is none.
    ///
    /// # Errors
    /// Nothing was executed: there is no room, the process could not be started, or the call was
    /// cancelled first.
    pub(super) async fn hold(
        self: &Arc<Self>,
        session: &SessionId,
        caller: &Caller,
        cancelled: &CancellationToken,
    ) -> Result<Hold, CallFailure> {
        let guest = self.enter(session)?;
        let seat = guest.0.clone();
        let process = tokio::select! {
            biased;
            process = self.process_of(&seat, caller) => process?,
            () = cancelled.cancelled() => {
                return Err(not_executed("the session's process was not ready in time"));
            }
            () = seat.over.cancelled() => return Err(not_executed("the session has ended")),
        };
        Ok(Hold {
            process,
            _guest: guest,
        })
    }

    /// Ends a session's process.
    pub(super) async fn end(&self, session: &SessionId) {
        let seat = self.seats.lock().remove(session);
        if let Some(seat) = seat {
            seat.end().await;
        }
    }

    /// Ends them all.
    pub(super) async fn end_all(&self) {
        let seats: Vec<_> = self.seats.lock().drain().collect();
        futures::future::join_all(seats.iter().map(|(_, seat)| seat.end())).await;
    }

    fn enter(self: &Arc<Self>, session: &SessionId) -> Result<Guest, CallFailure> {
        let mut seats = self.seats.lock();
        if let Some(seat) = seats.get(session) {
            return Ok(Guest::new(seat));
        }
        if seats.len() >= self.limit {
            return Err(CallFailure::Overloaded {
                reason: format!("{} sessions have a process of this server", seats.len()),
                retry_after: RETRY_AFTER,
            });
        }
        let seat = Arc::new(Seat::new(&self.launcher));
        let guest = Guest::new(&seat);
        tokio::spawn(self.clone().watch(session.clone(), seat.clone()));
        seats.insert(session.clone(), seat);
        Ok(guest)
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
            return Err(not_executed(
                "the session's process failed and restarts soon",
            ));
        }
        running.began = now;
        match self.launcher.launch(&Binding::session_of(caller)).await {
            Ok(process) => {
                running.process = Some(process.clone());
                Ok(process)
            }
            Err(error) => {
                running.failed();
                Err(not_executed(&error.to_string()))
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
                seat.end().await;
                return;
            }
        }
    }
}

impl Seat {
    fn new(launcher: &Launcher) -> Self {
        let config = &launcher.config;
        let now = Instant::now();
        Self {
            use_: Mutex::new(Use {
                calls: 0,
                last: now,
            }),
            process: tokio::sync::Mutex::new(Running {
                process: None,
                began: now,
                restart_delay: RestartDelay::new(config.restart_delay, config.max_restart_delay),
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
    fn new(seat: &Arc<Seat>) -> Self {
        seat.use_.lock().calls += 1;
        Self(seat.clone())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut use_ = self.0.use_.lock();
        use_.calls -= 1;
        use_.last = Instant::now();
    }
}

fn not_executed(reason: &str) -> CallFailure {
    let reason = reason.to_owned();
    CallFailure::NotExecuted { reason }
}
