use shoal_ports::{CallEvent, CallEventKind, CallFailure, CallOutcome};
use shoal_protocol::{Outcome, RpcError};

use super::super::served_call::ServedStep;
use super::super::stopping::is_stop;
use super::ServedCalls;
use crate::convert::event::{event_cost, event_out, is_end};
use crate::convert::outcome::failure_out;
use crate::error::TooLong;
use crate::link::versions::{STATE, STOPS};
use crate::proto::worker::v1 as wire;
use crate::proto::worker::v1::worker_frame::Frame;

/// Maximum events of a flight before others have their turn.
const EVENTS_AT_ONCE: usize = 32;

impl ServedCalls {
    pub(in crate::join) fn look(&mut self, number: u64) {
        for _ in 0..EVENTS_AT_ONCE {
            let Some(flight) = self.flights.get_mut(&number) else {
                return;
            };
            match flight.poll() {
                ServedStep::Wait => return self.accept_if(number, false),
                ServedStep::Answered(ask, open) => {
                    self.say(Frame::AnswerTaken(wire::AnswerTaken {
                        flight: number,
                        ask: ask.0,
                        open,
                    }))
                }
                ServedStep::Event(event) => self.event(number, event),
                ServedStep::Refused(failure) => return self.refuse(number, failure),
                ServedStep::Ended => return self.lost(number),
            }
        }
        if let Some(flight) = self.flights.get(&number) {
            flight.ring();
        }
    }

    fn event(&mut self, number: u64, event: CallEvent) {
        let sequence = event.sequence;
        let ask = match &event.kind {
            CallEventKind::Ask { ask, .. } | CallEventKind::State { ask, .. } => Some(*ask),
            _ => None,
        };
        let unknown = self.version < STATE && matches!(event.kind, CallEventKind::State { .. });
        let stops = self.version >= STOPS && is_stop(&event.kind);
        let mut event = event_out(number, event);
        if unknown {
            event.kind = None;
        }
        let Some(flight) = self.flights.get_mut(&number) else {
            return;
        };
        let reader = flight.introduce();
        event.reader = reader;
        let end = is_end(&event);
        let mut cost = event_cost(&event);
        let pushed = self.push(number, Frame::Event(event));
        if let Err(too_long) = pushed {
            let mut stand_in = stand_in(number, sequence, end, too_long);
            stand_in.reader = reader;
            cost = event_cost(&stand_in);
            let _ = self.push(number, Frame::Event(stand_in));
        }
        if end {
            let ended = self.flights.remove(&number);
            if stops {
                match ended.and_then(|flight| flight.over()) {
                    Some(over) => self.stopping.add(number, over),
                    None => self.stopped(number),
                }
            }
            return;
        }
        let Some(flight) = self.flights.get_mut(&number) else {
            return;
        };
        flight.sent(cost);
        // A question that was not sent gets an error as its answer, because the tool waits for one.
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
            flight.answer_itself(ask, Outcome::Error(RpcError::internal(unseen)));
        }
    }

    fn refuse(&mut self, number: u64, failure: CallFailure) {
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

/// A failure replaces a call's end, an empty event any other event.
fn stand_in(flight: u64, sequence: u64, end: bool, too_long: TooLong) -> wire::Event {
    if !end {
        tracing::warn!(flight, sequence, %too_long, "an event of a call was left out");
        return wire::Event {
            flight,
            sequence,
            ..wire::Event::default()
        };
    }
    let error = RpcError::internal(format!("the result was not passed on: {too_long}"));
    let kind = CallEventKind::Finished(CallOutcome::Error(error));
    event_out(flight, CallEvent { sequence, kind })
}
