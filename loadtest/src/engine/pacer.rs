//! The next free session takes the oldest due call, whose latency counts from the due time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::stage::Stages;

/// The shortest sleep of the pacer's thread, finer than the runtime's timers.
const TICK: Duration = Duration::from_micros(100);

#[derive(Debug)]
struct Schedule {
    /// For each stage: its start, the number of its first call, its number of calls, and the
    /// seconds between two calls.
    parts: Vec<(Instant, u64, u64, f64)>,
    end: Instant,
}

impl Schedule {
    fn new(stages: &Stages) -> Self {
        let mut parts = Vec::with_capacity(stages.all.len());
        let mut first = 0;
        for stage in &stages.all {
            let rate = stage.rate.unwrap_or(1.0);
            let count = (rate * stage.length.as_secs_f64()).round() as u64;
            parts.push((stages.began + stage.start, first, count, 1.0 / rate));
            first += count;
        }
        Self {
            parts,
            end: stages.end(),
        }
    }

    fn due(&self, number: u64) -> Option<Instant> {
        let part = self
            .parts
            .iter()
            .find(|(_, first, count, _)| number < first + count);
        part.map(|(start, first, _, distance)| {
            *start + Duration::from_secs_f64((number - first) as f64 * distance)
        })
    }
}

pub(crate) struct Pacer {
    schedule: Schedule,
    permits: Semaphore,
    due: AtomicU64,
    begun: AtomicU64,
}

impl Pacer {
    pub(crate) fn start(stages: &Stages) -> Arc<Self> {
        let pacer = Arc::new(Self {
            schedule: Schedule::new(stages),
            permits: Semaphore::new(0),
            due: AtomicU64::new(0),
            begun: AtomicU64::new(0),
        });
        let kept = Arc::clone(&pacer);
        thread::spawn(move || kept.keep_time());
        pacer
    }

    /// Returns the call's due time. `None` at the end; calls that still wait stay unsent.
    /// Cancellation safe.
    pub(crate) async fn next(&self) -> Option<Instant> {
        self.permits.acquire().await.ok()?.forget();
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        self.schedule.due(number)
    }

    pub(crate) fn behind(&self) -> u64 {
        let begun = self.begun.load(Ordering::Relaxed);
        self.due.load(Ordering::Relaxed).saturating_sub(begun)
    }

    pub(crate) fn unsent(&self) -> impl Iterator<Item = Instant> {
        let unsent = self.begun.load(Ordering::Relaxed)..self.due.load(Ordering::Relaxed);
        unsent.filter_map(|number| self.schedule.due(number))
    }

    fn keep_time(&self) {
        let mut number = 0;
        while let Some(due) = self.schedule.due(number) {
            let wait = due.saturating_duration_since(Instant::now());
            thread::sleep(if wait.is_zero() { wait } else { wait.max(TICK) });
            let now = Instant::now();
            let first = number;
            while self.schedule.due(number).is_some_and(|due| due <= now) {
                number += 1;
            }
            self.due.store(number, Ordering::Relaxed);
            self.permits
                .add_permits(usize::try_from(number - first).unwrap_or(usize::MAX));
        }
        thread::sleep(self.schedule.end.saturating_duration_since(Instant::now()));
        self.permits.close();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Pacer, Schedule};
    use crate::engine::Plan;
    use crate::engine::stage::Stages;
    use crate::mcp::Mode;

    async fn stages(rate: &str, began: Instant) -> Stages {
        let plan = Plan::at("http://127.0.0.1:1/mcp", Mode::Legacy, 1).await;
        let plan = Plan {
            rate: rate.parse().ok(),
            warmup: Duration::from_millis(100),
            duration: Duration::from_millis(200),
            steps: 2,
            ..plan.expect("is a URL")
        };
        Stages::new(&plan, began)
    }

    #[tokio::test]
    async fn arrivals_follow_the_rate_of_their_stage() {
        let began = Instant::now();
        let stages = stages("100..200", began).await;
        let schedule = Schedule::new(&stages);
        let due = |number| schedule.due(number).map(|due| (due - began).as_millis());
        assert_eq!(due(3), Some(30));
        assert_eq!(due(10), Some(100));
        assert_eq!(due(21), Some(205));
        assert_eq!((due(39), due(40)), (Some(295), None));
    }

    #[tokio::test]
    async fn calls_that_nobody_takes_stay_due() {
        let stages = stages("100", Instant::now()).await;
        let pacer = Pacer::start(&stages);
        assert_eq!(pacer.next().await, Some(stages.began));
        while !pacer.permits.is_closed() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(pacer.next().await, None);
        assert_eq!((pacer.behind(), pacer.unsent().count()), (29, 29));
    }
}
