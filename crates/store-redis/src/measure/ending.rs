//! How the operations of the ports end, as metrics have it.

use shoal_ports::{LogError, StoreError};
use shoal_telemetry::metrics::StoreOutcome;

/// How an operation can end that did not take effect.
pub(super) trait Ending {
    /// As metrics have it.
    fn outcome(&self) -> StoreOutcome;
}

impl Ending for StoreError {
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

impl Ending for LogError {
    fn outcome(&self) -> StoreOutcome {
        match self {
            Self::Store(error) => error.outcome(),
            Self::Gone(_) => StoreOutcome::NotFound,
        }
    }
}

/// Why a command failed whose reply did not come.
pub(crate) const LATE: &str = "no reply in time";
