//! The good tenant calls at a modest, constant rate. Times count from when the calls were due.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::arrivals::{self, Pool};
use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::tools::echo;
use crate::target::Target;
use crate::times;

const SLOWEST: usize = 5;
const PATIENCE: Duration = Duration::from_secs(30);

struct Way {
    pool: Pool,
    /// `echo` in the modern era. In the legacy era `echo_once`, which must not be repeated.
    tool: &'static str,
}

pub(super) struct Good {
    ways: Vec<Arc<Way>>,
    rate: f64,
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
            let pool = Pool::new(target.clone(), mode);
            Arc::new(Way { pool, tool })
        };
        let ways = targets.iter().flat_map(|target| {
            [
                way(target, Mode::Modern, "echo"),
                way(target, Mode::Legacy, "echo_once"),
            ]
        });
        let ways = ways.collect();
        Self { ways, rate }
    }

    pub(super) async fn work(&self, time: Duration) -> Worked {
        let (began, count) = (Instant::now(), AtomicUsize::new(0));
        let call = |due: Instant| {
            let turn = count.fetch_add(1, Ordering::Relaxed);
            let way = Arc::clone(&self.ways[turn % self.ways.len()]);
            async move {
                let time = way.call(due).await?;
                let (mode, at) = (way.pool.mode(), due - began);
                Ok(Took { time, mode, at })
            }
        };
        let ended: Vec<Result<Took, Failure>> = arrivals::spread(self.rate, time, call).await;
        let (mut times, mut worked) = (Vec::new(), Worked::default());
        worked.calls = ended.len() as u64;
        for ended in ended {
            match ended {
                Ok(took) => times.push(took),
                Err(failure) => {
                    worked.failed += 1;
                    worked.first_failure.get_or_insert(failure.to_string());
                }
            }
        }
        worked.p99 = times::quantile(&times::of(times.iter().map(|took| took.time)), 0.99);
        times.sort_unstable_by_key(|took| Reverse(took.time));
        times.truncate(SLOWEST);
        worked.slowest = times;
        worked
    }
}

impl Way {
    async fn call(&self, due: Instant) -> Result<Duration, Failure> {
        let called = async {
            let mut client = self.pool.take().await?;
            echo(&mut client, self.tool, "well").await?;
            self.pool.give_back(client);
            Ok(due.elapsed())
        };
        let called = timeout(PATIENCE, called).await;
        called.unwrap_or_else(|_| Err(Failure::transport("a call", "no answer in time")))
    }
}
