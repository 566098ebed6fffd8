//! One link to a worker, and the flights on it, which end with it.

use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::WorkerId;
use shoal_protocol::{Outcome, RpcError};
use tokio_util::sync::CancellationToken;

use super::gauge::Gauge;
use super::linked_call::{Holder, Left, LinkedCall};
use crate::LinkConfig;
use crate::convert::outcome::answer_out;
use crate::error::TooLong;
use crate::link::ByFlight;
use crate::link::outbox::{Outbox, Pushed};
use crate::link::versions;
use crate::proto::worker::v1::node_frame::Frame;
use crate::proto::worker::v1::{Answer, Cancel, Detach, NodeFrame};

/// A link.
pub(super) struct Link {
    pub(super) worker: WorkerId,
    /// Counts the links of the worker.
    pub(super) number: u64,
    pub(super) outbox: Arc<Outbox<NodeFrame>>,
    /// Ends the link from this side: a newer one has taken its place.
    pub(super) replaced: CancellationToken,
    /// The version that it speaks.
    version: u32,
    /// What the worker may send of a flight before more is granted.
    pub(super) credit: u64,
    /// What the reader of a flight may be behind: the credit, and the frame that went beyond it.
    most_unread: u64,
    gauge: Arc<Gauge>,
    /// `None` once the link is over.
    flights: Mutex<Option<ByFlight<Arc<LinkedCall>>>>,
}

/// Why the first frame of a flight was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsent {
    /// The link is over, or the worker has said goodbye.
    #[error("its link has ended")]
    Over,
    /// No link of this worker carries the frame.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

impl Link {
    pub(super) fn new(
        worker: WorkerId,
        number: u64,
        outbox: Arc<Outbox<NodeFrame>>,
        gauge: Arc<Gauge>,
        config: &LinkConfig,
        version: u32,
    ) -> Arc<Self> {
        Arc::new(Self {
            worker,
            number,
            outbox,
            replaced: CancellationToken::new(),
            version,
            credit: config.credit,
            most_unread: config.credit.saturating_add(config.max_frame as u64),
            gauge,
            flights: Mutex::new(Some(ByFlight::default())),
        })
    }

    /// Opens a flight.
    ///
    /// # Errors
    /// Why nothing was sent.
    pub(super) fn open(
        &self,
        number: u64,
        frame: impl FnOnce(u64) -> Frame,
    ) -> Result<Arc<LinkedCall>, Unsent> {
        let frame = frame(number);
        let is_start = matches!(frame, Frame::Start(_));
        let flight = Arc::new(LinkedCall::new(number, is_start));
        match &mut *self.flights.lock() {
            Some(flights) => {
                flights.insert(number, Arc::clone(&flight));
                if is_start {
                    self.gauge.started();
                }
            }
            None => return Err(Unsent::Over),
        }
        let unsent = match self.outbox.push(number, frame) {
            Ok(Pushed::Dropped) => Unsent::Over,
            Ok(_) => return Ok(flight),
            Err(too_long) => Unsent::TooLong(too_long),
        };
        self.forget(&flight);
        Err(unsent)
    }

    /// A flight that is open.
    pub(super) fn flight(&self, number: u64) -> Option<Arc<LinkedCall>> {
        self.flights.lock().as_ref()?.get(&number).map(Arc::clone)
    }

    /// Whether the worker tells when the tool of a call that was stopped has stopped.
    pub(super) fn tells_stops(&self) -> bool {
        self.version >= versions::STOPS
    }

    /// What the reader of a flight may be behind.
    pub(super) fn most_unread(&self) -> u64 {
        self.most_unread
    }

    /// Drops a flight that is over.
    pub(super) fn forget(&self, flight: &LinkedCall) {
        let mut flights = self.flights.lock();
        let known = (flights.as_mut()).and_then(|flights| flights.remove(&flight.number));
        drop(flights);
        if known.is_some() && flight.is_start {
            self.gauge.ended();
        }
    }

    /// Somebody lets go of a flight.
    pub(super) fn leave(&self, flight: &LinkedCall, holder: Holder) {
        let steering = match flight.leave(holder) {
            Left::Held => return,
            Left::Steered => true,
            Left::Empty => {
                self.forget(flight);
                false
            }
        };
        let flight = flight.number;
        self.send(flight, Frame::Detach(Detach { flight, steering }));
    }

    /// The link is over, and all flights with it.
    pub(super) fn over(&self) {
        self.replaced.cancel();
        let flights = self.flights.lock().take();
        for flight in flights.into_iter().flat_map(ByFlight::into_values) {
            flight.broken(false);
            if flight.is_start {
                self.gauge.ended();
            }
        }
    }

    /// Sends a frame of a flight (0: of none). An answer that is too long becomes an error, since the tool waits for
    /// something, and a cancel loses its reason.
    pub(super) fn send(&self, flight: u64, frame: Frame) {
        let needed = match &frame {
            Frame::Answer(answer) => Some(Frame::Answer(Answer {
                outcome: None,
                ..*answer
            })),
            Frame::Cancel(_) => Some(Frame::Cancel(Cancel {
                flight,
                reason: String::new(),
            })),
            _ => None,
        };
        let Err(too_long) = self.outbox.push(flight, frame) else {
            return;
        };
        let Some(mut frame) = needed else {
            tracing::warn!(flight, %too_long, "a frame could not be sent to a worker");
            return;
        };
        if let Frame::Answer(answer) = &mut frame {
            let what = format!("the client's answer was not passed on: {too_long}");
            answer.outcome = Some(answer_out(Outcome::Error(RpcError::internal(what))));
        }
        let _ = self.outbox.push(flight, frame);
    }
}

#[cfg(test)]
mod tests;
