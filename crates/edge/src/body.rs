use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use shoal_ports::Principal;

use crate::body_budget::{BodyBudget, BodyPermit, SMALL};
use crate::refusal::Refusal;

/// The maximum ratio of allocated to received bytes.
const GROWTH: usize = 8;

#[derive(Clone, Copy)]
pub(crate) struct Bounds<'a> {
    pub(crate) bytes: usize,
    pub(crate) within: Duration,
    pub(crate) room: &'a Arc<BodyBudget>,
    pub(crate) principal: &'a Principal,
}

/// Does not copy a small body that arrives with its head. Returns a large body with its room in the
/// budget.
pub(crate) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    bounds: Bounds<'_>,
) -> Result<(Bytes, Option<BodyPermit>), Refusal> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > bounds.bytes as u64) {
        return Err(Refusal::BodyTooLarge {
            limit: bounds.bytes,
        });
    }
    let announced = announced.and_then(|length| usize::try_from(length).ok());
    let reading = collect(&mut body, announced, bounds);
    let refused = match reading.await {
        Err(refused @ (Refusal::NoRoom { .. } | Refusal::NoRoomOfPrincipal { .. })) => refused,
        read => return read,
    };
    // Read the rest, because a client that is still sending might miss the answer. A client that
    // sent `Expect` has not begun to send.
    if !headers.contains_key(header::EXPECT) {
        let rest = Box::pin(discard(&mut body, bounds.bytes));
        let _ = tokio::time::timeout(bounds.within, rest).await;
    }
    Err(refused)
}

async fn collect(
    body: &mut Body,
    announced: Option<usize>,
    bounds: Bounds<'_>,
) -> Result<(Bytes, Option<BodyPermit>), Refusal> {
    let mut reading = BodyReading {
        announced,
        held: None,
        first: Bytes::new(),
        more: None,
    };
    if let Some(length) = announced.filter(|&length| length > SMALL) {
        let room = bounds.room.take(bounds.principal, length);
        reading.held = Some(Box::pin(room).await?);
    }
    // Most bodies arrive with their heads and need no timer.
    let read = {
        let mut read = pin!(reading.read(body, bounds));
        match futures::poll!(read.as_mut()) {
            Poll::Ready(read) => Ok(read),
            Poll::Pending => tokio::time::timeout(bounds.within, read).await,
        }
    };
    match read {
        Ok(read) => read?,
        Err(_) => {
            return Err(Refusal::BodyTooSlow {
                within: bounds.within,
            });
        }
    }
    Ok(reading.end())
}

struct BodyReading {
    announced: Option<usize>,
    held: Option<BodyPermit>,
    first: Bytes,
    more: Option<BytesMut>,
}

impl BodyReading {
    async fn read(&mut self, body: &mut Body, bounds: Bounds<'_>) -> Result<(), Refusal> {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Refusal::BodyBroken)?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let length = self.length() + data.len();
            if length > bounds.bytes {
                return Err(Refusal::BodyTooLarge {
                    limit: bounds.bytes,
                });
            }
            if length > SMALL && self.held.is_none() {
                // Takes room for the maximum, because holding some while waiting for more could
                // deadlock.
                let room = bounds.room.take(bounds.principal, bounds.bytes);
                self.held = Some(Box::pin(room).await?);
            }
            self.add(data, length);
            if self.more.is_none() && body.is_end_stream() {
                break;
            }
        }
        Ok(())
    }

    fn length(&self) -> usize {
        self.more.as_ref().map_or(self.first.len(), BytesMut::len)
    }

    fn add(&mut self, data: Bytes, length: usize) {
        if self.first.is_empty() && self.more.is_none() {
            self.first = data;
            return;
        }
        let all = self
            .more
            .get_or_insert_with(|| BytesMut::from(&self.first[..]));
        // Reserve ahead, because growing copies the data.
        if all.capacity() < length {
            let room = self.announced.unwrap_or(0).min(length * GROWTH).max(length);
            all.reserve(room - all.len());
        }
        all.extend_from_slice(&data);
    }

    fn end(self) -> (Bytes, Option<BodyPermit>) {
        let text = self.more.map_or(self.first, BytesMut::freeze);
        let mut held = self.held;
        if let Some(held) = &mut held {
            held.shrink(text.len());
        }
        (text, held)
    }
}

async fn discard(body: &mut Body, limit: usize) {
    let mut length = 0;
    while let Some(Ok(frame)) = body.frame().await {
        length += frame.data_ref().map_or(0, Bytes::len);
        if length > limit {
            return;
        }
    }
}
