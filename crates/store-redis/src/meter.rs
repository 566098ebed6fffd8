use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of latency classes: up to 1 µs, 2 µs, 4 µs, … and above 33 s.
const CLASSES: usize = 26;

#[derive(Default)]
pub(crate) struct Meter {
    commands: AtomicU64,
    failures: AtomicU64,
    reconnects: AtomicU64,
    latency: [AtomicU64; CLASSES],
}

/// Reply times since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Latency {
    /// The median in microseconds, at most twice the true one.
    pub p50_us: u64,
    /// The 99th percentile in microseconds.
    pub p99_us: u64,
    /// The maximum in microseconds.
    pub max_us: u64,
}

impl Meter {
    pub(crate) fn answered(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let class = usize::try_from((micros - 1).checked_ilog2().map_or(0, |log| log + 1));
        let class = class.unwrap_or(CLASSES).min(CLASSES - 1);
        self.commands.fetch_add(1, Ordering::Relaxed);
        self.latency[class].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.commands.fetch_add(1, Ordering::Relaxed);
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reconnected(&self) {
        self.reconnects.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn reconnects(&self) -> u64 {
        self.reconnects.load(Ordering::Relaxed)
    }

    pub(crate) fn latency(&self) -> Latency {
        let counts: Vec<u64> = self
            .latency
            .iter()
            .map(|count| count.load(Ordering::Relaxed))
            .collect();
        let total: u64 = counts.iter().sum();
        let within = |share: u64| {
            let mut left = total * share / 100;
            let class = counts.iter().position(|count| {
                let here = *count > left;
                left = left.saturating_sub(*count);
                here
            });
            class.map_or(0, |class| 1 << class)
        };
        let last = counts.iter().rposition(|count| *count > 0);
        Latency {
            p50_us: within(50),
            p99_us: within(99),
            max_us: last.map_or(0, |class| 1 << class),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Latency, Meter};

    #[test]
    fn latencies_are_summed_up() {
        let meter = Meter::default();
        assert_eq!(meter.latency(), Latency::default());
        for _ in 0..99 {
            meter.answered(Duration::from_micros(100));
        }
        meter.answered(Duration::from_micros(5000));
        let latency = meter.latency();
        assert_eq!((latency.p50_us, latency.p99_us), (128, 8192));
        assert_eq!(latency.max_us, 8192);
        assert_eq!(meter.commands(), 100);
    }
}
