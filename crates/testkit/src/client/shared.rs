use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::wire::{Answered, Exchange, Refusal, Trouble, Wire};
use super::{End, PAUSE};
use crate::history::{Channel, Ended, Message, Recorder, Step, Tool, Work};

/// The revision that a client speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Era {
    /// 2025-11-25, with a resource to subscribe to, if any.
    Legacy(Option<&'static str>),
    /// 2026-07-28.
    Modern {
        /// Whether calls may become tasks.
        tasks: bool,
    },
}

/// The state that the calls of a client share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) wire: Wire,
    pub(super) recorder: Recorder,
    pub(super) era: Era,
    /// The session's id. Replaced when the server has lost the session.
    pub(super) session: Mutex<Option<String>>,
    pub(super) replies: std::sync::Mutex<JoinSet<()>>,
    calls: AtomicU64,
    requests: AtomicU64,
}

pub(super) enum Became {
    Over(End),
    /// The request had no effect, and is sent again after a pause.
    Nothing(Duration),
}

impl Shared {
    pub(super) fn new(wire: Wire, era: Era, recorder: Recorder) -> Self {
        Self {
            wire,
            recorder,
            era,
            session: Mutex::default(),
            replies: std::sync::Mutex::default(),
            calls: AtomicU64::new(1),
            requests: AtomicU64::new(1),
        }
    }

    pub(super) fn work(&self, tool: Tool, steps: u32, ms: u64) -> Work {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        Work {
            call,
            tool,
            nonce: format!("nonce-{}-{call}", self.recorder.client()),
            steps,
            ms,
        }
    }

    pub(super) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn sent(&self, session: &str, work: &Work) -> u64 {
        let request = self.next_request();
        self.recorder.note(Step::Sent {
            request,
            session: session.to_owned(),
            work: work.clone(),
        });
        request
    }

    pub(super) fn received(&self, channel: Channel, id: Option<String>, message: Message) {
        self.recorder.note(Step::Received {
            channel,
            id,
            message,
        });
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
        self.recorder.note(Step::Refused {
            channel,
            status: refusal.status.as_u16(),
            code: refusal.code,
            message: refusal.message.clone(),
        });
    }

    /// Returns the pause before a retry, or `None` if a retry is not allowed.
    pub(super) fn failed(
        &self,
        channel: Channel,
        tag: &str,
        trouble: &Trouble,
    ) -> Option<Duration> {
        match trouble {
            Trouble::Broken(cause) => {
                self.ended(channel, Ended::Broken, tag, false, cause);
                Some(PAUSE)
            }
            Trouble::Refused(refusal) => {
                self.refused(channel, refusal);
                refusal.passes_after()
            }
        }
    }

    /// Returns the answer to a call's request. `None` means that the client hung up.
    pub(super) fn answered(
        &self,
        channel: Channel,
        work: &Work,
        exchange: Option<Exchange>,
    ) -> Result<(String, Answered), Became> {
        let Some(Exchange { tag, outcome }) = exchange else {
            self.ended(channel, Ended::Willingly, "", false, "hung up");
            return Err(Became::Over(End::GivenUp));
        };
        match outcome {
            Ok(Answered::Empty) => {
                self.ended(channel, Ended::Orderly, &tag, true, "an empty answer");
                Err(Became::Over(End::GivenUp))
            }
            Ok(answered) => Ok((tag, answered)),
            Err(trouble) => {
                let pause = self.failed(channel, &tag, &trouble);
                Err(match trouble {
                    Trouble::Broken(_) => Became::without_answer(work),
                    Trouble::Refused(_) => {
                        pause.map_or(Became::Over(End::GivenUp), Became::Nothing)
                    }
                })
            }
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
