//! A client of 2026-07-28 that records the same history as the legacy client.
//!
//! The client has no session and cannot resume streams. After a break, it repeats only repeatable calls. A question
//! arrives as a result, and the client answers by sending the request again. The history keeps a call's requests
//! under the id of the first.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::common::{Became, Common};
use super::wire::{Exchange, MODERN, Outcome, Refusal, Wire};
use super::{End, PAUSE, thinking};
use crate::history::{Channel, Ended, History, Message, Recorder, Step, Tool, Work, reply_to};

const LISTEN: &str = "subscriptions/listen";

/// A client without a session. Clones share its history.
#[derive(Clone, Debug)]
pub struct ModernClient {
    shared: Arc<ModernShared>,
}

#[derive(Debug)]
struct ModernShared {
    common: Common,
    tasks: bool,
}

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

impl ModernClient {
    /// Creates a client.
    pub fn new(url: &str, recorder: Recorder) -> anyhow::Result<Self> {
        Self::start(url, recorder, false)
    }

    /// Creates a client whose calls may become tasks.
    pub fn with_tasks(url: &str, recorder: Recorder) -> anyhow::Result<Self> {
        Self::start(url, recorder, true)
    }

    fn start(url: &str, recorder: Recorder, tasks: bool) -> anyhow::Result<Self> {
        let wire = Wire::to(url, recorder.client())?;
        let common = Common::new(wire, recorder);
        Ok(Self {
            shared: Arc::new(ModernShared { common, tasks }),
        })
    }

    /// Creates a call with its own nonce.
    #[must_use]
    pub fn work(&self, tool: Tool, steps: u32, ms: u64) -> Work {
        self.shared.common.work(tool, steps, ms)
    }

    /// Makes a call, with as many requests as it needs. With `hang_up`, gives up if nothing arrives within that time.
    pub async fn call(&self, work: Work, hang_up: Option<Duration>) -> End {
        loop {
            let first = self.shared.common.next_request();
            self.shared.common.recorder.note(Step::Sent {
                request: first,
                session: String::new(),
                work: work.clone(),
            });
            let request = Request {
                shared: &self.shared,
                work: &work,
                first,
                hang_up,
            };
            match request.run().await {
                Became::Nothing(pause) => sleep(pause).await,
                Became::Over(end) => return end,
            }
        }
    }

    /// Reads streams of changes until the future is dropped.
    pub async fn listen(&self) {
        loop {
            sleep(self.listen_once().await).await;
        }
    }

    /// A stream must end with its response. Returns the pause before the next stream.
    async fn listen_once(&self) -> Duration {
        let common = &self.shared.common;
        let (id, channel) = (common.next_request(), Channel::Standalone);
        let params = json!({
            "notifications": { "toolsListChanged": true },
            "_meta": self.shared.meta(),
        });
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": LISTEN, "params": params });
        let posted = common.wire.post_modern(LISTEN, None, &message);
        let Exchange { tag, outcome } = posted.await;
        let cause = match outcome {
            Outcome::Refused(refusal) => {
                common.refused(channel, &refusal);
                return refusal.passes_after().unwrap_or(PAUSE);
            }
            Outcome::Broken(cause) => cause,
            Outcome::Accepted | Outcome::Json { .. } => "no stream".to_owned(),
            Outcome::Stream(mut events) => {
                common.recorder.note(Step::Listening {
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
                        common.recorder.note(Step::Received {
                            channel,
                            id: None,
                            message: Message::read(&data),
                        });
                    } else if value["result"].is_object() {
                        common.ended(channel, Ended::Orderly, &tag, true, "by the server");
                        return PAUSE;
                    } else {
                        break data;
                    }
                }
            }
        };
        common.ended(channel, Ended::Broken, &tag, false, &cause);
        PAUSE
    }

    /// Returns the history so far.
    #[must_use]
    pub fn history(&self) -> History {
        self.shared.common.recorder.history()
    }
}

impl ModernShared {
    fn meta(&self) -> Value {
        let mut capabilities = json!({ "elicitation": { "form": {} } });
        if self.tasks {
            capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        }
        json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        })
    }
}

pub(super) struct Request<'a> {
    shared: &'a ModernShared,
    work: &'a Work,
    first: u64,
    hang_up: Option<Duration>,
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
                    id = self.shared.common.next_request();
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
        let wire = &self.shared.common.wire;
        let posted = wire.post_modern("tools/call", Some(name), &message);
        let exchange = match self.hang_up {
            Some(after) => timeout(after, posted).await.ok(),
            None => Some(posted.await),
        };
        let answered = (self.shared.common).answered(self.channel(), self.work, exchange);
        let (tag, mut messages) = match answered {
            Ok(answered) => answered,
            Err(became) => return Round::Ended(became),
        };
        loop {
            match messages.next().await {
                Ok(Some(data)) => {
                    if let Some(round) = self.received(id, &data) {
                        return round;
                    }
                }
                Ok(None) => return self.broke(&tag, "before the answer"),
                Err(failure) => return self.broke(&tag, &failure.to_string()),
            }
        }
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
        let id = self.shared.common.next_request();
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let wire = &self.shared.common.wire;
        wire.post_modern(method, Some(task), &message).await
    }

    pub(super) fn note(&self, say: impl FnOnce(u64) -> Message) {
        self.shared.common.recorder.note(Step::Received {
            channel: self.channel(),
            id: None,
            message: say(self.first),
        });
    }

    pub(super) fn note_refusal(&self, refusal: &Refusal) {
        self.shared.common.refused(self.channel(), refusal);
    }

    fn received(&self, id: u64, data: &str) -> Option<Round> {
        let mut message: Value = serde_json::from_str(data).unwrap_or_default();
        if message["result"]["resultType"] == "task" {
            let task = message["result"]["taskId"].as_str().unwrap_or_default();
            return Some(Round::Task(task.to_owned()));
        }
        let question = question(&message["result"]);
        if message.get("id") == Some(&json!(id)) && message.get("method").is_none() {
            message["id"] = json!(self.first);
        }
        let message = match &question {
            Some(question) => Message::Question {
                id: json!(question.key),
                text: question.text.clone(),
            },
            None => Message::read(&message.to_string()),
        };
        let answers =
            matches!(&message, Message::Response { request, .. } if *request == self.first);
        self.shared.common.recorder.note(Step::Received {
            channel: self.channel(),
            id: None,
            message,
        });
        match question {
            Some(question) => Some(Round::Asks(question)),
            None => answers.then_some(Round::Ended(Became::Over(End::Answered))),
        }
    }

    fn broke(&self, tag: &str, cause: &str) -> Round {
        (self.shared.common).ended(self.channel(), Ended::Broken, tag, true, cause);
        Round::Ended(Became::without_answer(self.work))
    }

    fn channel(&self) -> Channel {
        Channel::Request(self.first)
    }
}

pub(super) fn accepted(question: &str) -> Value {
    json!({ "action": "accept", "content": { "text": reply_to(question) } })
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
