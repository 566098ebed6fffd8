//! A running call in the hands of whoever asked for it: its events and its control.

use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};

use futures::{FutureExt as _, Stream};
use shoal_ports::{
    Answered, AskId, CallControl, CallEvent, CallEventKind, CallEvents, CallFailure, RunningCall,
    answered,
};
use shoal_protocol::Outcome;
use tokio::sync::oneshot;

use super::flight::{Flight, Holder};
use super::peer::WorkerPeer;
use crate::convert::event::event_in;
use crate::proto::types::v1::Credit;
use crate::proto::worker::v1::node_frame::Frame;

/// Waits until the worker has said something of a flight.
///
/// # Errors
/// Why the call does not run.
pub(super) async fn opened(
    peer: &Arc<WorkerPeer>,
    flight: Arc<Flight>,
) -> Result<RunningCall, CallFailure> {
    let hold = Hold {
        peer: Arc::clone(peer),
        flight,
        holder: Holder::Both,
    };
    let worker = Some(peer.id.clone());
    let first = std::future::poll_fn(|cx| hold.flight.poll_opened(cx)).await?;
    if let Some(event) = first.and_then(event_in)
        && let CallEventKind::Finished(outcome) = event.kind
    {
        return Ok(RunningCall {
            events: CallEvents::finished(outcome),
            control: Arc::clone(&OVER),
            worker,
        });
    }
    let steer = hold.split();
    Ok(RunningCall {
        events: CallEvents::from_stream(Reader(hold.only(Holder::Reader))),
        control: Arc::new(Steer(steer)),
        worker,
    })
}

/// A share in a flight; dropping it lets go.
struct Hold {
    peer: Arc<WorkerPeer>,
    flight: Arc<Flight>,
    holder: Holder,
}

impl Hold {
    /// The share of whoever steers; what is left must be made the [`Hold::only`] reader's.
    fn split(&self) -> Self {
        Self {
            peer: Arc::clone(&self.peer),
            flight: Arc::clone(&self.flight),
            holder: Holder::Steer,
        }
    }

    fn only(mut self, holder: Holder) -> Self {
        self.holder = holder;
        self
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.peer.leave(&self.flight, self.holder);
    }
}

/// Reads a flight's events straight out of it.
struct Reader(Hold);

impl Stream for Reader {
    type Item = CallEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<CallEvent>> {
        let Hold { peer, flight, .. } = &self.0;
        loop {
            let Some((event, grant)) = ready!(flight.poll_event(peer.config.credit, cx)) else {
                return Poll::Ready(None);
            };
            if let Some(bytes) = grant {
                peer.send_now(Frame::Credit(Credit {
                    flight: flight.number,
                    bytes,
                }));
            }
            // Here and not where it arrived, so that reading a long text holds up nobody else.
            if let Some(event) = event_in(event) {
                return Poll::Ready(Some(event));
            }
        }
    }
}

/// Steers a call through its flight.
struct Steer(Hold);

impl CallControl for Steer {
    fn answer(&self, ask: AskId, answer: Outcome) -> Answered {
        let Hold { peer, flight, .. } = &self.0;
        let (taken, open) = oneshot::channel();
        let Some(frame) = flight.answer(ask, answer, taken) else {
            return answered(false);
        };
        peer.send(flight.number, frame);
        Box::pin(open.map(|open| open.unwrap_or(false)))
    }

    fn cancel(&self, reason: &str) {
        let Hold { peer, flight, .. } = &self.0;
        if let Some(frame) = flight.cancel(reason) {
            peer.send(flight.number, frame);
        }
    }

    fn is_replaced(&self) -> bool {
        self.0.flight.is_replaced()
    }
}

/// The control of all calls that have ended.
static OVER: LazyLock<Arc<dyn CallControl>> = LazyLock::new(|| Arc::new(Over));

struct Over;

impl CallControl for Over {
    fn answer(&self, _: AskId, _: Outcome) -> Answered {
        answered(false)
    }

    fn cancel(&self, _: &str) {}
}
