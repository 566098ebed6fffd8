use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{AskId, CallFailure, CallOutcome};
use shoal_protocol::{RpcError, code};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The time limits of a task's call and of each of its questions. The call's time pauses while a question is open.
pub(crate) struct Allowance {
    started: Instant,
    deadline: Instant,
    answer_within: Duration,
    questions: Mutex<Questions>,
    changed: Notify,
}

pub(super) struct Overdue {
    /// The reason that the tool gets with its cancellation.
    pub(super) reason: &'static str,
    pub(super) outcome: CallOutcome,
}

#[derive(Default)]
struct Questions {
    /// The oldest question is first.
    open: Vec<(AskId, Instant)>,
    since: Option<Instant>,
    waited: Duration,
}

impl Allowance {
    pub(crate) fn new(deadline: Instant, answer_within: Duration) -> Self {
        Self {
            started: Instant::now(),
            deadline,
            answer_within,
            questions: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub(super) fn asked(&self, ask: AskId) {
        let now = Instant::now();
        let mut questions = self.questions.lock();
        if !questions.open.iter().any(|(open, _)| *open == ask) {
            questions.open.push((ask, now));
            questions.since.get_or_insert(now);
        }
    }

    pub(crate) fn answered(&self, ask: AskId) {
        let mut questions = self.questions.lock();
        questions.open.retain(|(open, _)| *open != ask);
        if questions.open.is_empty()
            && let Some(since) = questions.since.take()
        {
            questions.waited += since.elapsed();
        }
        drop(questions);
        self.changed.notify_one();
    }

    /// Cancel safe.
    pub(super) async fn over(&self) -> Overdue {
        loop {
            let (due, question) = self.due();
            tokio::select! {
                () = sleep_until(due) => {}
                () = self.changed.notified() => continue,
            }
            return match question {
                true => Overdue {
                    reason: "its client did not answer its question in time",
                    outcome: CallOutcome::Error(self.unanswered()),
                },
                false => Overdue {
                    reason: "its deadline passed",
                    outcome: CallOutcome::Failed(CallFailure::DeadlineExceeded {
                        limit: self.deadline - self.started,
                    }),
                },
            };
        }
    }

    fn due(&self) -> (Instant, bool) {
        let questions = self.questions.lock();
        match questions.open.first() {
            Some((_, since)) => (*since + self.answer_within, true),
            None => (self.deadline + questions.waited, false),
        }
    }

    fn unanswered(&self) -> RpcError {
        let limit = (self.answer_within.as_secs_f64() * 100.0).round() / 100.0;
        let text = format!(
            "the client did not answer the call's question within {limit} s; the call was cancelled"
        );
        RpcError::new(code::DEADLINE_EXCEEDED, text)
    }
}
