//! Clients that call at a fixed rate. Some call a counter, which reveals lost and repeated executions.

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

const CALL_TIMEOUT: Duration = Duration::from_secs(60);

const REFUSED_PAUSE: Duration = Duration::from_millis(200);

const COUNTS: u64 = 4;

#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    /// Latency counts from this time: otherwise a stalled server would look better.
    pub(super) due: Instant,
    pub(super) answered: Instant,
}

impl Done {
    pub(super) fn latency(self) -> Duration {
        self.answered.saturating_duration_since(self.due)
    }
}

pub(super) struct Steady {
    clients: JoinSet<Vec<Done>>,
    stop: Arc<AtomicBool>,
    pub(super) refusals: Arc<AtomicU64>,
}

impl Steady {
    /// Together, the clients make `rate` calls per second.
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

    /// Repeats a refused call, which was not executed.
    async fn call(&mut self, made: u64) -> Result<(), Failure> {
        loop {
            let answered = if made.is_multiple_of(COUNTS) {
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
