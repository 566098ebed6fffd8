use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::wire::{Exchange, Messages, Outcome, Refusal, Wire};
use super::{End, PAUSE};
use crate::history::{Channel, Ended, Recorder, Step, Tool, Work};

/// The parts that clients of both eras share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) wire: Wire,
    pub(super) recorder: Recorder,
    client: usize,
    calls: AtomicU64,
    requests: AtomicU64,
}

pub(super) enum Became {
    Over(End),
    /// The request had no effect, and is sent again after a pause.
    Nothing(Duration),
}

impl Common {
    pub(super) fn new(wire: Wire, recorder: Recorder) -> Self {
        Self {
            wire,
            client: recorder.client(),
            recorder,
            calls: AtomicU64::new(1),
            requests: AtomicU64::new(1),
        }
    }

    pub(super) fn work(&self, tool: Tool, steps: u32, ms: u64) -> Work {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        Work {
            call,
            tool,
            nonce: format!("nonce-{}-{call}", self.client),
            steps,
            ms,
        }
    }

    pub(super) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn ended(
        &self,
        channel: Channel,
        how: Ended,
        tag: &str,
        answered: bool,
        cause: &str,
    ) {
        self.recorder.note(Step::Ended {
            channel,
            how,
            tag: tag.to_owned(),
            answered,
            cause: cause.to_owned(),
        });
    }

    pub(super) fn refused(&self, channel: Channel, refusal: &Refusal) {
        self.recorder.note(refusal.step(channel));
    }

    /// Returns the answer to a call's request. `None` means that the client hung up.
    pub(super) fn answered(
        &self,
        channel: Channel,
        work: &Work,
        exchange: Option<Exchange>,
    ) -> Result<(String, Messages), Became> {
        let Some(Exchange { tag, outcome }) = exchange else {
            self.ended(channel, Ended::Willingly, "", false, "hung up");
            return Err(Became::Over(End::GivenUp));
        };
        match outcome {
            Outcome::Broken(cause) => {
                self.ended(channel, Ended::Broken, &tag, false, &cause);
                Err(Became::without_answer(work))
            }
            Outcome::Refused(refusal) => {
                self.refused(channel, &refusal);
                let pause = refusal.passes_after();
                Err(pause.map_or(Became::Over(End::GivenUp), Became::Nothing))
            }
            Outcome::Accepted => {
                self.ended(channel, Ended::Orderly, &tag, true, "an empty answer");
                Err(Became::Over(End::GivenUp))
            }
            Outcome::Json { body, .. } => Ok((tag, Messages::One(Some(body)))),
            Outcome::Stream(events) => Ok((tag, Messages::Stream(events))),
        }
    }
}

impl Became {
    /// Only repeatable calls are repeated.
    pub(super) fn without_answer(work: &Work) -> Self {
        match work.tool.is_safe_to_repeat() {
            true => Self::Nothing(PAUSE),
            false => Self::Over(End::GivenUp),
        }
    }
}
