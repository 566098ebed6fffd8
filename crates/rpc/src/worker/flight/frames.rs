//! What a worker is told of a flight.

use shoal_ports::AskId;
use shoal_protocol::{Outcome, TraceContext};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::state::{Stage, Unacknowledged};
use super::{Begin, Flight};
use crate::convert::call::{call_out, id_out};
use crate::convert::outcome::answer_out;
use crate::convert::trace::trace_out;
use crate::proto::worker::v1 as wire;
use crate::proto::worker::v1::node_frame::Frame;

impl Flight {
    /// Keeps an answer until it is acknowledged, and makes its frame. `None` when the flight is over, or the
    /// request was answered before.
    pub(in crate::worker) fn answer(
        &self,
        ask: AskId,
        outcome: Outcome,
        taken: oneshot::Sender<bool>,
    ) -> Option<Frame> {
        let mut state = self.state.lock();
        if state.is_over() || state.answered.contains(&ask) {
            return None;
        }
        state.answered.push(ask);
        let frame = self.answer_frame(ask, outcome.clone());
        state.answers.push(Unacknowledged {
            ask,
            outcome,
            taken,
        });
        Some(frame)
    }

    /// Remembers that the call was cancelled, and makes the frame. `None` when the flight is over.
    pub(in crate::worker) fn cancel(&self, reason: &str) -> Option<Frame> {
        let mut state = self.state.lock();
        if state.is_over() {
            return None;
        }
        state.cancelled = Some(reason.to_owned());
        Some(self.cancel_frame(reason))
    }

    /// What the worker is told of this flight when it has come back by a link, and whether the flight stays.
    pub(in crate::worker) fn resume(&self, link: u64) -> (Vec<Frame>, bool) {
        let mut state = self.state.lock();
        state.link = link;
        state.taken.reset();
        state.sent = true;
        let first = match &state.stage {
            Stage::Opening(begin) => self.begin_frame(begin),
            Stage::Running if state.reader => self.attach_frame(state.last, None),
            Stage::Running => self.detach_frame(true),
            Stage::Over(_) => return (Vec::new(), false),
        };
        let answers = state.answers.iter();
        let answers = answers.map(|answer| self.answer_frame(answer.ask, answer.outcome.clone()));
        let cancel = state.cancelled.as_deref();
        let steering = answers.chain(cancel.map(|reason| self.cancel_frame(reason)));
        // A worker that remembers the flight hears it first, since the call may end as soon as it is read
        // again; one that does not hears it once it has the call again.
        let mut frames: Vec<_> = steering.clone().collect();
        frames.push(first);
        frames.extend(steering);
        let stays = !state.is_left();
        if !stays {
            frames.push(self.detach_frame(false));
        }
        (frames, stays)
    }

    /// The frame that opens the flight; `None` once the worker has answered.
    pub(in crate::worker) fn opening_frame(&self) -> Option<Frame> {
        let mut state = self.state.lock();
        state.sent = true;
        match &state.stage {
            Stage::Opening(begin) => Some(self.begin_frame(begin)),
            _ => None,
        }
    }

    fn begin_frame(&self, begin: &Begin) -> Frame {
        match begin {
            Begin::Start(call) => Frame::Start(Box::new(wire::Start {
                flight: self.number,
                call: Some(call_out(call, Instant::now())),
            })),
            Begin::Attach(_, after, trace) => self.attach_frame(*after, trace.as_ref()),
        }
    }

    fn attach_frame(&self, after: u64, trace: Option<&TraceContext>) -> Frame {
        Frame::Attach(wire::Attach {
            flight: self.number,
            call: id_out(self.call),
            after,
            trace: trace_out(trace),
        })
    }

    fn answer_frame(&self, ask: AskId, outcome: Outcome) -> Frame {
        Frame::Answer(wire::Answer {
            flight: self.number,
            ask: ask.0,
            outcome: Some(answer_out(outcome)),
        })
    }

    fn cancel_frame(&self, reason: &str) -> Frame {
        Frame::Cancel(wire::Cancel {
            flight: self.number,
            reason: reason.to_owned(),
        })
    }

    pub(in crate::worker) fn detach_frame(&self, steering: bool) -> Frame {
        Frame::Detach(wire::Detach {
            flight: self.number,
            steering,
        })
    }
}
