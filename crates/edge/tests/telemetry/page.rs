use std::sync::OnceLock;
use std::time::Duration;

use shoal_telemetry::config::Telemetry;
use shoal_telemetry::logging::Logging;
use shoal_telemetry::metrics::prometheus_text;
use shoal_telemetry::{Guard, init};
use tokio::sync::{Mutex, MutexGuard};

use crate::collector::Collector;

pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// Tests that count run one at a time.
pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    let turn = TURN.lock().await;
    collector();
    turn
}

pub(crate) fn collector() -> &'static Collector {
    static TELEMETRY: OnceLock<(Collector, Guard)> = OnceLock::new();
    let (collector, _) = TELEMETRY.get_or_init(|| {
        let collector = Collector::start();
        let mut telemetry = Telemetry {
            endpoint: Some(collector.endpoint.clone()),
            timeout: BOUND.into(),
            ..Telemetry::default()
        };
        telemetry.traces.delay = Duration::from_millis(20);
        let guard = init(&telemetry, &Logging::default()).unwrap();
        (collector, guard)
    });
    collector
}

pub(crate) struct Series {
    name: &'static str,
    labels: Vec<String>,
    before: f64,
}

impl Series {
    pub(crate) fn of(name: &'static str, labels: &[(&str, &str)]) -> Self {
        let mut series = Self::level(name, labels);
        series.before = series.now();
        series
    }

    /// Counts from the present value, because other tests' connections may still be closing.
    pub(crate) fn level(name: &'static str, labels: &[(&str, &str)]) -> Self {
        let label = |(key, value): &(&str, &str)| format!("{key}=\"{value}\"");
        Self {
            name,
            labels: labels.iter().map(label).collect(),
            before: 0.0,
        }
    }

    fn added(&self) -> f64 {
        self.now() - self.before
    }

    /// Waits, because the server notices a closed connection late.
    pub(crate) async fn reaches(&self, added: f64) {
        let reached = async {
            while (self.added() - added).abs() > f64::EPSILON {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(BOUND, reached).await.is_err() {
            panic!(
                "{} with {:?} grew by {} and not by {added}:\n{}",
                self.name,
                self.labels,
                self.added(),
                prometheus_text()
            );
        }
    }

    fn now(&self) -> f64 {
        let text = prometheus_text();
        let lines = text.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let has = |label: &String| labels.contains(label.as_str());
            (name == self.name && self.labels.iter().all(has))
                .then(|| value.parse::<f64>().unwrap())
        });
        lines.sum()
    }
}
