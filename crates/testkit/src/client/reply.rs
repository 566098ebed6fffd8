use std::sync::{Arc, PoisonError};
use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::session::Session;
use super::wire::{Exchange, Outcome};
use super::{PAUSE, Shared};
use crate::history::{Channel, Ended, Message, Step};

/// Up to a second, determined by the question.
pub(super) fn thinking(question: &str) -> Duration {
    let sum: u64 = question.bytes().map(|byte| u64::from(byte) * 97).sum();
    Duration::from_millis(sum % 1000)
}

#[must_use]
pub(crate) fn reply_to(question: &str) -> String {
    format!("reply-to-{question}")
}

impl Shared {
    pub(super) fn answer(self: &Arc<Self>, session: &Session, message: &Message) {
        let (id, result, question) = match message {
            Message::Question { id, text } => {
                let content = json!({ "text": reply_to(text) });
                let accepted = json!({ "action": "accept", "content": content });
                (id, accepted, text.clone())
            }
            Message::Request { id, method } if method == "ping" => (id, json!({}), method.clone()),
            _ => return,
        };
        let response = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        let (shared, session) = (self.clone(), session.clone());
        let reply = async move { shared.reply(session, response, question).await };
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        while replies.try_join_next().is_some() {}
        replies.spawn(reply);
    }

    /// Repeating is safe, because the response has an id.
    async fn reply(&self, session: Session, response: Value, question: String) {
        let channel = Channel::Reply;
        sleep(thinking(&question)).await;
        loop {
            let Exchange { tag, outcome } = self.wire.post(Some(&session.id), &response).await;
            let pause = match outcome {
                Outcome::Accepted => {
                    self.recorder.note(Step::Replied { question });
                    return;
                }
                Outcome::Broken(cause) => {
                    self.ended(channel, Ended::Broken, &tag, false, &cause);
                    PAUSE
                }
                Outcome::Refused(refusal) if refusal.status == StatusCode::NOT_FOUND => {
                    self.forgotten(&session, channel).await;
                    return;
                }
                Outcome::Refused(refusal) => {
                    self.refused(channel, &refusal);
                    match refusal.passes_after() {
                        Some(pause) => pause,
                        None => return,
                    }
                }
                Outcome::Json { .. } | Outcome::Stream(_) => {
                    self.ended(channel, Ended::Orderly, &tag, true, "not 202");
                    return;
                }
            };
            sleep(pause).await;
        }
    }
}
