use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shoal_ports::{Delivered, EventStream, GatewayError, Opened, SessionTasks, StreamItem};
use shoal_protocol::task::Task;
use shoal_protocol::{EventId, RequestId, response};

use super::served_request::{ServedRequest, ServedRequests};
use crate::convert::gateway::{error_to_wire, event_id_out, item_cost, item_out, opened_out};
use crate::convert::task::{task_out, tasks_out};
use crate::error::TooLong;
use crate::link::outbox::{Outbox, Pushed};
use crate::link::versions;
use crate::proto::node::v1::session_frame::Frame;
use crate::proto::node::v1::{Accepted, Closed, End, Failed, Json, SessionFrame, StreamBegan};

const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Answering {
    number: u64,
    version: u32,
    flight: Arc<ServedRequest>,
    outbox: Arc<Outbox<SessionFrame>>,
    flights: Arc<ServedRequests>,
    done: AtomicBool,
}

impl Answering {
    pub(super) fn new(
        (number, version): (u64, u32),
        flight: Arc<ServedRequest>,
        outbox: Arc<Outbox<SessionFrame>>,
        flights: Arc<ServedRequests>,
    ) -> Self {
        Self {
            number,
            version,
            flight,
            outbox,
            flights,
            done: AtomicBool::new(false),
        }
    }

    /// `None` if the edge leaves first.
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

    /// An edge that does not read its earlier answers gets a refusal.
    pub(super) fn refused(&self) -> bool {
        let full = self.outbox.is_full();
        if full {
            self.failed(backed_up());
        }
        full
    }

    /// Refuses a request that the edge's release sends in another form.
    pub(super) fn of_other_release(self) {
        self.failed(GatewayError::Unavailable {
            reason: "the task's session node has a newer release than the edge".to_owned(),
            retry_after: RETRY_AFTER,
        });
    }

    /// With `once`, the edge must not repeat the delivery. The answer is therefore sent even if the queue is full.
    pub(super) async fn delivered(
        self,
        delivered: Option<Result<Delivered, GatewayError>>,
        request: Option<RequestId>,
        once: bool,
    ) {
        let flight = self.number;
        match delivered {
            Some(Ok(Delivered::Json(text))) if once => self.end(Frame::Json(Json { flight, text })),
            Some(Ok(Delivered::Json(text))) => self.with_room(Frame::Json(Json { flight, text })),
            // An older edge passes the response on as it is.
            Some(Ok(Delivered::Task(task))) if self.version < versions::TASKS => {
                let id = request.unwrap_or_else(|| RequestId::from_number(0));
                let text = response(&id, &task.to_legacy_created());
                self.end(Frame::Json(Json { flight, text }));
            }
            Some(Ok(Delivered::Task(task))) => self.end(Frame::Task(task_out(flight, task))),
            Some(Ok(Delivered::Accepted)) => self.end(Frame::Accepted(Accepted { flight })),
            Some(Ok(Delivered::Stream(stream))) => self.stream(stream).await,
            Some(Err(error)) => self.failed(error),
            None => {}
        }
    }

    pub(super) fn listening(self, listening: Option<Result<EventStream, GatewayError>>) {
        match listening {
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

    pub(super) fn adopted(self, adopted: Option<Result<Task, GatewayError>>) {
        match adopted {
            Some(Ok(task)) => self.end(Frame::Task(task_out(self.number, task))),
            Some(Err(error)) => self.failed(error),
            None => {}
        }
    }

    /// The edge may repeat a request about a task.
    pub(super) fn task(self, task: Option<Result<Task, GatewayError>>) {
        match task {
            Some(Ok(task)) => self.with_room(Frame::Task(task_out(self.number, task))),
            Some(Err(error)) => self.failed(error),
            None => {}
        }
    }

    pub(super) fn session_tasks(self, made: Option<Result<Option<SessionTasks>, GatewayError>>) {
        match made {
            Some(Ok(made)) => self.end(Frame::SessionTasks(tasks_out(self.number, made))),
            Some(Err(error)) => self.failed(error),
            None => {}
        }
    }

    pub(super) fn over(self, over: Option<Result<(), GatewayError>>) {
        let flight = self.number;
        match over {
            Some(Ok(())) => self.end(Frame::Accepted(Accepted { flight })),
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

    /// Needs no credit. If the queue is full because the edge does not read, sends an error, and the edge may repeat
    /// the request.
    fn with_room(&self, frame: Frame) {
        match (self.outbox).push_with_room(self.number, frame) {
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

    /// Returns `false` if the item is too long. Then the stream must end, because later items would
    /// leave a gap.
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
        reason: "too many bytes from the session's node wait to be read".to_owned(),
        retry_after: RETRY_AFTER,
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.flights.remove(self.number);
        if !self.done.load(Ordering::Relaxed) {
            self.failed(GatewayError::Internal(
                "the session's node failed".to_owned(),
            ));
        }
    }
}
