//! A session's events as SSE, resumable by id.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use futures::future::BoxFuture;
use shoal_ports::{AuthError, EventStream, StreamItem};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::HandedOver;
use super::agent::resumes_calls;
use crate::backlog::Reader;
use crate::held_places::SessionPlaces;
use crate::recorder::{RequestRecord, Unanswered};
use crate::sse;
use crate::visit::Visit;
use shoal_telemetry::metrics::StreamKind;

/// When a client comes back for its call after a drain. Its connection has stayed open for its share of the time over
/// which clients are spread, so that most calls end before.
const AT_ONCE: Duration = Duration::from_millis(10);

/// The frames of one connection. Dropping it detaches the reader; the session runs on.
pub(super) struct StreamFrames {
    events: EventStream,
    reader: Reader,
    /// Whether the client will come back for the rest when the connection ends here.
    resumable: bool,
    /// Whether it will once it has an event id.
    resumes: bool,
    /// Ready when the client's token is good for this stream no more.
    over: BoxFuture<'static, AuthError>,
    /// Ready when the node drains, and the client is to go.
    drained: BoxFuture<'static, ()>,
    /// When the client comes back after a drain.
    after_drain: Duration,
    /// When it does after anything else that ends the connection before the stream.
    reconnect_after: Duration,
    /// What is recorded of the request whose answer is among the events.
    record: Option<RequestRecord>,
    /// The places of quotas that its requests hold.
    places: Option<SessionPlaces>,
    /// The requests that get an error at a drain, because a client without an event id cannot come back.
    unanswered: Option<HandedOver>,
    /// Ready when the node ends before the calls of such clients.
    cut_off: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: bool,
}

impl StreamFrames {
    /// The stream of a GET: clients reopen it by themselves.
    pub(super) fn of_get(events: EventStream, kind: StreamKind, visit: &Visit<'_>) -> Self {
        Self::new(events, kind, visit, true, (None, None, None))
    }

    /// The stream of a POST. Only a client that was primed (2025-11-25) is known to come back for the
    /// answer; clients of earlier revisions, and [some](super::agent) of that one, take a clean end for a
    /// lost request, so on a drain theirs runs on.
    pub(super) fn of_post(
        events: EventStream,
        visit: &Visit<'_>,
        record: Option<RequestRecord>,
        (handed, places): (HandedOver, Option<SessionPlaces>),
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
            Option<HandedOver>,
        ),
    ) -> Self {
        let edge = visit.edge;
        let reconnect_after = edge.reconnect_after();
        let drain = edge.drain.clone();
        // Whoever opens it again shows what is valid then. What a POST has begun runs to its end unless its token is taken back.
        let over = match resumable {
            true => visit.until_over(),
            false => visit.until_revoked(),
        };
        // Somebody waits for a call's answer, which most often comes within this time.
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

    /// The connection ends here; the answer, if it has not passed, comes on another.
    fn close(&mut self) {
        self.ended = true;
        if let Some(record) = &self.record {
            record.expect_none(Unanswered::Closed);
        }
    }

    fn knows_an_id(&mut self) {
        if self.resumes {
            self.unanswered = None;
        }
    }

    /// The node ends before the call. A client that knows an id reads on elsewhere; any other gets an answer.
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
            // What is said in passing may be lost where the client listens on. A task is asked for its result, and what it asks,
            // once more.
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
                // It is in the log, and the client comes back for it.
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
            // Where nobody has looked for the next owner: the client comes back and finds it.
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
        // First: what the caller may not read any more is not read out to the end.
        if self.over.as_mut().poll(cx).is_ready() {
            self.close();
            return Poll::Ready(Some(sse::retry(self.reconnect_after)));
        }
        // What waits in the channel is in the log too, but there is no need to make the client fetch it.
        if let Poll::Ready(item) = self.events.items.poll_recv(cx) {
            if item.is_none()
                && let Some(record) = &self.record
            {
                record.expect_none(Unanswered::Cut);
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
