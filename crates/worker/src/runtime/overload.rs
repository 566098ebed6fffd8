use std::time::Duration;

use shoal_ports::CallFailure;

/// A full pool rarely empties sooner.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(super) fn waited(until: &str) -> CallFailure {
    CallFailure::overloaded(format!("it waited in the queue until {until}"), RETRY_AFTER)
}
