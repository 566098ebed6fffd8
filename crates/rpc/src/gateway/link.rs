use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use shoal_ports::{EventStream, GatewayError, LazySender, Opened, SessionTasks, lazy_channel};
use shoal_protocol::EventId;
use shoal_protocol::task::Task;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::stream;
use crate::LinkConfig;
use crate::link::ByFlight;
use crate::link::outbox::Outbox;
use crate::proto::node::v1::edge_frame::Frame;
use crate::proto::node::v1::{Detach, EdgeFrame, Item};

pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(super) struct GatewayLink {
    pub(super) outbox: Arc<Outbox<EdgeFrame>>,
    pub(super) config: LinkConfig,
    pub(super) version: u32,
    pub(super) closing: CancellationToken,
    next: AtomicU64,
    flights: Mutex<Option<ByFlight<PendingAnswer>>>,
}

enum PendingAnswer {
    Asked(oneshot::Sender<GatewayReply>),
    /// The peer's credit limits the number of items.
    Streaming(LazySender<Passed>),
}

pub(super) enum Passed {
    Item(Item),
    End,
}

pub(super) enum GatewayReply {
    Opened(Opened),
    Accepted,
    Json(Bytes),
    Stream(EventStream),
    Task(Task),
    SessionTasks(Option<SessionTasks>),
    Closed,
    Failed(GatewayError),
}

impl GatewayReply {
    pub(super) fn into_task(self) -> Result<Task, GatewayError> {
        match self {
            Self::Task(task) => Ok(task),
            other => Err(other.unexpected()),
        }
    }

    pub(super) fn unexpected(self) -> GatewayError {
        match self {
            Self::Failed(error) => error,
            _ => GatewayError::Internal("the node's answer does not match the request".to_owned()),
        }
    }
}

impl GatewayLink {
    pub(super) fn new(
        outbox: Arc<Outbox<EdgeFrame>>,
        config: LinkConfig,
        version: u32,
    ) -> Arc<Self> {
        Arc::new(Self {
            outbox,
            config,
            version,
            closing: CancellationToken::new(),
            next: AtomicU64::new(1),
            flights: Mutex::new(Some(ByFlight::default())),
        })
    }

    pub(super) fn is_up(&self) -> bool {
        self.flights.lock().is_some()
    }

    pub(super) async fn ask(
        self: &Arc<Self>,
        frame: impl FnOnce(u64) -> Frame,
    ) -> Result<GatewayReply, GatewayError> {
        if self.outbox.is_full() {
            return Err(GatewayError::Overloaded {
                reason: "too many bytes wait to be sent to the session's node".to_owned(),
                retry_after: RETRY_AFTER,
            });
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let entered = match &mut *self.flights.lock() {
            Some(flights) => flights
                .insert(number, PendingAnswer::Asked(answer))
                .is_none(),
            None => false,
        };
        if !entered {
            return Err(broken());
        }
        let mut guard = DetachGuard {
            link: self,
            number: Some(number),
        };
        if let Err(too_long) = self.outbox.push(number, frame(number)) {
            guard.number = None;
            self.forget(number);
            return Err(GatewayError::Internal(format!(
                "cannot forward the message: {too_long}"
            )));
        }
        let reply = answered.await;
        guard.number = None;
        match reply {
            Ok(GatewayReply::Failed(error)) => Err(error),
            Ok(reply) => Ok(reply),
            Err(_) => Err(broken()),
        }
    }

    pub(super) fn reply(&self, number: u64, reply: GatewayReply) {
        let asked = match &mut *self.flights.lock() {
            Some(flights) => flights.remove(&number),
            None => None,
        };
        if let Some(PendingAnswer::Asked(asked)) = asked {
            let _ = asked.send(reply);
        }
    }

    pub(super) fn began(self: &Arc<Self>, number: u64, cursor: EventId) {
        let (sender, items) = lazy_channel(usize::MAX);
        let asked = match &mut *self.flights.lock() {
            Some(flights) => match flights.remove(&number) {
                Some(PendingAnswer::Asked(asked)) => {
                    flights.insert(number, PendingAnswer::Streaming(sender));
                    Some(asked)
                }
                _ => None,
            },
            None => None,
        };
        let Some(asked) = asked else {
            return self.detach(number);
        };
        let stream = stream::arriving(Arc::clone(self), number, cursor, items);
        let _ = asked.send(GatewayReply::Stream(stream));
    }

    pub(super) fn pass(&self, number: u64, passed: Passed) {
        let mut flights = self.flights.lock();
        let Some(flights) = flights.as_mut() else {
            return;
        };
        let ended = matches!(passed, Passed::End);
        if let Some(PendingAnswer::Streaming(items)) = flights.get(&number) {
            let _ = items.try_send(passed);
        }
        if ended {
            flights.remove(&number);
        }
    }

    pub(super) fn detach(&self, number: u64) {
        self.forget(number);
        // In the request's flight, because the detachment must follow waiting fragments of the request. A short frame
        // always fits.
        let _ = (self.outbox).push(number, Frame::Detach(Detach { flight: number }));
    }

    fn forget(&self, number: u64) {
        if let Some(flights) = &mut *self.flights.lock() {
            flights.remove(&number);
        }
    }

    pub(super) fn over(&self, reason: &str) {
        let flights = self.flights.lock().take();
        drop(flights);
        self.outbox.close(Some(reason));
    }

    pub(super) fn close(&self) {
        self.closing.cancel();
    }
}

struct DetachGuard<'a> {
    link: &'a GatewayLink,
    number: Option<u64>,
}

impl Drop for DetachGuard<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.link.detach(number);
        }
    }
}

fn broken() -> GatewayError {
    GatewayError::Unreachable {
        reason: "the link broke".to_owned(),
    }
}
