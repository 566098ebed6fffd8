//! Reading a request's body, bounded in size and time.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::BodyExt;

use crate::refusal::Refusal;

/// By how much, at most, the space for a body exceeds what has come of it.
const GROWTH: usize = 8;

/// Reads the body. A small one, which arrives with its head, is not copied.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    within: Duration,
) -> Result<Bytes, Refusal> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(Refusal::BodyTooLarge { limit });
    }
    let announced = announced.and_then(|length| usize::try_from(length).ok());
    match tokio::time::timeout(within, collect(body, limit, announced)).await {
        Ok(read) => read,
        Err(_) => Err(Refusal::BodyTooSlow { within }),
    }
}

async fn collect(mut body: Body, limit: usize, announced: Option<usize>) -> Result<Bytes, Refusal> {
    let mut first = Bytes::new();
    let mut more: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::BodyBroken)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let length = more.as_ref().map_or(first.len(), BytesMut::len) + data.len();
        if length > limit {
            return Err(Refusal::BodyTooLarge { limit });
        }
        if first.is_empty() && more.is_none() {
            first = data;
            if body.is_end_stream() {
                break;
            }
        } else {
            let all = more.get_or_insert_with(|| BytesMut::from(&first[..]));
            // Growing copies what is there: few steps, and the last one to what was announced. Who announces much must have
            // sent some of it.
            if all.capacity() < length {
                let room = announced.unwrap_or(0).min(length * GROWTH).max(length);
                all.reserve(room - all.len());
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(more.map_or(first, BytesMut::freeze))
}
