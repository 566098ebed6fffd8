//! An open loop: calls begin at fixed times, however long earlier ones take.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::connection::Goodbye;
use crate::engine::call::{Caller, Echo};
use crate::engine::mix::Kind;
use crate::failure::Failure;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::target::Target;

const PATIENCE: Duration = Duration::from_secs(30);
const REFUSED_PAUSE: Duration = Duration::from_millis(200);

/// A call that has ended.
pub(crate) struct Done {
    /// Latency counts from this time, because otherwise a stalled server would get fewer calls and
    /// look better.
    pub(crate) due: Instant,
    pub(crate) ended: Instant,
    pub(crate) result: Result<(), Failure>,
}

impl Done {
    pub(crate) fn latency(&self) -> Duration {
        self.ended.saturating_duration_since(self.due)
    }
}

/// Returns the calls that were answered rightly. The others are findings.
pub(crate) fn answered(calls: Vec<Done>, what: &str, findings: &Findings) -> Vec<Done> {
    let is_right = |done: &Done| match &done.result {
        Ok(()) => true,
        Err(failure) => {
            findings.failed(what, failure);
            false
        }
    };
    calls.into_iter().filter(is_right).collect()
}

/// Starts `work` `rate` times a second, with the time at which it was due, and waits until all work has ended.
pub(crate) async fn spread<F>(rate: f64, time: Duration, work: impl Fn(Instant) -> F) -> Vec<Done>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let every = Duration::from_secs_f64(1.0 / rate);
    let (mut running, mut ended, mut next) = (JoinSet::new(), Vec::new(), Instant::now());
    let until = next + time;
    while next < until {
        let waits = Instant::now() < next;
        sleep_until(next).await;
        // Work that waited for the timer counts from now, because timers are up to a millisecond late, which is not
        // the server's fault.
        let due = if waits { Instant::now() } else { next };
        let work = work(due);
        running.spawn(async move {
            let result = work.await;
            let ended = Instant::now();
            Done { due, ended, result }
        });
        while let Some(done) = running.try_join_next() {
            ended.extend(done);
        }
        next += every;
    }
    while let Some(done) = running.join_next().await {
        ended.extend(done);
    }
    ended
}

/// Makes `rate` calls a second, with these clients in turns. With `refusals`, counts calls that the server refused for
/// now, and repeats them.
pub(crate) async fn calls(
    turns: &[(Arc<Pool>, Kind)],
    rate: f64,
    time: Duration,
    refusals: Option<&Arc<AtomicU64>>,
) -> Vec<Done> {
    let made = AtomicUsize::new(0);
    let call = |_| {
        let turn = made.fetch_add(1, Ordering::Relaxed) % turns.len();
        let ((pool, kind), refusals) = (turns[turn].clone(), refusals.cloned());
        async move {
            loop {
                let calling =
                    async |caller: &mut Caller| caller.call(kind, &Echo::by("echo")).await;
                let called = pool.call(calling).await;
                let pause = called
                    .as_ref()
                    .err()
                    .and_then(|it| it.retry_after(REFUSED_PAUSE));
                let (Some(pause), Some(refusals)) = (pause, &refusals) else {
                    return called;
                };
                refusals.fetch_add(1, Ordering::Relaxed);
                sleep(pause).await;
            }
        }
    };
    spread(rate, time, call).await
}

/// Clients of one endpoint, each for one call at a time.
pub(crate) struct Pool {
    target: Target,
    mode: Mode,
    places: Semaphore,
    idle: Mutex<VecDeque<Caller>>,
}

impl Pool {
    /// Opens clients on demand.
    pub(crate) fn new(target: Target, mode: Mode) -> Arc<Self> {
        Arc::new(Self {
            target,
            mode,
            places: Semaphore::new(Semaphore::MAX_PERMITS),
            idle: Mutex::default(),
        })
    }

    /// Opens this many clients, for which further calls wait.
    pub(crate) async fn of(count: usize, target: Target, mode: Mode) -> Result<Arc<Self>, Failure> {
        let pool = Self {
            target,
            mode,
            places: Semaphore::new(count),
            idle: Mutex::default(),
        };
        for _ in 0..count {
            let caller = pool.open().await?;
            pool.idle().push_back(caller);
        }
        Ok(Arc::new(pool))
    }

    /// Calls with the client that has been idle for the longest time.
    pub(crate) async fn call<T>(
        &self,
        call: impl AsyncFnOnce(&mut Caller) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let calling = async {
            let _place = self.places.acquire().await;
            let idle = self.idle().pop_front();
            let mut caller = match idle {
                Some(caller) => caller,
                None => self.open().await?,
            };
            let called = call(&mut caller).await;
            if called.as_ref().err().is_none_or(Failure::is_passing) {
                self.idle().push_back(caller);
            }
            called
        };
        let late = |_| Failure::transport("a call", "no answer in time");
        timeout(PATIENCE, calling).await.map_err(late).flatten()
    }

    async fn open(&self) -> Result<Caller, Failure> {
        static OPENED: AtomicUsize = AtomicUsize::new(0);
        let client = Client::open(&self.target, self.mode, Goodbye::Reset).await?;
        Ok(Caller::new(client, OPENED.fetch_add(1, Ordering::Relaxed)))
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Caller>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
