use std::time::Duration;

/// Converts a time to milliseconds, at least one.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis())
        .unwrap_or(u64::MAX)
        .clamp(1, 1 << 40)
}
