//! The recorded steps of a client, for [`crate::check`].

mod message;
mod recorder;

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

pub use message::{Answer, Message};
pub use recorder::Recorder;

/// A tool of `chaos_tools` or the demo server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// Answers at once.
    Echo,
    /// Records its execution, works briefly, answers.
    Record,
    /// Reports progress, then answers.
    Steps,
    /// Records its execution, reports progress, answers.
    StepsOnce,
    /// Records its execution, asks the user, answers.
    Ask,
    /// Records its execution, works for seconds, answers.
    Long,
    /// Demo server: reports progress, then answers with the number of steps. Unsafe to repeat.
    Job,
    /// Demo server: answers with its number of calls in the session.
    CountUp,
    /// Demo server: changes the resource `demo://counter`. The answer depends on other clients.
    Increment,
}

impl Tool {
    /// Returns the tool's name in MCP.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Record => "record",
            Self::Steps => "steps",
            Self::StepsOnce => "steps_once",
            Self::Ask => "ask",
            Self::Long => "long",
            Self::Job => "long_job",
            Self::CountUp => "count_up",
            Self::Increment => "increment_counter",
        }
    }

    /// Whether the tool is declared safe to repeat.
    #[must_use]
    pub const fn is_safe_to_repeat(self) -> bool {
        matches!(self, Self::Echo | Self::Steps)
    }

    /// Whether the tool's executions are in the ledger.
    #[must_use]
    pub const fn is_noted(self) -> bool {
        matches!(
            self,
            Self::Record | Self::StepsOnce | Self::Ask | Self::Long
        )
    }
}

/// A call, which may take several requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Work {
    /// The number, unique in its client.
    pub call: u64,
    /// The tool.
    pub tool: Tool,
    /// The text that the answer must repeat, unique in the run.
    pub nonce: String,
    /// The steps to report, or the answer of [`Tool::CountUp`].
    pub steps: u32,
    /// Milliseconds per step or in total.
    pub ms: u64,
}

impl Work {
    /// Returns the arguments of the call.
    #[must_use]
    pub fn arguments(&self) -> Value {
        let Self {
            nonce, steps, ms, ..
        } = self;
        match self.tool {
            // Both servers have an echo tool, and each reads its own argument.
            Tool::Echo => json!({ "nonce": nonce, "text": nonce }),
            Tool::Job => json!({ "steps": steps, "interval_ms": ms }),
            Tool::CountUp | Tool::Increment => json!({}),
            _ => json!({ "nonce": nonce, "count": steps, "ms": ms }),
        }
    }

    /// Returns the expected text of the answer.
    #[must_use]
    pub fn answer(&self) -> String {
        let Self { nonce, steps, .. } = self;
        match self.tool {
            Tool::Ask => format!("{nonce} {}", reply_to(nonce)),
            Tool::Job => format!("done after {steps} steps"),
            Tool::CountUp => steps.to_string(),
            _ => nonce.clone(),
        }
    }

    /// Returns how long the tool works.
    #[must_use]
    pub fn takes(&self) -> Duration {
        let each = Duration::from_millis(self.ms);
        match self.tool {
            Tool::Steps | Tool::StepsOnce | Tool::Job => each * self.steps,
            Tool::Record | Tool::Long => each,
            Tool::Echo | Tool::Ask | Tool::CountUp | Tool::Increment => Duration::ZERO,
        }
    }
}

/// The purpose of an HTTP exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// The opening of a session.
    Opening,
    /// A request, by its JSON-RPC id, with every GET that resumes its stream.
    Request(u64),
    /// The finished stream of a request, which the client requests again.
    Replay(u64),
    /// The session's standalone stream.
    Standalone,
    /// The answer to a question of the server.
    Reply,
}

impl Channel {
    /// Whether the answer to this request ends the exchange.
    #[must_use]
    pub fn is_of(self, request: u64) -> bool {
        [Self::Request(request), Self::Replay(request)].contains(&self)
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The client left, in order to resume.
    Willingly,
    /// The server closed it cleanly, before the answer.
    Orderly,
    /// The connection broke.
    Broken,
}

/// A recorded step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The client began to open a session.
    Opening,
    /// A session was opened.
    Opened {
        /// The session's id.
        session: String,
    },
    /// The server does not know the session.
    Forgotten {
        /// The session's id.
        session: String,
        /// The exchange that reported the loss.
        channel: Channel,
    },
    /// The client sent a request for a call.
    Sent {
        /// The JSON-RPC id, which is also the progress token.
        request: u64,
        /// The session's id.
        session: String,
        /// The request's call.
        work: Work,
    },
    /// The server refused with an HTTP status.
    Refused {
        /// The refused exchange.
        channel: Channel,
        /// The HTTP status.
        status: u16,
        /// The code of the JSON-RPC error, if any.
        code: Option<i64>,
        /// The error's text.
        message: String,
    },
    /// A stream was opened by GET.
    Listening {
        /// The stream's exchange.
        channel: Channel,
        /// The session's id.
        session: String,
        /// The last event id of the client.
        after: Option<String>,
    },
    /// A message arrived.
    Received {
        /// The message's exchange.
        channel: Channel,
        /// The event id. A JSON body has none.
        id: Option<String>,
        /// The message.
        message: Message,
    },
    /// A connection ended before the answer.
    Ended {
        /// The exchange.
        channel: Channel,
        /// How the connection ended.
        how: Ended,
        /// The tag of the exchange at the balancer.
        tag: String,
        /// Whether the response headers had arrived.
        answered: bool,
        /// The cause of the end, in words.
        cause: String,
    },
    /// The server accepted the answer to a question.
    Replied {
        /// The question, which is the call's nonce.
        question: String,
    },
}

impl Step {
    /// Returns the request that the step belongs to.
    pub(crate) fn request(&self) -> Option<u64> {
        match self {
            Self::Forgotten { channel, .. }
            | Self::Refused { channel, .. }
            | Self::Listening { channel, .. }
            | Self::Received { channel, .. }
            | Self::Ended { channel, .. } => match channel {
                Channel::Request(request) => Some(*request),
                _ => None,
            },
            Self::Sent { request, .. } => Some(*request),
            Self::Opening | Self::Opened { .. } | Self::Replied { .. } => None,
        }
    }
}

/// A step with its time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The time since the run began.
    pub at: Duration,
    /// The step.
    pub step: Step,
}

/// The steps of one client, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct History {
    /// The client's number.
    pub client: usize,
    /// The steps.
    pub entries: Vec<Entry>,
}

impl History {
    /// Returns the last request whose answer had event ids, and these ids.
    pub(crate) fn last_stream(&self) -> Option<(u64, Vec<String>)> {
        let steps = self.entries.iter().rev().map(|entry| &entry.step);
        let received = steps.filter_map(|step| match step {
            Step::Received {
                channel: Channel::Request(request),
                id: Some(id),
                ..
            } => Some((*request, id)),
            _ => None,
        });
        let mut received = received.peekable();
        let request = received.peek()?.0;
        let ids = received.take_while(|(of, _)| *of == request);
        let mut ids: Vec<String> = ids.map(|(_, id)| id.clone()).collect();
        ids.reverse();
        Some((request, ids))
    }
}

/// Returns the text with which clients answer a question.
pub(crate) fn reply_to(question: &str) -> String {
    format!("reply-to-{question}")
}
