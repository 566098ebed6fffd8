//! Reading a request's body, bounded in size and time, and large ones in what all of them take.

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

/// By how much, at most, the space for a body exceeds what has come of it.
const GROWTH: usize = 8;

/// The bounds of one body.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'a> {
    /// How long it may be.
    pub(crate) bytes: usize,
    /// How long it may take.
    pub(crate) within: Duration,
    /// Where large ones find room.
    pub(crate) room: &'a Arc<BodyBudget>,
    /// Whose it is.
    pub(crate) principal: &'a Principal,
}

/// Reads the body. A small one, which arrives with its head, is not copied; a large one comes with the room that it holds.
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
    // A client that is still sending when the connection ends might not see the answer. One that asked whether to send has
    // not begun.
    if !headers.contains_key(header::EXPECT) {
        let _ = tokio::time::timeout(bounds.within, discard(&mut body, bounds.bytes)).await;
    }
    Err(refused)
}

/// Takes room and reads. Until there is room, nothing is read.
async fn collect(
    body: &mut Body,
    announced: Option<usize>,
    bounds: Bounds<'_>,
) -> Result<(Bytes, Option<BodyPermit>), Refusal> {
    let mut reading = Reading {
        announced,
        held: None,
        first: Bytes::new(),
        more: None,
    };
    if let Some(length) = announced.filter(|&length| length > SMALL) {
        reading.held = Some(bounds.room.take(bounds.principal, length).await?);
    }
    // Most bodies come with their heads, and are read without a timer.
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

/// What has come of a body.
struct Reading {
    announced: Option<usize>,
    held: Option<BodyPermit>,
    first: Bytes,
    /// All of it, once it is more than the first piece.
    more: Option<BytesMut>,
}

impl Reading {
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
                // Nobody said how much will come: room for all that may, since holding some of it while waiting for more
                // could block everybody.
                let room = bounds.room.take(bounds.principal, bounds.bytes);
                self.held = Some(room.await?);
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
        // Growing copies what is there: few steps, and the last one to what was announced. Who announces much must have
        // sent some of it.
        if all.capacity() < length {
            let room = self.announced.unwrap_or(0).min(length * GROWTH).max(length);
            all.reserve(room - all.len());
        }
        all.extend_from_slice(&data);
    }

    /// The text, holding no more room than it needs.
    fn end(self) -> (Bytes, Option<BodyPermit>) {
        let text = self.more.map_or(self.first, BytesMut::freeze);
        let mut held = self.held;
        if let Some(held) = &mut held {
            held.shrink(text.len());
        }
        (text, held)
    }
}

/// Reads up to `limit` bytes and forgets them.
async fn discard(body: &mut Body, limit: usize) {
    let mut length = 0;
    while let Some(Ok(frame)) = body.frame().await {
        length += frame.data_ref().map_or(0, Bytes::len);
        if length > limit {
            return;
        }
    }
}
