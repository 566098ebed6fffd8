//! A client of 2026-07-28 that records the same history as the legacy client.
//!
//! The client has no session and cannot resume streams. After a break, it repeats only repeatable calls. A question
//! arrives as a result, and the client answers by sending the request again. The history keeps a call's requests
//! under the id of the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::reply::{reply_to, thinking};
use super::wire::{Exchange, MODERN, Outcome, Refusal, Wire, describe};
use super::works::Works;
use super::{End, PAUSE};
use crate::history::{Channel, Ended, History, Message, Recorder, Step, Tool, Work};

/// A client without a session. Clones share its history.
#[derive(Clone, Debug)]
pub struct ModernClient {
    shared: Arc<ModernShared>,
}

#[derive(Debug)]
struct ModernShared {
    wire: Wire,
    recorder: Recorder,
    works: Works,
    requests: AtomicU64,
    tasks: bool,
}

pub(super) enum Became {
    Over(End),
    /// The request had no effect, and is sent again after a pause.
    Nothing(Duration),
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
        let number = recorder.history().client;
        Ok(Self {
            shared: Arc::new(ModernShared {
                wire: Wire::to(url, number)?,
                recorder,
                works: Works::of(number),
                requests: AtomicU64::new(1),
                tasks,
            }),
        })
    }

    /// Creates a call with its own nonce.
    #[must_use]
    pub fn work(&self, tool: Tool, steps: u32, ms: u64) -> Work {
        self.shared.works.next(tool, steps, ms)
    }

    /// Makes a call, with as many requests as it needs. With `hang_up`, gives up if nothing arrives within that time.
    pub async fn call(&self, work: Work, hang_up: Option<Duration>) -> End {
        loop {
            let first = self.next_request();
            self.shared.recorder.note(Step::Sent {
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

    /// Returns the history so far.
    #[must_use]
    pub fn history(&self) -> History {
        self.shared.recorder.history()
    }

    fn next_request(&self) -> u64 {
        self.shared.requests.fetch_add(1, Ordering::Relaxed)
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
                    id = self.shared.requests.fetch_add(1, Ordering::Relaxed);
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
        let exchange = match self.hang_up {
            Some(after) => timeout(after, posted).await.ok(),
            None => Some(posted.await),
        };
        let Some(Exchange { tag, outcome }) = exchange else {
            self.ended(Ended::Willingly, "", "hung up");
            return Round::Ended(Became::Over(End::GivenUp));
        };
        match outcome {
            Outcome::Broken(cause) => self.broke(&tag, &cause),
            Outcome::Refused(refusal) => {
                self.shared.recorder.note(refusal.step(self.channel()));
                Round::Ended(match refusal.passes_after() {
                    Some(pause) => Became::Nothing(pause),
                    None => Became::Over(End::GivenUp),
                })
            }
            Outcome::Accepted => {
                self.ended(Ended::Orderly, &tag, "an empty answer");
                Round::Ended(Became::Over(End::GivenUp))
            }
            Outcome::Json { body, .. } => (self.received(id, &body))
                .unwrap_or_else(|| self.broke(&tag, "a body that is no answer")),
            Outcome::Stream(mut events) => loop {
                match events.next().await {
                    Some(Ok(event)) => {
                        let data = event.data.filter(|data| !data.is_empty());
                        let round = data.and_then(|data| self.received(id, &data));
                        if let Some(round) = round {
                            return round;
                        }
                    }
                    Some(Err(error)) => return self.broke(&tag, &describe(&error)),
                    None => return self.broke(&tag, "before the answer"),
                }
            },
        }
    }

    fn message(&self, id: u64, input: Option<&(Value, Value)>) -> Value {
        let mut params = json!({
            "name": self.work.tool.name(),
            "arguments": self.work.arguments(),
            "_meta": self.meta(),
        });
        params["_meta"]["progressToken"] = json!(self.first);
        if let Some((answers, state)) = input {
            params["inputResponses"] = answers.clone();
            params["requestState"] = state.clone();
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    }

    fn meta(&self) -> Value {
        let mut capabilities = json!({ "elicitation": { "form": {} } });
        if self.shared.tasks {
            capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        }
        json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        })
    }

    pub(super) async fn ask_for(
        &self,
        method: &str,
        task: &str,
        answers: Option<&Value>,
    ) -> Exchange {
        let mut params = json!({ "taskId": task, "_meta": self.meta() });
        if let Some(answers) = answers {
            params["inputResponses"] = answers.clone();
        }
        let id = self.shared.requests.fetch_add(1, Ordering::Relaxed);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.shared
            .wire
            .post_modern(method, Some(task), &message)
            .await
    }

    pub(super) fn note(&self, say: impl FnOnce(u64) -> Message) {
        self.shared.recorder.note(Step::Received {
            channel: self.channel(),
            id: None,
            message: say(self.first),
        });
    }

    pub(super) fn note_refusal(&self, refusal: &Refusal) {
        self.shared.recorder.note(refusal.step(self.channel()));
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
        self.shared.recorder.note(Step::Received {
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
        self.ended(Ended::Broken, tag, cause);
        Round::Ended(match self.work.tool.is_safe_to_repeat() {
            true => Became::Nothing(PAUSE),
            false => Became::Over(End::GivenUp),
        })
    }

    fn ended(&self, how: Ended, tag: &str, cause: &str) {
        self.shared.recorder.note(Step::Ended {
            channel: self.channel(),
            how,
            tag: tag.to_owned(),
            answered: false,
            cause: cause.to_owned(),
        });
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
