//! Every progress notification must come once and in order, then exactly one response.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde::Deserialize;

use super::answer::{Message, check_text, quote};
use super::violation::{Finding, Violation};

#[derive(Debug)]
pub(crate) struct CallCheck {
    request_id: u64,
    /// `None` if the text is not known beforehand.
    text: Option<String>,
    reported: Vec<bool>,
    highest: usize,
    answers: usize,
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    progress_token: serde_json::Value,
    progress: f64,
}

impl CallCheck {
    /// The progress token must be the request's ID.
    pub(crate) fn new(request_id: u64, steps: usize, text: Option<String>) -> Self {
        Self {
            request_id,
            text,
            reported: vec![false; steps],
            highest: 0,
            answers: 0,
            findings: Vec::new(),
        }
    }

    pub(crate) fn message(&mut self, data: &str) {
        let message = match Message::parse(data) {
            Ok(message) => message,
            Err(failure) => return self.find(Violation::Stray, failure.to_string()),
        };
        match message.method.as_deref() {
            None => self.answer(&message, data),
            Some("notifications/progress") => {
                let params = message.params.map_or("null", |params| params.get());
                match serde_json::from_str::<Progress>(params) {
                    Ok(progress) if progress.progress_token == self.request_id => {
                        self.progress(progress.progress);
                    }
                    _ => self.find(Violation::Stray, quote(data)),
                }
            }
            // The server may send log messages and the like.
            Some(_) => {}
        }
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.answers > 0
    }

    pub(crate) fn find(&mut self, violation: Violation, detail: impl Into<String>) {
        let detail = format!("request {}: {}", self.request_id, detail.into());
        self.findings.push(Finding::new(violation, detail));
    }

    pub(crate) fn finish(mut self) -> Vec<Finding> {
        let steps = self.reported.len();
        let missing: Vec<usize> = (1..=steps)
            .filter(|step| !self.reported[step - 1])
            .collect();
        for step in missing {
            self.find(Violation::Lost, format!("step {step} of {steps}"));
        }
        if self.answers == 0 {
            self.find(Violation::MissingAnswer, "no response");
        }
        self.findings
    }

    fn answer(&mut self, message: &Message<'_>, data: &str) {
        self.answers += 1;
        if self.answers > 1 {
            self.find(Violation::ExtraAnswer, quote(data));
        }
        let checked = message.result_of(self.request_id).and_then(|result| {
            self.text
                .as_ref()
                .map_or(Ok(()), |text| check_text(result, text))
        });
        if let Err(failure) = checked {
            self.find(Violation::WrongAnswer, failure.to_string());
        }
    }

    fn progress(&mut self, progress: f64) {
        let steps = self.reported.len();
        let step = progress as usize;
        if step as f64 != progress || !(1..=steps).contains(&step) {
            self.find(Violation::Stray, format!("progress {progress} of {steps}"));
        } else if self.reported[step - 1] {
            self.find(Violation::Duplicated, format!("step {step} of {steps}"));
        } else {
            self.reported[step - 1] = true;
            if self.answers > 0 {
                self.find(
                    Violation::OutOfOrder,
                    format!("step {step} after the response"),
                );
            } else if step < self.highest {
                let highest = self.highest;
                self.find(
                    Violation::OutOfOrder,
                    format!("step {step} after {highest}"),
                );
            }
            self.highest = self.highest.max(step);
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct SeenIds {
    /// Hashes save memory. Collisions within a session are negligible.
    hashes: HashSet<u64>,
}

impl SeenIds {
    pub(crate) fn insert(&mut self, id: &str) -> bool {
        self.hashes.insert(digest(id))
    }
}

pub(crate) fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
