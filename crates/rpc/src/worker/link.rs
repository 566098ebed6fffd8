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

pub(super) struct LinkToWorker {
    pub(super) worker: WorkerId,
    pub(super) number: u64,
    pub(super) outbox: Arc<Outbox<NodeFrame>>,
    /// Fires when a newer link replaces this one.
    pub(super) replaced: CancellationToken,
    version: u32,
    pub(super) credit: u64,
    /// A reader's maximum unread bytes: the credit, and the frame that exceeds it.
    most_unread: u64,
    gauge: Arc<Gauge>,
    flights: Mutex<Option<ByFlight<Arc<LinkedCall>>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnsentFrame {
    #[error("its link has ended")]
    Over,
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

impl LinkToWorker {
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

    pub(super) fn open(
        &self,
        number: u64,
        frame: impl FnOnce(u64) -> Frame,
    ) -> Result<Arc<LinkedCall>, UnsentFrame> {
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
            None => return Err(UnsentFrame::Over),
        }
        let unsent = match self.outbox.push(number, frame) {
            Ok(Pushed::Dropped) => UnsentFrame::Over,
            Ok(_) => return Ok(flight),
            Err(too_long) => UnsentFrame::TooLong(too_long),
        };
        self.forget(&flight);
        Err(unsent)
    }

    pub(super) fn flight(&self, number: u64) -> Option<Arc<LinkedCall>> {
        self.flights.lock().as_ref()?.get(&number).map(Arc::clone)
    }

    pub(super) fn tells_stops(&self) -> bool {
        self.version >= versions::STOPS
    }

    pub(super) fn most_unread(&self) -> u64 {
        self.most_unread
    }

    pub(super) fn forget(&self, flight: &LinkedCall) {
        let mut flights = self.flights.lock();
        let known = (flights.as_mut()).and_then(|flights| flights.remove(&flight.number));
        drop(flights);
        if known.is_some() && flight.is_start {
            self.gauge.ended();
        }
    }

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

    /// Queues a frame; flight 0 means none. An answer that is too long becomes an error, because
    /// the tool waits for it. A cancellation that is too long loses its reason.
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
