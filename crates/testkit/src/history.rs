//! What one client did and saw, step by step.
//!
//! A client only writes down; whether it was right is for [`crate::check`] to say.

mod message;
mod recorder;

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::client::reply_to;

pub use message::{Answer, Message};
pub use recorder::Recorder;

/// The tools that clients of runs call: those of `chaos_tools`, and some of the demo server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// Answers at once.
    Echo,
    /// Notes its execution, works a little, answers.
    Record,
    /// Reports progress, then answers.
    Steps,
    /// The same, noted.
    StepsOnce,
    /// Notes its execution, asks the user, answers.
    Ask,
    /// Notes its execution, works for seconds, answers.
    Long,
    /// Of the demo server: reports progress, then answers how many steps it took. Not to be repeated.
    Job,
    /// Of the demo server: counts its calls in the session, and answers how many there have been, which shows
    /// if one was executed twice.
    CountUp,
}

impl Tool {
    /// Its name on the wire.
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
        }
    }

    /// Whether it says so of itself.
    #[must_use]
    pub const fn is_safe_to_repeat(self) -> bool {
        matches!(self, Self::Echo | Self::Steps)
    }

    /// Whether its executions are noted in the ledger.
    #[must_use]
    pub const fn is_noted(self) -> bool {
        matches!(
            self,
            Self::Record | Self::StepsOnce | Self::Ask | Self::Long
        )
    }
}

/// A call that a client wants made, in as many requests as it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Its number, unique in its client.
    pub call: u64,
    /// The tool.
    pub tool: Tool,
    /// What the answer must repeat; unique in the run.
    pub nonce: String,
    /// How many steps are to be reported, by tools that report; what [`Tool::CountUp`] must answer.
    pub steps: u32,
    /// The tool's time, for each step or in all, in milliseconds.
    pub ms: u64,
}

impl Work {
    /// The arguments of the call.
    #[must_use]
    pub fn arguments(&self) -> Value {
        let Self {
            nonce, steps, ms, ..
        } = self;
        match self.tool {
            // Both servers have one, and read what is theirs.
            Tool::Echo => json!({ "nonce": nonce, "text": nonce }),
            Tool::Job => json!({ "steps": steps, "interval_ms": ms }),
            Tool::CountUp => json!({}),
            _ => json!({ "nonce": nonce, "count": steps, "ms": ms }),
        }
    }

    /// The text of the tool's answer.
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

    /// The time that the tool takes for it.
    #[must_use]
    pub fn takes(&self) -> Duration {
        let each = Duration::from_millis(self.ms);
        match self.tool {
            Tool::Steps | Tool::StepsOnce | Tool::Job => each * self.steps,
            Tool::Record | Tool::Long => each,
            Tool::Echo | Tool::Ask | Tool::CountUp => Duration::ZERO,
        }
    }
}

/// What an HTTP exchange was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// The opening of a session.
    Opening,
    /// A request, by its JSON-RPC id: its POST and every GET that resumed its stream.
    Request(u64),
    /// The session's standalone stream.
    Standalone,
    /// The answer to a question of the server.
    Reply,
}

/// Who ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The client, on purpose, to resume.
    Willingly,
    /// The server, in order, before the answer.
    Orderly,
    /// It broke.
    Broken,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The client began to open a session.
    Opening,
    /// A session was opened.
    Opened {
        /// Its id.
        session: String,
    },
    /// The server said that it does not know the session.
    Forgotten {
        /// The session's id.
        session: String,
        /// On what occasion.
        channel: Channel,
    },
    /// A request was sent for a call.
    Sent {
        /// Its JSON-RPC id, which is its progress token too.
        request: u64,
        /// In which session.
        session: String,
        /// What for.
        work: Work,
    },
    /// The server refused with an HTTP status.
    Refused {
        /// What.
        channel: Channel,
        /// The status.
        status: u16,
        /// The JSON-RPC error's code, if there was one.
        code: Option<i64>,
        /// What it said.
        message: String,
    },
    /// A stream was opened by GET.
    Listening {
        /// Which.
        channel: Channel,
        /// Of which session.
        session: String,
        /// After which event.
        after: Option<String>,
    },
    /// A message arrived.
    Received {
        /// On which channel.
        channel: Channel,
        /// Its event id; a JSON body has none.
        id: Option<String>,
        /// What it says.
        message: Message,
    },
    /// A connection ended before the answer was there.
    Ended {
        /// Which.
        channel: Channel,
        /// How.
        how: Ended,
        /// The exchange, as the balancer knows it.
        tag: String,
        /// Whether the head of the answer had arrived.
        answered: bool,
        /// In words.
        cause: String,
    },
    /// The answer to a question was taken.
    Replied {
        /// The call's nonce, which was the question.
        question: String,
    },
}

/// A step, and when.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Since the beginning of the run.
    pub at: Duration,
    /// What.
    pub step: Step,
}

/// What one client did and saw, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct History {
    /// The client's number.
    pub client: usize,
    /// Its steps.
    pub entries: Vec<Entry>,
}
