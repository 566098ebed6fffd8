use std::time::Duration;

use shoal_ports::{GatewayError, LogError, StoreError};

use crate::config::SessionConfig;

pub(crate) fn store_failed(error: &StoreError, config: &SessionConfig) -> GatewayError {
    let retry_after = config.calls.retry_after.get();
    match error {
        StoreError::NotFound => GatewayError::NotFound,
        StoreError::Full(limit) => GatewayError::Overloaded {
            reason: (*limit).to_owned(),
            retry_after,
        },
        StoreError::Stale | StoreError::Held => GatewayError::Moved { owner: None },
        StoreError::Forgotten | StoreError::Unavailable(_) | StoreError::Away(_) => {
            GatewayError::Unavailable {
                reason: error.to_string(),
                retry_after,
            }
        }
    }
}

pub(crate) fn log_failed(error: &LogError, config: &SessionConfig) -> GatewayError {
    match error {
        LogError::Gone(reason) => GatewayError::HistoryGone((*reason).into()),
        LogError::Store(error) => store_failed(error, config),
    }
}

pub(crate) const AGAIN: Duration = Duration::from_millis(100);
