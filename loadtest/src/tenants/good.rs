//! The good tenant calls at a modest, constant rate. Times count from when the calls were due.

use std::cmp::Reverse;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::connection::Goodbye;
use crate::failover::timeline::{histogram, quantile};
use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::mcp::tools::echo;
use crate::target::Target;

const SLOWEST: usize = 5;
const PATIENCE: Duration = Duration::from_secs(30);

struct Way {
    target: Target,
    mode: Mode,
    /// `echo` in the modern era. In the legacy era `echo_once`, which must not be repeated.
    tool: &'static str,
    idle: Mutex<Vec<Client>>,
}

pub(super) struct Good {
    ways: Vec<Arc<Way>>,
    every: Duration,
}

#[derive(Default)]
pub(super) struct Worked {
    pub(super) calls: u64,
    pub(super) failed: u64,
    pub(super) first_failure: Option<String>,
    pub(super) p99: Duration,
    pub(super) slowest: Vec<Took>,
}

#[derive(Clone, Copy)]
pub(super) struct Took {
    time: Duration,
    mode: Mode,
    at: Duration,
}

impl fmt::Display for Took {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, mode, at } = self;
        write!(out, "{time:.1?} ({} at {at:.1?})", mode.name())
    }
}

impl Good {
    pub(super) fn new(targets: &[Target], rate: f64) -> Self {
        let way = |target: &Target, mode, tool| {
            Arc::new(Way {
                target: target.clone(),
                mode,
                tool,
                idle: Mutex::default(),
            })
        };
        let ways = targets.iter().flat_map(|target| {
            [
                way(target, Mode::Modern, "echo"),
                way(target, Mode::Legacy, "echo_once"),
            ]
        });
        Self {
            ways: ways.collect(),
            every: Duration::from_secs_f64(1.0 / rate),
        }
    }

    pub(super) async fn work(&self, time: Duration) -> Worked {
        let (mut calls, mut worked, mut times) = (JoinSet::new(), Worked::default(), Vec::new());
        let mut note = |ended: Result<Took, Failure>| match ended {
            Ok(took) => times.push(took),
            Err(failure) => {
                worked.failed += 1;
                worked.first_failure.get_or_insert(failure.to_string());
            }
        };
        let (began, mut count) = (Instant::now(), 0);
        let (mut due, until) = (began, began + time);
        while due < until {
            sleep_until(due).await;
            let way = Arc::clone(&self.ways[count % self.ways.len()]);
            calls.spawn(async move {
                way.call(due).await.map(|time| Took {
                    time,
                    mode: way.mode,
                    at: due - began,
                })
            });
            while let Some(Ok(ended)) = calls.try_join_next() {
                note(ended);
            }
            due += self.every;
            count += 1;
        }
        while let Some(Ok(ended)) = calls.join_next().await {
            note(ended);
        }
        worked.calls = count as u64;
        worked.p99 = quantile(&histogram(times.iter().map(|took| took.time)), 0.99);
        times.sort_unstable_by_key(|took| Reverse(took.time));
        times.truncate(SLOWEST);
        worked.slowest = times;
        worked
    }
}

impl Way {
    async fn call(&self, due: Instant) -> Result<Duration, Failure> {
        let called = async {
            let idle = self.idle().pop();
            let mut client = match idle {
                Some(client) => client,
                None => Client::open(&self.target, self.mode, Goodbye::Reset).await?,
            };
            echo(&mut client, self.tool, "well").await?;
            self.idle().push(client);
            Ok(due.elapsed())
        };
        let called = timeout(PATIENCE, called).await;
        called.unwrap_or_else(|_| Err(Failure::transport("a call", "no answer in time")))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
