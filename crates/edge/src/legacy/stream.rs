//! A session's events as SSE, resumable by id.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use futures::future::BoxFuture;
use shoal_ports::{AuthError, EventStream, StreamItem};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::HandedOverMessage;
use super::agent::resumes_calls;
use crate::backlog::BacklogReader;
use crate::held_places::SessionPlaces;
use crate::recorder::{RequestRecord, WhyUnanswered};
use crate::sse;
use crate::visit::Visit;
use shoal_telemetry::metrics::StreamKind;

/// The reconnect delay for a client with an open call. Short, because the client has already waited for its share of
/// the drain's spread.
const AT_ONCE: Duration = Duration::from_millis(10);

/// Dropping the frames detaches this reader, and the session continues.
pub(super) struct StreamFrames {
    events: EventStream,
    reader: BacklogReader,
    resumable: bool,
    resumes: bool,
    over: BoxFuture<'static, AuthError>,
    /// Becomes ready when the node drains and the client should leave.
    drained: BoxFuture<'static, ()>,
    after_drain: Duration,
    reconnect_after: Duration,
    record: Option<RequestRecord>,
    places: Option<SessionPlaces>,
    /// Requests that get an error at a drain, because their client has no event id to resume from.
    unanswered: Option<HandedOverMessage>,
    /// Becomes ready when the node ends before the unanswered requests do.
    cut_off: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: bool,
}

impl StreamFrames {
    pub(super) fn of_get(events: EventStream, kind: StreamKind, visit: &Visit<'_>) -> Self {
        Self::new(events, kind, visit, true, (None, None, None))
    }

    /// Streams the answer of a POST. Only a client that got an event id before the events (2025-11-25) is known to
    /// resume. Older clients and [some](super::agent) of that revision treat a clean end as a lost request, so their
    /// streams continue during a drain.
    pub(super) fn of_post(
        events: EventStream,
        visit: &Visit<'_>,
        record: Option<RequestRecord>,
        (handed, places): (HandedOverMessage, Option<SessionPlaces>),
    ) -> Self {
        let unanswered = Some(handed);
        let of_post = (record, places, unanswered);
        Self::new(events, StreamKind::Call, visit, false, of_post)
    }

    fn new(
        events: EventStream,
        kind: StreamKind,
        visit: &Visit<'_>,
        resumable: bool,
        (record, places, unanswered): (
            Option<RequestRecord>,
            Option<SessionPlaces>,
            Option<HandedOverMessage>,
        ),
    ) -> Self {
        let edge = visit.edge;
        let reconnect_after = edge.reconnect_after();
        let drain = edge.drain.clone();
        // A GET that the client reopens shows a new token, so expiry ends a resumable stream. A call of a
        // POST runs on unless its token is revoked.
        let over = match resumable {
            true => visit.until_over(),
            false => visit.until_revoked(),
        };
        let (stays, after_drain) = match kind {
            StreamKind::Call => (edge.share_of_return(), AT_ONCE),
            _ => (Duration::ZERO, reconnect_after),
        };
        Self {
            events,
            reader: visit.reader(),
            resumable,
            resumes: resumable || resumes_calls(&visit.head.headers),
            over,
            drained: Box::pin(async move {
                drain.cancelled().await;
                tokio::time::sleep(stays).await;
            }),
            after_drain,
            reconnect_after,
            record,
            places,
            unanswered,
            cut_off: Box::pin(edge.load.waits_end().cancelled_owned()),
            ended: false,
        }
    }

    fn close(&mut self) {
        self.ended = true;
        if let Some(record) = &self.record {
            record.expect_none(WhyUnanswered::Closed);
        }
    }

    fn knows_an_id(&mut self) {
        if self.resumes {
            self.unanswered = None;
        }
    }

    /// A client with an event id resumes elsewhere, and any other client gets an error.
    fn cut_off(&mut self) -> Bytes {
        let Some(unanswered) = self.unanswered.take() else {
            self.close();
            return sse::retry(self.after_drain);
        };
        self.ended = true;
        let mut frames = BytesMut::new();
        for answer in unanswered.answers_of_drain() {
            if let Some(record) = &self.record {
                record.wrote(&answer);
            }
            frames.extend_from_slice(&sse::message(&answer));
        }
        frames.freeze()
    }

    fn frame(&mut self, item: StreamItem) -> Bytes {
        if let (Some(places), StreamItem::Event { data, .. }) = (&mut self.places, &item) {
            places.answered(data);
        }
        match item {
            // A message outside the log may be lost. The client asks for a task's result again.
            StreamItem::Passing { data } => match self.reader.keep(sse::message(&data)) {
                Ok(frame) => {
                    if let Some(record) = &self.record {
                        record.wrote(&data);
                    }
                    frame
                }
                Err(_) => {
                    if !self.resumable {
                        self.close();
                    }
                    sse::COMMENT
                }
            },
            StreamItem::Event { id, data } => match self.reader.keep(sse::resumable(id, &data)) {
                Ok(frame) => {
                    self.knows_an_id();
                    if let Some(record) = &self.record {
                        record.wrote(&data);
                    }
                    frame
                }
                // The message is in the log, so the client resumes to read it.
                Err(_) => {
                    self.close();
                    sse::retry(self.reconnect_after)
                }
            },
            StreamItem::Prime { id } => {
                self.resumable |= self.resumes;
                self.knows_an_id();
                sse::prime(id)
            }
            StreamItem::Retry(after) => {
                self.close();
                sse::retry(after)
            }
            StreamItem::Moved => {
                self.close();
                sse::retry(self.reconnect_after)
            }
        }
    }
}

impl Stream for StreamFrames {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        // Checked first, so that a client with an invalid token receives no more events.
        if self.over.as_mut().poll(cx).is_ready() {
            self.close();
            return Poll::Ready(Some(sse::retry(self.reconnect_after)));
        }
        // Sending queued items spares the client a fetch from the log.
        if let Poll::Ready(item) = self.events.items.poll_recv(cx) {
            if item.is_none()
                && let Some(record) = &self.record
            {
                record.expect_none(WhyUnanswered::Cut);
            }
            return Poll::Ready(item.map(|item| self.frame(item)));
        }
        if self.resumable && self.drained.as_mut().poll(cx).is_ready() {
            self.close();
            return Poll::Ready(Some(sse::retry(self.after_drain)));
        }
        if !self.resumable && self.cut_off.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(self.cut_off()));
        }
        Poll::Pending
    }
}
