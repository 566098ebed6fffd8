use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::Stream;
use futures::future::BoxFuture;
use shoal_ports::{
    Answered, AskId, CallControl, CallEvent, CallEventKind, CallEvents, CallFailure, RunningCall,
    answered,
};
use shoal_protocol::Outcome;

use super::link::LinkToWorker;
use super::linked_call::{Holder, LinkedCall};
use crate::convert::event::event_in;
use crate::convert::outcome::answer_out;
use crate::proto::types::v1::Credit;
use crate::proto::worker::v1::node_frame::Frame;
use crate::proto::worker::v1::{Answer, Cancel};

/// Ready when the worker has reacted to the flight, or the link has ended.
pub(super) async fn opened(
    link: Arc<LinkToWorker>,
    flight: Arc<LinkedCall>,
) -> Result<RunningCall, CallFailure> {
    let share = CallShare {
        link,
        flight,
        holder: Holder::Both,
    };
    let worker = Some(share.link.worker.clone());
    let first = std::future::poll_fn(|cx| share.flight.poll_opened(cx)).await?;
    if let Some(event) = first.and_then(event_in)
        && let CallEventKind::Finished(outcome) = event.kind
    {
        if share.flight.is_stopping() {
            return Ok(RunningCall {
                events: CallEvents::finished(outcome),
                control: Arc::new(Steer(share)),
                worker,
            });
        }
        return Ok(RunningCall::ended(outcome, worker));
    }
    let steer = share.split();
    Ok(RunningCall {
        events: CallEvents::from_stream(CallEventsReader(share.only(Holder::Reader))),
        control: Arc::new(Steer(steer)),
        worker,
    })
}

/// Dropping a share releases its part of the flight.
struct CallShare {
    link: Arc<LinkToWorker>,
    flight: Arc<LinkedCall>,
    holder: Holder,
}

impl CallShare {
    /// Splits the control off. This share must then become the reader's [`CallShare::only`].
    fn split(&self) -> Self {
        Self {
            link: Arc::clone(&self.link),
            flight: Arc::clone(&self.flight),
            holder: Holder::Steer,
        }
    }

    fn only(mut self, holder: Holder) -> Self {
        self.holder = holder;
        self
    }
}

impl Drop for CallShare {
    fn drop(&mut self) {
        self.link.leave(&self.flight, self.holder);
    }
}

struct CallEventsReader(CallShare);

impl Stream for CallEventsReader {
    type Item = CallEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<CallEvent>> {
        let CallShare { link, flight, .. } = &self.0;
        loop {
            let Some((event, grant)) = ready!(flight.poll_event(link.credit, cx)) else {
                return Poll::Ready(None);
            };
            if let Some(bytes) = grant {
                let flight = flight.number;
                link.outbox
                    .push_now(Frame::Credit(Credit { flight, bytes }));
            }
            // Decoded outside the link's task, so that long texts do not delay the link.
            if let Some(event) = event_in(event) {
                return Poll::Ready(Some(event));
            }
        }
    }
}

struct Steer(CallShare);

impl CallControl for Steer {
    fn answer(&self, ask: AskId, answer: Outcome) -> Answered {
        let CallShare { link, flight, .. } = &self.0;
        let Some(fate) = flight.answers(ask) else {
            return answered(false);
        };
        let said = Answer {
            flight: flight.number,
            ask: ask.0,
            outcome: Some(answer_out(answer)),
        };
        link.send(flight.number, Frame::Answer(said));
        Box::pin(async {
            match fate.await {
                Ok(open) => open,
                // Pends, because only the next reader can learn whether the question was open.
                Err(_) => std::future::pending().await,
            }
        })
    }

    fn cancel(&self, reason: &str) {
        let CallShare { link, flight, .. } = &self.0;
        let said = Cancel {
            flight: flight.number,
            reason: reason.to_owned(),
        };
        link.send(flight.number, Frame::Cancel(said));
    }

    fn over(&self) -> Option<BoxFuture<'static, ()>> {
        let over = self.0.flight.until_over()?;
        Some(Box::pin(async { drop(over.await) }))
    }

    fn is_replaced(&self) -> bool {
        self.0.flight.is_replaced()
    }

    fn reader(&self) -> Option<u64> {
        self.0.flight.name()
    }
}
