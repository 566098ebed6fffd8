use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::engine::mix::Kind;
use crate::engine::pacer::Pacer;
use crate::engine::{Engine, Shared};
use crate::failure::Failure;
use crate::times;

/// Further sessions wait, and count as behind schedule.
const WORKERS: usize = 128;

/// Sessions that are opened, used and ended.
pub(super) struct Churn {
    shared: Arc<Shared>,
    pub(super) pacer: Arc<Pacer>,
    next: AtomicUsize,
    calls: usize,
    warm_at: Instant,
    /// Times to open a session, from when it was due.
    opened: Mutex<Histogram<u64>>,
    ended: AtomicU64,
}

impl Churn {
    pub(super) fn start(engine: &mut Engine, rate: f64, calls: usize, first: usize) -> Arc<Self> {
        let churn = Arc::new(Self {
            shared: Arc::clone(&engine.shared),
            pacer: Pacer::start(&engine.stages, |_| rate),
            next: AtomicUsize::new(first),
            calls,
            warm_at: engine.stages.end_of(0),
            opened: Mutex::new(times::histogram()),
            ended: AtomicU64::new(0),
        });
        for _ in 0..WORKERS {
            engine.running.spawn(Arc::clone(&churn).run());
        }
        churn
    }

    async fn run(self: Arc<Self>) {
        while let Some(due) = self.pacer.next().await {
            if let Err(failure) = self.life(due).await {
                self.shared.tally.failed("a session of churn", &failure);
            }
        }
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
        self.ended
            .fetch_add(u64::from(due >= self.warm_at), Ordering::Relaxed);
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
