//! What a message from the server says, as far as the checks look into it.

use serde::Serialize;
use serde_json::Value;

/// A message from the server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// An event without data, for its id.
    Prime,
    /// A progress notification.
    Progress {
        /// The request that it belongs to.
        token: u64,
        /// How far.
        value: u64,
    },
    /// `elicitation/create`
    Question {
        /// The JSON-RPC id, to answer with.
        id: Value,
        /// What is asked: the call's nonce.
        text: String,
    },
    /// Another request.
    Request {
        /// The JSON-RPC id, to answer with.
        id: Value,
        /// Its method.
        method: String,
    },
    /// How the task of a call stands.
    Task {
        /// The request that made it.
        request: u64,
        /// Its status.
        status: String,
    },
    /// A response.
    Response {
        /// The request that it answers.
        request: u64,
        /// What it says.
        answer: Answer,
    },
    /// Another notification.
    Notification {
        /// Its method.
        method: String,
    },
    /// Nothing of the kind.
    Garbage {
        /// What it is.
        text: String,
    },
}

/// What a response says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A tool's result.
    Result {
        /// Its first text.
        text: String,
        /// Whether it says that the tool failed.
        failed: bool,
    },
    /// An error.
    Error {
        /// Its code.
        code: i64,
        /// In words.
        message: String,
    },
}

impl Message {
    /// Reads the data of an event, or a JSON body.
    #[must_use]
    pub fn read(data: &str) -> Self {
        if data.is_empty() {
            return Self::Prime;
        }
        serde_json::from_str(data)
            .ok()
            .and_then(|message| Self::of(&message))
            .unwrap_or_else(|| Self::Garbage {
                text: data.chars().take(400).collect(),
            })
    }

    fn of(message: &Value) -> Option<Self> {
        let id = message.get("id");
        let Some(method) = message.get("method") else {
            return Some(Self::Response {
                request: id?.as_u64()?,
                answer: Answer::of(message)?,
            });
        };
        let method = method.as_str()?.to_owned();
        let params = &message["params"];
        Some(match (method.as_str(), id) {
            ("notifications/progress", None) => Self::Progress {
                token: params["progressToken"].as_u64()?,
                value: whole(params["progress"].as_f64()?)?,
            },
            ("elicitation/create", Some(id)) => Self::Question {
                id: id.clone(),
                text: params["message"].as_str()?.to_owned(),
            },
            (_, Some(id)) => Self::Request {
                id: id.clone(),
                method,
            },
            (_, None) => Self::Notification { method },
        })
    }
}

impl Answer {
    /// Of a JSON-RPC response, or of the body of a refusal.
    #[must_use]
    pub fn of(message: &Value) -> Option<Self> {
        if let Some(error) = message.get("error") {
            return Some(Self::Error {
                code: error["code"].as_i64()?,
                message: error["message"].as_str()?.to_owned(),
            });
        }
        let result = message.get("result")?;
        Some(Self::Result {
            text: result["content"][0]["text"].as_str()?.to_owned(),
            failed: result["isError"].as_bool().unwrap_or_default(),
        })
    }
}

fn whole(number: f64) -> Option<u64> {
    let is_whole = number.fract() == 0.0 && (0.0..1e15).contains(&number);
    is_whole.then_some(number as u64)
}
