use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shoal_ports::{LatencyHistogram, quantile};
use shoal_telemetry::metrics::{Metrics, metrics};

use crate::status::{PauseStatus, RoutingStatus};

#[derive(Debug)]
pub(crate) struct RoutingCounters {
    pub(crate) redelivered: MeteredCounter,
    pub(crate) reattached: MeteredCounter,
    pub(crate) lost_streams: MeteredCounter,
    pub(crate) relayed: MeteredCounter,
    pub(crate) given_up: MeteredCounter,
    pub(crate) takeovers: PauseTimes,
}

#[derive(Debug)]
pub(crate) struct MeteredCounter {
    count: AtomicU64,
    metric: fn(&Metrics),
}

#[derive(Debug, Default)]
pub(crate) struct PauseTimes {
    lengths: LatencyHistogram,
    longest_ms: AtomicU64,
}

impl Default for RoutingCounters {
    fn default() -> Self {
        Self {
            redelivered: MeteredCounter::of(|all| all.nodes.redelivered()),
            reattached: MeteredCounter::of(|all| all.routes.reattached()),
            lost_streams: MeteredCounter::of(|all| all.routes.lost_stream()),
            relayed: MeteredCounter::of(|all| all.routes.relayed()),
            given_up: MeteredCounter::of(|all| all.routes.given_up()),
            takeovers: PauseTimes::default(),
        }
    }
}

impl RoutingCounters {
    pub(crate) fn status(&self, cached_owners: usize) -> RoutingStatus {
        RoutingStatus {
            cached_owners,
            redelivered: self.redelivered.get(),
            reattached: self.reattached.get(),
            lost_streams: self.lost_streams.get(),
            relayed: self.relayed.get(),
            given_up: self.given_up.get(),
            takeovers: self.takeovers.status(),
        }
    }
}

impl MeteredCounter {
    fn of(metric: fn(&Metrics)) -> Self {
        Self {
            count: AtomicU64::new(0),
            metric,
        }
    }

    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        (self.metric)(metrics());
    }

    fn get(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl PauseTimes {
    pub(crate) fn record(&self, pause: Duration) {
        metrics().routes.waited(pause);
        self.lengths.record(pause);
        let ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self.longest_ms.fetch_max(ms, Ordering::Relaxed);
    }

    fn status(&self) -> PauseStatus {
        let counts = self.lengths.counts();
        let max_ms = self.longest_ms.load(Ordering::Relaxed);
        let within = |part| {
            let micros = quantile(&counts, part).unwrap_or_default();
            micros.div_ceil(1_000).min(max_ms)
        };
        PauseStatus {
            count: counts.iter().sum(),
            p50_ms: within(0.5),
            p99_ms: within(0.99),
            max_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::PauseTimes;
    use crate::status::PauseStatus;

    #[test]
    fn pauses_are_known_to_within_a_half() {
        let pauses = PauseTimes::default();
        assert_eq!(pauses.status(), PauseStatus::default());
        for ms in 1..=1000 {
            pauses.record(Duration::from_millis(ms));
        }
        let status = pauses.status();
        assert_eq!((status.count, status.max_ms), (1000, 1000));
        assert!((480..=700).contains(&status.p50_ms), "{status:?}");
        assert!((980..=1000).contains(&status.p99_ms), "{status:?}");
        pauses.record(Duration::from_secs(86_400));
        assert_eq!(pauses.status().max_ms, 86_400_000);
    }
}
