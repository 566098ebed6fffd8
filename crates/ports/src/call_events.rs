use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::poll_fn;
use futures::{Stream, StreamExt as _};
use tokio::sync::mpsc;

use crate::{CallEvent, CallEventKind, CallOutcome};

/// The events of one call, in order.
pub struct CallEvents(Source);

enum Source {
    Stream(Pin<Box<dyn Stream<Item = CallEvent> + Send>>),
    Ended(Option<CallOutcome>),
}

impl CallEvents {
    /// Wraps a stream of events.
    pub fn from_stream(stream: impl Stream<Item = CallEvent> + Send + 'static) -> Self {
        Self(Source::Stream(Box::pin(stream.fuse())))
    }

    /// Makes the events of an ended call.
    pub fn finished(outcome: CallOutcome) -> Self {
        Self(Source::Ended(Some(outcome)))
    }

    /// Returns the call's outcome if the call ended before the first read.
    pub fn ended(&self) -> Option<&CallOutcome> {
        match &self.0 {
            Source::Ended(outcome) => outcome.as_ref(),
            Source::Stream(_) => None,
        }
    }

    /// Takes the outcome of [`ended`](Self::ended).
    pub fn take_ended(&mut self) -> Option<CallOutcome> {
        match &mut self.0 {
            Source::Ended(outcome) => outcome.take(),
            Source::Stream(_) => None,
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
            Source::Stream(stream) => stream.as_mut().poll_next(cx),
            Source::Ended(outcome) => Poll::Ready(outcome.take().map(|outcome| CallEvent {
                sequence: 1,
                kind: CallEventKind::Finished(outcome),
            })),
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
            Source::Stream(_) => "CallEvents(stream)",
            Source::Ended(_) => "CallEvents(finished)",
        })
    }
}
