//! Clients that call at a fixed rate all the time, and count up what must be executed exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::connection::Goodbye;
use crate::failure::Failure;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::mcp::tools::{call, echo};
use crate::target::Target;

/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The pause after a refusal that names none.
const REFUSED_PAUSE: Duration = Duration::from_millis(200);

/// One call in so many counts up in its session; the others are echoes.
const COUNTS: u64 = 4;

/// A call that was answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    /// When it was due: a late start counts as waiting, or a stalled server would be asked less and look better.
    pub(super) due: Instant,
    pub(super) answered: Instant,
}

impl Done {
    /// How long its caller waited.
    pub(super) fn latency(self) -> Duration {
        self.answered.saturating_duration_since(self.due)
    }
}

/// The clients, until they are told to stop.
pub(super) struct Steady {
    clients: JoinSet<Vec<Done>>,
    stop: Arc<AtomicBool>,
    /// Refusals with 429 or 503, after which a call was made again.
    pub(super) refusals: Arc<AtomicU64>,
}

impl Steady {
    /// Opens `count` clients, spread over `targets`, that call `rate` times a second together from now on.
    ///
    /// # Errors
    ///
    /// Where one cannot be opened.
    pub(super) async fn start(
        count: usize,
        rate: f64,
        targets: &[Target],
        findings: &Arc<Findings>,
    ) -> Result<Self, Failure> {
        let mut steady = Self {
            clients: JoinSet::new(),
            stop: Arc::default(),
            refusals: Arc::default(),
        };
        let every = Duration::from_secs_f64(count as f64 / rate);
        let began = Instant::now();
        for (number, target) in (0..count).zip(targets.iter().cycle()) {
            let caller = Caller {
                number,
                client: Client::open(target, Mode::Legacy, Goodbye::Finish).await?,
                next: began + every.mul_f64(number as f64 / count as f64),
                every,
                stop: Arc::clone(&steady.stop),
                refusals: Arc::clone(&steady.refusals),
                findings: Arc::clone(findings),
                counted: 0,
            };
            steady.clients.spawn(caller.run());
        }
        Ok(steady)
    }

    /// Stops the clients; all calls that were answered.
    pub(super) async fn stop(mut self) -> Vec<Done> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        while let Some(done) = self.clients.join_next().await {
            all.extend(done.unwrap_or_default());
        }
        all
    }
}

struct Caller {
    number: usize,
    client: Client,
    next: Instant,
    every: Duration,
    stop: Arc<AtomicBool>,
    refusals: Arc<AtomicU64>,
    findings: Arc<Findings>,
    counted: u64,
}

impl Caller {
    async fn run(mut self) -> Vec<Done> {
        let mut all = Vec::new();
        let mut made = 0;
        while !self.stop.load(Ordering::Relaxed) {
            sleep_until(self.next).await;
            let due = self.next;
            self.next += self.every;
            made += 1;
            match timeout(CALL_TIMEOUT, self.call(made)).await {
                Ok(Ok(())) => all.push(Done {
                    due,
                    answered: Instant::now(),
                }),
                Ok(Err(failure)) => {
                    self.findings.failed("a steady call", &failure);
                    break;
                }
                Err(_) => {
                    self.findings
                        .add("no answer", "a steady call took too long");
                    break;
                }
            }
        }
        all
    }

    /// Makes one call, again where it is refused for a while: what is refused was not executed.
    async fn call(&mut self, made: u64) -> Result<(), Failure> {
        loop {
            let answered = if made.is_multiple_of(COUNTS) {
                // The session's own count: right only if each call so far was executed exactly once.
                let text = (self.counted + 1).to_string();
                call(&mut self.client, "count_up", "{}", &text).await
            } else {
                let text = format!("{}-{made}", self.number);
                echo(&mut self.client, "echo", &text).await
            };
            let pause = match answered {
                Err(Failure::Status {
                    status: 429 | 503,
                    retry_after_s,
                    ..
                }) => retry_after_s.map_or(REFUSED_PAUSE, Duration::from_secs),
                Ok(()) => {
                    self.counted += u64::from(made.is_multiple_of(COUNTS));
                    return Ok(());
                }
                Err(failure) => return Err(failure),
            };
            self.refusals.fetch_add(1, Ordering::Relaxed);
            sleep(pause).await;
        }
    }
}
