use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::modern::Request;
use super::shared::Became;
use super::wire::{Answered, Trouble};
use super::{End, PAUSE, accepted, thinking};
use crate::check::code;
use crate::history::{Answer, Message};

const UNKNOWN: i64 = -32602;

const LONGEST_POLL: Duration = Duration::from_millis(300);

enum Got {
    Task(Value),
    Error(Answer),
    Nothing(Duration),
    Refused,
}

impl Request<'_> {
    /// Polls once more after the task's end, because the status must stay.
    pub(super) async fn follow(&self, task: &str) -> Became {
        let mut asked = HashSet::new();
        let mut end: Option<Answer> = None;
        loop {
            let said = match self.get(task).await {
                Got::Task(said) => said,
                Got::Error(answer) => {
                    self.note(|request| Message::Response { request, answer });
                    return Became::Over(End::Answered);
                }
                Got::Nothing(pause) => {
                    sleep(pause).await;
                    continue;
                }
                Got::Refused => return Became::Over(End::GivenUp),
            };
            let status = said["status"].as_str().unwrap_or_default().to_owned();
            let answer = end_of(&said, &status);
            self.note(|request| Message::Task { request, status });
            match (&end, answer) {
                (None, None) => {
                    self.answer(task, &said, &mut asked).await;
                    let poll = said["pollIntervalMs"].as_u64().map(Duration::from_millis);
                    sleep(poll.unwrap_or(PAUSE).min(LONGEST_POLL)).await;
                }
                (None, Some(answer)) => {
                    let first = answer.clone();
                    self.note(|request| Message::Response {
                        request,
                        answer: first,
                    });
                    end = Some(answer);
                }
                (Some(before), again) => {
                    if let Some(answer) = again.filter(|again| again != before) {
                        self.note(|request| Message::Response { request, answer });
                    }
                    return Became::Over(End::Answered);
                }
            }
        }
    }

    async fn answer(&self, task: &str, said: &Value, asked: &mut HashSet<String>) {
        let Some(questions) = said["inputRequests"].as_object() else {
            return;
        };
        for (key, question) in questions {
            let text = question["params"]["message"].as_str().unwrap_or_default();
            if asked.insert(key.clone()) {
                let (id, noted) = (json!(key), text.to_owned());
                self.note(|_| Message::Question { id, text: noted });
                sleep(thinking(text)).await;
            }
            // Repeating an answer is safe.
            let answers = json!({ key: accepted(text) });
            self.ask_for("tasks/update", task, Some(&answers)).await;
        }
    }

    async fn get(&self, task: &str) -> Got {
        let body = match self.ask_for("tasks/get", task, None).await.outcome {
            Ok(Answered::Json { body, .. }) => body,
            Ok(_) | Err(Trouble::Broken(_)) => return Got::Nothing(PAUSE),
            Err(Trouble::Refused(refusal)) => {
                if let Some(pause) = refusal.passes_after() {
                    return Got::Nothing(pause);
                }
                if refusal.code == Some(UNKNOWN) {
                    return Got::Error(gone(refusal.message));
                }
                self.shared.refused(self.channel(), &refusal);
                return Got::Refused;
            }
        };
        let message: Value = serde_json::from_str(&body).unwrap_or_default();
        match Answer::of(&message) {
            Some(Answer::Error {
                code: UNKNOWN,
                message,
            }) => Got::Error(gone(message)),
            Some(answer @ Answer::Error { .. }) => Got::Error(answer),
            _ => Got::Task(message["result"].clone()),
        }
    }
}

fn gone(message: String) -> Answer {
    Answer::Error {
        code: code::GONE,
        message,
    }
}

fn end_of(task: &Value, status: &str) -> Option<Answer> {
    let nothing = |message: &str| Answer::Error {
        code: 0,
        message: message.to_owned(),
    };
    match status {
        "working" | "input_required" => None,
        "completed" | "failed" => {
            Some(Answer::of(task).unwrap_or_else(|| nothing("it ended without an answer")))
        }
        other => Some(nothing(&format!(
            "it is {other:?}, and nobody cancelled it"
        ))),
    }
}
