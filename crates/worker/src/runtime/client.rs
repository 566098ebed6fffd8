use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use futures::future::BoxFuture;
use shoal_ports::{
    Answered, AskId, CallControl, CallEvent, CallEvents, CallFailure, RunningCall, WorkerId,
    answered,
};
use shoal_protocol::Outcome;

use super::deserted;
use super::record::CallRecord;

pub(super) fn follow(
    record: Arc<CallRecord>,
    number: u64,
    name: u64,
    worker: &WorkerId,
) -> RunningCall {
    RunningCall {
        events: CallEvents::from_stream(EventReader {
            record: Arc::clone(&record),
            number,
        }),
        control: Arc::new(Control {
            record,
            number,
            name,
        }),
        worker: Some(worker.clone()),
    }
}

/// Reads events from the buffer, because a channel would cost more than the rest of a small call.
struct EventReader {
    record: Arc<CallRecord>,
    number: u64,
}

impl Stream for EventReader {
    type Item = CallEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<CallEvent>> {
        self.record.poll_read(self.number, cx.waker())
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        if self.record.leave(self.number) {
            deserted::watch(&self.record, self.number);
        }
    }
}

/// Controls a call until a later reader attaches, even after this reader has left.
struct Control {
    record: Arc<CallRecord>,
    number: u64,
    name: u64,
}

impl CallControl for Control {
    fn answer(&self, ask: AskId, answer: Outcome) -> Answered {
        answered(self.record.answer(self.number, ask, answer))
    }

    fn cancel(&self, reason: &str) {
        if self.record.cancel(self.number) {
            tracing::debug!(call = %self.record.id, reason, "call cancelled");
        }
    }

    fn over(&self) -> Option<BoxFuture<'static, ()>> {
        self.record.over()
    }

    fn is_replaced(&self) -> bool {
        !self.record.is_latest(self.number)
    }

    fn reader(&self) -> Option<u64> {
        Some(self.name)
    }
}

impl CallRecord {
    fn cancel(&self, number: u64) -> bool {
        self.is_latest(number) && self.stop(CallFailure::Cancelled)
    }
}
