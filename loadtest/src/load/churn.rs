use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::arrivals;
use crate::engine::mix::Kind;
use crate::engine::{Engine, Shared};
use crate::failure::Failure;
use crate::times;

/// Sessions that are opened, used and ended.
pub(super) struct Churn {
    shared: Arc<Shared>,
    next: AtomicUsize,
    calls: usize,
    warm_at: Instant,
    until: Instant,
    /// Times to open a session, from when it was due.
    opened: Mutex<Histogram<u64>>,
    ended: AtomicU64,
}

impl Churn {
    pub(super) fn new(engine: &Engine, calls: usize, first: usize) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::clone(&engine.shared),
            next: AtomicUsize::new(first),
            calls,
            warm_at: engine.stages.end_of(0).into(),
            until: engine.stages.end().into(),
            opened: Mutex::new(times::histogram()),
            ended: AtomicU64::new(0),
        })
    }

    pub(super) async fn run(self: Arc<Self>, rate: f64) {
        let life = |due| {
            let churn = Arc::clone(&self);
            async move {
                let lived = churn.life(due).await;
                if let Err(failure) = &lived {
                    churn.shared.tally.failed("a session of churn", failure);
                }
                lived
            }
        };
        let time = self.until.saturating_duration_since(Instant::now());
        arrivals::spread(rate, time, life).await;
    }

    async fn life(&self, due: Instant) -> Result<(), Failure> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut caller = self.shared.open(number).await?;
        if due >= self.warm_at {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            times::record(&mut opened, due.elapsed());
        }
        for _ in 0..self.calls {
            let call = caller.call(Kind::Echo, &self.shared.plan.echo);
            self.shared.in_time(call).await?;
        }
        self.shared.in_time(caller.client.end()).await?;
        let is_measured = due >= self.warm_at;
        self.ended
            .fetch_add(u64::from(is_measured), Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn opened(&self) -> Histogram<u64> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.clone()
    }

    pub(super) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }
}
