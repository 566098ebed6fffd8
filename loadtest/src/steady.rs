//! Clients that call at a fixed rate while something else happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio::sync::watch;
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

#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    /// Latency counts from this time, because otherwise a stalled server would get fewer calls and
    /// look better.
    pub(crate) due: Instant,
    pub(crate) answered: Instant,
}

impl Done {
    pub(crate) fn latency(self) -> Duration {
        self.answered.saturating_duration_since(self.due)
    }
}

/// Which calls the clients make, and what a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// Echo calls. A client connects again after a failure.
    Echo(Mode),
    /// Legacy echo calls, and every fourth time a call of a counter, which reveals lost and repeated executions.
    /// Repeats refused calls, and ends at any other failure.
    Count,
}

const COUNTS: u64 = 4;

pub(crate) struct Steady {
    clients: JoinSet<Vec<Done>>,
    stop: watch::Sender<bool>,
    pub(crate) refusals: Arc<AtomicU64>,
}

impl Steady {
    /// Starts clients, which together make `rate` calls per second.
    pub(crate) async fn start(
        count: usize,
        rate: f64,
        targets: &[Target],
        conduct: Conduct,
        findings: &Arc<Findings>,
    ) -> anyhow::Result<Self> {
        let mut steady = Self {
            clients: JoinSet::new(),
            stop: watch::Sender::new(false),
            refusals: Arc::default(),
        };
        let every = Duration::from_secs_f64(count as f64 / rate);
        let mut callers = Vec::with_capacity(count);
        for (number, target) in (0..count).zip(targets.iter().cycle()) {
            let mut caller = Caller {
                number,
                target: target.clone(),
                client: None,
                conduct,
                refusals: Arc::clone(&steady.refusals),
                findings: Arc::clone(findings),
                counted: 0,
            };
            caller
                .connected()
                .await
                .context("could not open a session for calls")?;
            callers.push(caller);
        }
        let began = Instant::now();
        for caller in callers {
            let first = began + every.mul_f64(caller.number as f64 / count as f64);
            steady
                .clients
                .spawn(caller.run(first, every, steady.stop.subscribe()));
        }
        Ok(steady)
    }

    pub(crate) async fn stop(self) -> Vec<Done> {
        self.stop.send_replace(true);
        self.clients.join_all().await.concat()
    }
}

struct Caller {
    number: usize,
    target: Target,
    client: Option<Client>,
    conduct: Conduct,
    refusals: Arc<AtomicU64>,
    findings: Arc<Findings>,
    counted: u64,
}

impl Caller {
    async fn run(
        mut self,
        first: Instant,
        every: Duration,
        mut stopped: watch::Receiver<bool>,
    ) -> Vec<Done> {
        let (mut all, mut next) = (Vec::new(), first);
        for made in 1.. {
            let waits = Instant::now() < next;
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => break,
                () = sleep_until(next) => {}
            }
            // A call that waited for the timer counts from now, because timers are up to a
            // millisecond late, which is not the server's fault.
            let due = if waits { Instant::now() } else { next };
            next += every;
            let called = timeout(CALL_TIMEOUT, self.call(made)).await;
            let called = called
                .unwrap_or_else(|_| Err(Failure::Transport("the call took too long".to_owned())));
            let answered = Instant::now();
            match called {
                Ok(()) => all.push(Done { due, answered }),
                Err(failure) => {
                    self.findings.failed("a steady call", &failure);
                    self.client = None;
                    if self.conduct == Conduct::Count {
                        break;
                    }
                }
            }
        }
        all
    }

    async fn call(&mut self, made: u64) -> Result<(), Failure> {
        let (counts, number) = (self.conduct == Conduct::Count, self.number);
        loop {
            let next = (self.counted + 1).to_string();
            let counted = counts && made.is_multiple_of(COUNTS);
            let client = self.connected().await?;
            let answered = if counted {
                // The counter's answer is right only if each earlier call was executed exactly once.
                call(client, "count_up", "{}", &next).await
            } else {
                echo(client, "echo", &format!("{number}-{made}")).await
            };
            let pause = match &answered {
                Err(failure) if counts => failure.retry_after(REFUSED_PAUSE),
                _ => None,
            };
            let Some(pause) = pause else {
                self.counted += u64::from(counted && answered.is_ok());
                return answered;
            };
            self.refusals.fetch_add(1, Ordering::Relaxed);
            sleep(pause).await;
        }
    }

    async fn connected(&mut self) -> Result<&mut Client, Failure> {
        let mode = match self.conduct {
            Conduct::Echo(mode) => mode,
            Conduct::Count => Mode::Legacy,
        };
        let client = match self.client.take() {
            Some(client) => client,
            None => Client::open(&self.target, mode, Goodbye::Finish).await?,
        };
        Ok(self.client.insert(client))
    }
}
