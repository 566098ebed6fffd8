//! The client's side of a running call: its events and its control.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use shoal_ports::{AskId, CallControl, CallEvent, CallEvents, CallFailure, RunningCall, WorkerId};
use shoal_protocol::Outcome;

use super::record::CallRecord;

/// Attaches to a call from after event `after`.
pub(super) fn attach(record: Arc<CallRecord>, after: u64, worker: &WorkerId) -> RunningCall {
    let number = record.attach(after);
    RunningCall {
        events: CallEvents::from_stream(Reader {
            record: Arc::clone(&record),
            number,
        }),
        control: record,
        worker: Some(worker.clone()),
    }
}

/// Reads a call's events straight out of its buffer: a channel between them would cost more than
/// the rest of a small call.
struct Reader {
    record: Arc<CallRecord>,
    number: u64,
}

impl Stream for Reader {
    type Item = CallEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<CallEvent>> {
        self.record.poll_read(self.number, cx.waker())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.record.leave(self.number);
    }
}

impl CallControl for CallRecord {
    fn answer(&self, ask: AskId, answer: Outcome) -> bool {
        // The tool may have stopped waiting between the two steps; then nobody was answered.
        self.close_ask(ask)
            .is_some_and(|waiting| waiting.send(answer).is_ok())
    }

    fn cancel(&self, reason: &str) {
        if self.stop(CallFailure::Cancelled) {
            tracing::debug!(call = %self.id, reason, "call cancelled");
        }
    }
}
