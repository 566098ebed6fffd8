use std::time::Duration;

use tokio::time::{Instant, sleep};

const EVERY: Duration = Duration::from_millis(20);

/// Repeats a check until it passes.
///
/// # Errors
///
/// The check's last error, if it does not pass in time.
pub(crate) async fn until(
    within: Duration,
    check: impl AsyncFn() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + within;
    loop {
        match check().await {
            Err(_) if Instant::now() < deadline => sleep(EVERY).await,
            passed => return passed,
        }
    }
}
