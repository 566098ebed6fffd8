//! Reading an answer, bounded.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use reqwest::Response;

/// When to come back if the server did not say.
pub(crate) const LATER: Duration = Duration::from_secs(1);
/// The longest time after which a caller is told to come back.
const LATEST: Duration = Duration::from_secs(3600);

/// The beginning of a body, as far as it comes: what is said of a failure matters less than that it is one.
pub(crate) async fn beginning_of(mut answer: Response, limit: usize) -> Bytes {
    let mut whole = BytesMut::new();
    while whole.len() < limit
        && let Ok(Some(bytes)) = answer.chunk().await
    {
        whole.extend_from_slice(&bytes[..bytes.len().min(limit - whole.len())]);
    }
    whole.freeze()
}

/// When the server says to come back. A date instead of seconds says as little as no header: it is by another machine's clock.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    let seconds = seconds.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).clamp(LATER, LATEST))
}
