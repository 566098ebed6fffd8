use std::time::Instant;

use shoal_ports::{LogError, StoreError};
use shoal_telemetry::metrics::{StoreOutcome, metrics};
use shoal_telemetry::trace::{self, attributes, names};

pub(crate) const LATE: &str = "no reply in time";

/// Adds a span if the trace is sampled. Dropped operations are not counted.
pub(crate) async fn measured<T, E: OperationEnd>(
    operation: &'static str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let began = Instant::now();
    let mut span = match trace::current() {
        Some(parent) => trace::client(|| names::store_name(operation))
            .parent(Some(&parent))
            .start_with(|set| {
                set.set(attributes::DB_SYSTEM_NAME, "redis")
                    .set(attributes::DB_OPERATION_NAME, operation);
            }),
        None => trace::Span::none(),
    };
    let ended = work.await;
    let outcome = ended
        .as_ref()
        .map_or_else(OperationEnd::outcome, |_| StoreOutcome::Done);
    match outcome {
        StoreOutcome::Unavailable | StoreOutcome::Timeout => {
            span.record_error(outcome.as_str());
        }
        _ => span.set(attributes::OUTCOME, outcome.as_str()),
    }
    metrics()
        .store
        .operated(began.elapsed(), operation, outcome);
    ended
}

pub(crate) trait OperationEnd {
    fn outcome(&self) -> StoreOutcome;
}

impl OperationEnd for StoreError {
    fn outcome(&self) -> StoreOutcome {
        match self {
            Self::Stale => StoreOutcome::Stale,
            Self::Forgotten => StoreOutcome::Forgotten,
            Self::NotFound => StoreOutcome::NotFound,
            Self::Held => StoreOutcome::Held,
            Self::Full(_) => StoreOutcome::Full,
            Self::Unavailable(why) if why == LATE => StoreOutcome::Timeout,
            Self::Unavailable(_) | Self::Away(_) => StoreOutcome::Unavailable,
        }
    }
}

impl OperationEnd for LogError {
    fn outcome(&self) -> StoreOutcome {
        match self {
            Self::Store(error) => error.outcome(),
            Self::Gone(_) => StoreOutcome::NotFound,
        }
    }
}
