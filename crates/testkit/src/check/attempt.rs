//! One request, as its client saw it.

use std::time::Duration;

use super::session::is_passing;
use crate::history::{Answer, Ended, Entry, Message, Step};

pub(super) struct Attempt {
    pub(super) request: u64,
    pub(super) sent: Duration,
    pub(super) answers: Vec<Answer>,
    pub(super) steps: Vec<u64>,
    pub(super) questions: usize,
    pub(super) statuses: Vec<(Duration, String)>,
    pub(super) has_id: bool,
    pub(super) strays: Vec<String>,
    pub(super) end: Unanswered,
}

pub(super) enum Unanswered {
    Open,
    HungUp,
    Broken {
        tag: String,
        at: Duration,
    },
    Refused,
    Failed {
        code: Option<i64>,
        why: String,
        at: Duration,
    },
    Forgotten,
}

impl Attempt {
    pub(super) fn sent(request: u64, at: Duration) -> Self {
        Self {
            request,
            sent: at,
            answers: Vec::new(),
            steps: Vec::new(),
            questions: 0,
            statuses: Vec::new(),
            has_id: false,
            strays: Vec::new(),
            end: Unanswered::Open,
        }
    }

    pub(super) fn step(&mut self, entry: &Entry) {
        match &entry.step {
            Step::Forgotten { .. } => self.end = Unanswered::Forgotten,
            Step::Refused {
                status,
                code,
                message,
                ..
            } => {
                // With an event id, the client repeats the refused GET that resumes the stream, so
                // the request is not over.
                if !is_passing(*status, *code) {
                    let (code, why) = (*code, format!("{status}: {message}"));
                    self.end = Unanswered::Failed {
                        code,
                        why,
                        at: entry.at,
                    };
                } else if !self.has_id {
                    self.end = Unanswered::Refused;
                }
            }
            Step::Ended {
                how: Ended::Willingly,
                answered: false,
                ..
            } => self.end = Unanswered::HungUp,
            Step::Ended { how, tag, .. } if *how != Ended::Willingly => {
                self.end = Unanswered::Broken {
                    tag: tag.clone(),
                    at: entry.at,
                };
            }
            Step::Received { id, message, .. } => {
                self.has_id |= id.is_some();
                self.message(message, entry.at);
            }
            _ => {}
        }
    }

    fn message(&mut self, message: &Message, at: Duration) {
        match message {
            Message::Response { request, answer } if *request == self.request => {
                self.answers.push(answer.clone());
            }
            Message::Progress { token, value } if *token == self.request => {
                self.steps.push(*value);
            }
            Message::Question { .. } => self.questions += 1,
            Message::Task { request, status } if *request == self.request => {
                self.statuses.push((at, status.clone()));
            }
            Message::Prime | Message::Request { .. } | Message::Notification { .. } => {}
            stray => self.strays.push(format!("{stray:?}")),
        }
    }
}
