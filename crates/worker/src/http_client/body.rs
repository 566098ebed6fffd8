use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use reqwest::Response;

pub(crate) const LATER: Duration = Duration::from_secs(1);
const LATEST: Duration = Duration::from_secs(3600);

/// Ignores read errors, because the response's status matters more.
pub(crate) async fn beginning_of(mut answer: Response, limit: usize) -> Bytes {
    let mut whole = BytesMut::new();
    while whole.len() < limit
        && let Ok(Some(bytes)) = answer.chunk().await
    {
        whole.extend_from_slice(&bytes[..bytes.len().min(limit - whole.len())]);
    }
    whole.freeze()
}

/// Reads `Retry-After` in seconds. Ignores dates, which depend on another machine's clock.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    let seconds = seconds.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).clamp(LATER, LATEST))
}
