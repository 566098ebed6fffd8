//! The client of 2026-07-28.
//!
//! The client has no session and cannot resume streams. After a break, it repeats only repeatable calls. A question
//! arrives as a result, and the client answers by sending the request again. The history keeps a call's requests
//! under the id of the first.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::shared::{Became, Era, Shared};
use super::wire::{Answered, Exchange, MODERN};
use super::{End, PAUSE, accepted, thinking};
use crate::history::{Channel, Ended, Message, Step, Work};

pub(super) const LISTEN: &str = "subscriptions/listen";

enum Round {
    Ended(Became),
    Asks(Question),
    Task(String),
}

struct Question {
    key: String,
    text: String,
    state: Value,
}

impl Shared {
    pub(super) async fn modern_request(&self, work: &Work, hang_up: Duration) -> Became {
        let request = Request {
            shared: self,
            work,
            first: self.sent("", work),
            hang_up,
        };
        request.run().await
    }

    /// Reads a stream of changes, which must end with its response. Returns the pause before the next stream.
    pub(super) async fn listen_once(&self) -> Duration {
        let (id, channel) = (self.next_request(), Channel::Standalone);
        let message = listen(id, &self.meta());
        let posted = self.wire.post_modern(LISTEN, None, &message);
        let Exchange { tag, outcome } = posted.await;
        let cause = match outcome {
            Err(trouble) => return self.failed(channel, &tag, &trouble).unwrap_or(PAUSE),
            Ok(Answered::Stream(mut events)) => {
                self.recorder.note(Step::Listening {
                    channel,
                    session: String::new(),
                    after: None,
                });
                loop {
                    let data = match events.next().await {
                        Ok(Some(event)) => event.data,
                        Ok(None) => break "before the response".to_owned(),
                        Err(failure) => break failure.to_string(),
                    };
                    let value: Value = serde_json::from_str(&data).unwrap_or_default();
                    if value["id"] != json!(id) {
                        self.received(channel, None, Message::read(&data));
                    } else if value["result"].is_object() {
                        self.ended(channel, Ended::Orderly, &tag, true, "by the server");
                        return PAUSE;
                    } else {
                        break data;
                    }
                }
            }
            Ok(_) => "no stream".to_owned(),
        };
        self.ended(channel, Ended::Broken, &tag, false, &cause);
        PAUSE
    }

    fn meta(&self) -> Value {
        let mut capabilities = json!({ "elicitation": { "form": {} } });
        if let Era::Modern { tasks: true } = self.era {
            capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        }
        meta(&capabilities)
    }
}

pub(super) fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

pub(super) fn listen(id: u64, meta: &Value) -> Value {
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": LISTEN, "params": params })
}

pub(super) struct Request<'a> {
    pub(super) shared: &'a Shared,
    work: &'a Work,
    first: u64,
    hang_up: Duration,
}

impl Request<'_> {
    async fn run(&self) -> Became {
        let (mut id, mut input) = (self.first, None);
        loop {
            match self.round(id, input.as_ref()).await {
                Round::Asks(question) => {
                    sleep(thinking(&question.text)).await;
                    let answers = json!({ question.key: accepted(&question.text) });
                    input = Some((answers, question.state));
                    id = self.shared.next_request();
                }
                Round::Task(task) => return self.follow(&task).await,
                // The tool has begun, so only this round may be repeated.
                Round::Ended(Became::Nothing(pause)) if input.is_some() => sleep(pause).await,
                Round::Ended(became) => return became,
            }
        }
    }

    async fn round(&self, id: u64, input: Option<&(Value, Value)>) -> Round {
        let message = self.message(id, input);
        let name = self.work.tool.name();
        let posted = (self.shared.wire).post_modern("tools/call", Some(name), &message);
        let exchange = timeout(self.hang_up, posted).await.ok();
        let answered = self.shared.answered(self.channel(), self.work, exchange);
        let (tag, mut answered) = match answered {
            Ok(answered) => answered,
            Err(became) => return Round::Ended(became),
        };
        let cause = loop {
            match answered.next().await {
                Ok(Some(data)) => {
                    if let Some(round) = self.received(id, &data) {
                        return round;
                    }
                }
                Ok(None) => break "before the answer".to_owned(),
                Err(failure) => break failure.to_string(),
            }
        };
        (self.shared).ended(self.channel(), Ended::Broken, &tag, true, &cause);
        Round::Ended(Became::without_answer(self.work))
    }

    fn message(&self, id: u64, input: Option<&(Value, Value)>) -> Value {
        let mut params = json!({
            "name": self.work.tool.name(),
            "arguments": self.work.arguments(),
            "_meta": self.shared.meta(),
        });
        params["_meta"]["progressToken"] = json!(self.first);
        if let Some((answers, state)) = input {
            params["inputResponses"] = answers.clone();
            params["requestState"] = state.clone();
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    }

    pub(super) async fn ask_for(
        &self,
        method: &str,
        task: &str,
        answers: Option<&Value>,
    ) -> Exchange {
        let mut params = json!({ "taskId": task, "_meta": self.shared.meta() });
        if let Some(answers) = answers {
            params["inputResponses"] = answers.clone();
        }
        let id = self.shared.next_request();
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        (self.shared.wire)
            .post_modern(method, Some(task), &message)
            .await
    }

    pub(super) fn note(&self, say: impl FnOnce(u64) -> Message) {
        self.shared.received(self.channel(), None, say(self.first));
    }

    fn received(&self, id: u64, data: &str) -> Option<Round> {
        let mut message: Value = serde_json::from_str(data).unwrap_or_default();
        if message["result"]["resultType"] == "task" {
            let task = message["result"]["taskId"].as_str().unwrap_or_default();
            return Some(Round::Task(task.to_owned()));
        }
        if let Some(question) = question(&message["result"]) {
            let (id, text) = (json!(question.key), question.text.clone());
            self.note(|_| Message::Question { id, text });
            return Some(Round::Asks(question));
        }
        if message.get("id") == Some(&json!(id)) && message.get("method").is_none() {
            message["id"] = json!(self.first);
        }
        let message = Message::read(&message.to_string());
        let answers =
            matches!(&message, Message::Response { request, .. } if *request == self.first);
        self.note(|_| message);
        answers.then_some(Round::Ended(Became::Over(End::Answered)))
    }

    pub(super) fn channel(&self) -> Channel {
        Channel::Request(self.first)
    }
}

fn question(result: &Value) -> Option<Question> {
    if result["resultType"] != "input_required" {
        return None;
    }
    let (key, asked) = result["inputRequests"].as_object()?.iter().next()?;
    Some(Question {
        key: key.clone(),
        text: asked["params"]["message"].as_str()?.to_owned(),
        state: result["requestState"].clone(),
    })
}
