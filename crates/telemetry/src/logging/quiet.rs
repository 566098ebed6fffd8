//! Silences what the exporters say about themselves: their failures are counted and said by `export`, once a minute.

use std::fmt;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::metrics::{DropReason, Signal, metrics};

/// Targets of the exporters.
const TARGET: &str = "opentelemetry";
/// What only they know: the collector took an export and rejected a part of it.
const PARTIAL: &str = "PartialSuccess";
/// How often that is said.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// Silences the exporters, and counts what collectors reject.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    said: Mutex<Option<Instant>>,
}

impl<S: Subscriber> Layer<S> for Quiet {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        !is_exporters(metadata) || metadata.name().ends_with(PARTIAL)
    }

    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        if !is_exporters(event.metadata()) {
            return true;
        }
        let mut rejected = Rejected::default();
        event.record(&mut rejected);
        if let Some((signal, count)) = rejected.0 {
            metrics()
                .telemetry
                .dropped(signal, DropReason::Rejected, count);
        }
        let mut said = self.said.lock();
        let is_due = said.is_none_or(|at| at.elapsed() >= SAID_EVERY);
        if is_due {
            *said = Some(Instant::now());
        }
        is_due
    }
}

fn is_exporters(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with(TARGET)
}

/// How much of what was rejected.
#[derive(Default)]
struct Rejected(Option<(Signal, u64)>);

impl Visit for Rejected {
    fn record_i64(&mut self, field: &Field, value: i64) {
        let signal = match field.name() {
            "rejected_data_points" => Signal::Metrics,
            "rejected_log_records" => Signal::Logs,
            _ => return,
        };
        // A collector that says less than nothing is not believed.
        self.0 = u64::try_from(value).ok().map(|count| (signal, count));
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
