//! The answer to one request of an edge, up to the end of its stream.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{Delivered, EventStream, GatewayError, Opened, StreamItem};
use shoal_protocol::EventId;

use super::drive::ServedRequests;
use super::served_request::ServedRequest;
use crate::convert::gateway::{error_to_wire, event_id_out, item_cost, item_out, opened_out};
use crate::error::TooLong;
use crate::link::outbox::{Outbox, Pushed};
use crate::proto::node::v1::session_frame::Frame;
use crate::proto::node::v1::{Accepted, Closed, End, Failed, Json, SessionFrame, StreamBegan};

/// When to come back to a link that has too much to send.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Answers a request; the request is over when this is dropped.
pub(super) struct Answering {
    number: u64,
    flight: Arc<ServedRequest>,
    outbox: Arc<Outbox<SessionFrame>>,
    flights: Arc<ServedRequests>,
    /// Whether the edge waits for nothing any more.
    done: AtomicBool,
}

impl Answering {
    pub(super) fn new(
        number: u64,
        flight: Arc<ServedRequest>,
        outbox: Arc<Outbox<SessionFrame>>,
        flights: Arc<ServedRequests>,
    ) -> Self {
        Self {
            number,
            flight,
            outbox,
            flights,
            done: AtomicBool::new(false),
        }
    }

    /// What the gateway says; `None` when the edge has left first. Then the gateway's future is dropped, as
    /// it is in one process when a connection breaks.
    pub(super) async fn wait<T>(&self, asked: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            said = asked => Some(said),
            () = self.flight.left() => {
                self.done.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    /// Refuses what the edge asks while it does not read what it was told; whether it did. Nothing has been done then.
    pub(super) fn refused(&self) -> bool {
        let full = self.outbox.is_full();
        if full {
            self.failed(backed_up());
        }
        full
    }

    /// What became of a post; `once` says that it must not be carried out again.
    pub(super) async fn delivered(
        self,
        delivered: Option<Result<Delivered, GatewayError>>,
        once: bool,
    ) {
        let flight = self.number;
        match delivered {
            Some(Ok(Delivered::Json(text))) if once => self.end(Frame::Json(Json { flight, text })),
            Some(Ok(Delivered::Json(text))) => self.json(text),
            Some(Ok(Delivered::Accepted)) => self.end(Frame::Accepted(Accepted { flight })),
            Some(Ok(Delivered::Stream(stream))) => self.stream(stream).await,
            Some(Err(error)) => self.failed(error),
            None => {}
        }
    }

    pub(super) fn listening(self, listening: Option<Result<EventStream, GatewayError>>) {
        match listening {
            // In a task of its own, half as large: the one that asked has room for the question as long as it lasts.
            Some(Ok(stream)) => drop(tokio::spawn(async move { self.stream(stream).await })),
            Some(Err(error)) => self.failed(error),
            None => {}
        }
    }

    pub(super) fn opened(self, opened: Option<Result<Opened, GatewayError>>) {
        match opened {
            Some(Ok(opened)) => self.end(Frame::Opened(opened_out(self.number, opened))),
            Some(Err(error)) => self.failed(error),
            None => {}
        }
    }

    pub(super) fn closed(self, closed: Option<Result<(), GatewayError>>) {
        let flight = self.number;
        match closed {
            Some(Ok(())) => self.end(Frame::Closed(Closed { flight })),
            Some(Err(error)) => self.failed(error),
            None => {}
        }
    }

    /// An answer takes no credit, since it is one frame. What keeps many of them from piling up here, while the edge does not
    /// read, is the room for all that waits on the link. What is refused so is safe to repeat: the answers to the rest are
    /// short, and as many at most as requests wait for them.
    fn json(&self, text: Bytes) {
        let flight = self.number;
        match (self.outbox).push_with_room(flight, Frame::Json(Json { flight, text })) {
            Ok(Pushed::Queued | Pushed::Dropped) => self.done.store(true, Ordering::Relaxed),
            Ok(Pushed::Full) => self.failed(backed_up()),
            Err(too_long) => self.not_passed_on(too_long),
        }
    }

    fn failed(&self, error: GatewayError) {
        self.end(Frame::Failed(Failed {
            flight: self.number,
            error: Some(error_to_wire(error)),
        }));
    }

    /// Says the last of it. What does not fit becomes a refusal that says so.
    fn end(&self, frame: Frame) {
        self.done.store(true, Ordering::Relaxed);
        if let Err(too_long) = self.say(frame) {
            self.not_passed_on(too_long);
        }
    }

    fn not_passed_on(&self, too_long: TooLong) {
        self.done.store(true, Ordering::Relaxed);
        let what = format!("the answer was not passed on: {too_long}");
        let refusal = Frame::Failed(Failed {
            flight: self.number,
            error: Some(error_to_wire(GatewayError::Internal(what))),
        });
        let _ = self.say(refusal);
    }

    fn say(&self, frame: Frame) -> Result<(), TooLong> {
        self.outbox.push(self.number, frame).map(drop)
    }

    /// Sends what the stream brings until it ends or the edge leaves.
    async fn stream(&self, mut stream: EventStream) {
        let flight = self.number;
        self.done.store(true, Ordering::Relaxed);
        if self.flight.is_detached() {
            return;
        }
        let cursor = Some(event_id_out(stream.cursor));
        let _ = self.say(Frame::StreamBegan(StreamBegan { flight, cursor }));
        while self.flight.may_send().await {
            let item = tokio::select! {
                item = stream.items.recv() => item,
                () = self.flight.left() => return,
            };
            if !item.is_some_and(|item| self.item(item, &mut stream.cursor)) {
                return self.end(Frame::End(End { flight }));
            }
            self.outbox.room().await;
        }
    }

    /// Sends an item; `false` when it does not fit. Then the stream must end: what follows would leave a gap.
    fn item(&self, item: StreamItem, cursor: &mut EventId) -> bool {
        let item = item_out(self.number, item, cursor);
        self.flight.sent(item_cost(&item));
        match self.say(Frame::Item(item)) {
            Ok(()) => true,
            Err(too_long) => {
                tracing::error!(%too_long, "an event does not fit on a link: its stream was ended");
                false
            }
        }
    }
}

fn backed_up() -> GatewayError {
    GatewayError::Overloaded {
        reason: "too much waits to be read from the session's node".to_owned(),
        retry_after: RETRY_AFTER,
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.flights.remove(self.number);
        if !self.done.load(Ordering::Relaxed) {
            // The gateway panicked: nobody else will tell whoever waits.
            self.failed(GatewayError::Internal(
                "the session's node failed".to_owned(),
            ));
        }
    }
}
