use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::poll_fn;
use futures::{Stream, StreamExt as _};
use shoal_protocol::{Method, RawJson};
use tokio::sync::mpsc;

use crate::{CallOutcome, StateRequest};

/// The events of one call, in order.
pub struct CallEvents(CallEventSource);

enum CallEventSource {
    Stream(Pin<Box<dyn Stream<Item = CallEvent> + Send>>),
    Ended(Option<CallOutcome>),
}

impl CallEvents {
    /// Wraps a stream of events.
    pub fn from_stream(stream: impl Stream<Item = CallEvent> + Send + 'static) -> Self {
        Self(CallEventSource::Stream(Box::pin(stream.fuse())))
    }

    /// Makes the events of an ended call.
    pub fn finished(outcome: CallOutcome) -> Self {
        Self(CallEventSource::Ended(Some(outcome)))
    }

    /// Returns the call's outcome if the call ended before the first read.
    pub fn ended(&self) -> Option<&CallOutcome> {
        match &self.0 {
            CallEventSource::Ended(outcome) => outcome.as_ref(),
            CallEventSource::Stream(_) => None,
        }
    }

    /// Takes the outcome of [`ended`](Self::ended).
    pub fn take_ended(&mut self) -> Option<CallOutcome> {
        match &mut self.0 {
            CallEventSource::Ended(outcome) => outcome.take(),
            CallEventSource::Stream(_) => None,
        }
    }

    /// Returns the next event; `None` after `Finished` or a broken connection. Cancellation safe.
    pub async fn next(&mut self) -> Option<CallEvent> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for CallEvents {
    type Item = CallEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<CallEvent>> {
        match &mut self.0 {
            CallEventSource::Stream(stream) => stream.as_mut().poll_next(cx),
            CallEventSource::Ended(outcome) => {
                Poll::Ready(outcome.take().map(|outcome| CallEvent {
                    sequence: 1,
                    kind: CallEventKind::Finished(outcome),
                }))
            }
        }
    }
}

impl From<mpsc::Receiver<CallEvent>> for CallEvents {
    fn from(mut receiver: mpsc::Receiver<CallEvent>) -> Self {
        Self::from_stream(poll_fn(move |cx| receiver.poll_recv(cx)))
    }
}

impl std::fmt::Debug for CallEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            CallEventSource::Stream(_) => "CallEvents(stream)",
            CallEventSource::Ended(_) => "CallEvents(finished)",
        })
    }
}

/// An event of a call.
#[derive(Clone, Debug)]
pub struct CallEvent {
    /// The event's number. A worker counts from 1 without gaps.
    ///
    /// The numbers from a dispatcher do not decrease within a journaled call, but may skip or repeat. Their lowest 32
    /// bits are the worker's number, and the bits above count the call's rounds: each `InputRequiredResult` of a modern
    /// backend begins one. If an event makes the dispatcher ask a question, the question has the number before this
    /// event, so that a session owner that resumes after the question gets the event again.
    pub sequence: u64,
    /// The content of the event.
    pub kind: CallEventKind,
}

/// The content of an event.
#[derive(Clone, Debug)]
pub enum CallEventKind {
    /// `notifications/progress` or `notifications/message`, already filtered for the caller.
    Notification {
        /// The method.
        method: Method,
        /// The parameters.
        params: Option<RawJson>,
    },
    /// A request to the client, to answer through [`CallControl::answer`](crate::CallControl::answer).
    Ask {
        /// The request's id within the call.
        ask: AskId,
        /// The method.
        method: Method,
        /// The parameters.
        params: Option<RawJson>,
    },
    /// Withdraws a question to the client.
    Withdrawn {
        /// The question's id, from [`Ask`](Self::Ask).
        ask: AskId,
    },
    /// A request to read or write session state, which the session's owner answers. A call has one such request open at
    /// a time, and repeats it to a new reader.
    State {
        /// The request's id within the call.
        ask: AskId,
        /// The read or write.
        request: StateRequest,
    },
    /// The tool asks to close the client's connection (SEP-1699).
    CloseStream {
        /// When the client should connect again.
        retry: Duration,
    },
    /// The call's end.
    Finished(CallOutcome),
}

/// The id of a request within a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId(pub u64);
