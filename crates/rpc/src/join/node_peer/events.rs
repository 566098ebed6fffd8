//! What the calls of a seat say.

use shoal_ports::{CallEvent, CallEventKind, CallFailure, CallOutcome};
use shoal_protocol::{Outcome, RpcError};

use super::super::flight::Step;
use super::NodePeer;
use crate::convert::event::{event_cost, event_out, is_end};
use crate::convert::outcome::failure_out;
use crate::error::TooLong;
use crate::link::versions::STATE;
use crate::proto::worker::v1 as wire;
use crate::proto::worker::v1::worker_frame::Frame;

/// Events of one flight that are sent before the others have their turn.
const EVENTS_AT_ONCE: usize = 32;

impl NodePeer {
    /// Says what a flight has to say.
    pub(in crate::join) fn look(&mut self, number: u64) {
        for _ in 0..EVENTS_AT_ONCE {
            let Some(flight) = self.flights.get_mut(&number) else {
                return;
            };
            let step = flight.poll();
            for (ask, outcome) in flight.take_held() {
                self.answer(number, ask, outcome);
            }
            match step {
                Step::Wait => return self.accept_late(number),
                Step::Event(event) => self.event(number, event),
                Step::Refused(failure) => return self.refuse(number, failure),
                Step::Ended if self.goes_on(number) => return,
                Step::Ended => return self.lost(number),
            }
        }
        if let Some(flight) = self.flights.get(&number) {
            flight.ring();
        }
    }

    fn accept_late(&mut self, number: u64) {
        if let Some(flight) = self.flights.get_mut(&number)
            && flight.is_to_be_accepted(false)
        {
            self.say(Frame::Accepted(wire::Accepted { flight: number }));
        }
    }

    fn event(&mut self, number: u64, event: CallEvent) {
        let sequence = event.sequence;
        let ask = match &event.kind {
            CallEventKind::Ask { ask, .. } | CallEventKind::State { ask, .. } => Some(*ask),
            _ => None,
        };
        let unknown = self.version < STATE && matches!(event.kind, CallEventKind::State { .. });
        let mut event = event_out(number, event);
        if unknown {
            // It still counts.
            event.kind = None;
        }
        let end = is_end(&event);
        let mut cost = event_cost(&event);
        let pushed = self.push(number, Frame::Event(event));
        if let Err(too_long) = pushed {
            let stand_in = stand_in(number, sequence, end, too_long);
            cost = event_cost(&stand_in);
            let _ = self.push(number, Frame::Event(stand_in));
        }
        if end {
            self.remember(number);
            return;
        }
        let Some(flight) = self.flights.get_mut(&number) else {
            return;
        };
        flight.sent(sequence, cost);
        // The tool waits for an answer to a question that nobody will see.
        let unseen = match pushed {
            Err(too_long) => format!("the request was not passed on: {too_long}"),
            Ok(()) if unknown => format!(
                "the state of a session cannot be reached while this worker and its node speak version {} of \
                 their protocol; it takes version {STATE}",
                self.version
            ),
            Ok(()) => return,
        };
        if let Some(ask) = ask {
            drop(flight.answer(ask, Outcome::Error(RpcError::internal(unseen))));
            flight.answered(ask, true);
        }
    }

    pub(super) fn refuse(&mut self, number: u64, failure: CallFailure) {
        self.flights.remove(&number);
        self.say(Frame::Refused(wire::Refused {
            flight: number,
            failure: Some(failure_out(failure)),
        }));
    }

    pub(super) fn lost(&mut self, number: u64) {
        let flight = self.flights.remove(&number);
        self.say(Frame::Lost(wire::Lost {
            flight: number,
            replaced: flight.is_some_and(|flight| flight.is_replaced()),
        }));
    }
}

/// What is sent in place of an event that is too long: an end says so, anything else only counts.
fn stand_in(flight: u64, sequence: u64, end: bool, too_long: TooLong) -> wire::Event {
    if !end {
        tracing::warn!(flight, sequence, %too_long, "an event of a call was left out");
        return wire::Event {
            flight,
            sequence,
            kind: None,
        };
    }
    let error = RpcError::internal(format!("the result was not passed on: {too_long}"));
    let kind = CallEventKind::Finished(CallOutcome::Error(error));
    event_out(flight, CallEvent { sequence, kind })
}
