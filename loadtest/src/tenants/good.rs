//! The good tenant calls at a modest, constant rate. Times count from when the calls were due.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::arrivals::{self, Pool};
use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::tools::echo;
use crate::target::Target;
use crate::times;

const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Good {
    /// Each with its tool: `echo` in the modern era. In the legacy era `echo_once`, which must not be repeated.
    pools: Vec<(Arc<Pool>, &'static str)>,
    rate: f64,
}

pub(super) struct Worked {
    pub(super) calls: u64,
    pub(super) failed: u64,
    /// The first failure.
    pub(super) example: String,
    pub(super) p99: Duration,
}

impl Good {
    pub(super) fn new(targets: &[Target], rate: f64) -> Self {
        let tools = [(Mode::Modern, "echo"), (Mode::Legacy, "echo_once")];
        let pools = targets.iter().flat_map(|target| {
            tools.map(|(mode, tool)| (Arc::new(Pool::new(target.clone(), mode)), tool))
        });
        let pools = pools.collect();
        Self { pools, rate }
    }

    pub(super) async fn work(&self, time: Duration) -> Worked {
        let count = AtomicUsize::new(0);
        let call = |due: Instant| {
            let turn = count.fetch_add(1, Ordering::Relaxed);
            let (pool, tool) = self.pools[turn % self.pools.len()].clone();
            async move {
                let calling = pool.call(PATIENCE, async |client| echo(client, tool, "well").await);
                calling.await.map(|()| due.elapsed())
            }
        };
        let ended = arrivals::spread(self.rate, time, call).await;
        let failures: Vec<&Failure> = ended.iter().filter_map(|one| one.as_ref().err()).collect();
        let times = times::of(ended.iter().flatten().copied());
        Worked {
            calls: ended.len() as u64,
            failed: failures.len() as u64,
            example: failures
                .first()
                .map_or_else(String::new, ToString::to_string),
            p99: times::quantile(&times, 0.99),
        }
    }
}
