use serde::Serialize;
use serde_json::Value;

/// A message from the server, parsed for the checks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// An event that has only an id.
    Prime,
    /// A progress notification.
    Progress {
        /// The request.
        token: u64,
        /// The progress.
        value: u64,
    },
    /// `elicitation/create`.
    Question {
        /// The JSON-RPC id.
        id: Value,
        /// The question, which is the call's nonce.
        text: String,
    },
    /// Another request.
    Request {
        /// The JSON-RPC id.
        id: Value,
        /// The method.
        method: String,
    },
    /// The status of a call's task.
    Task {
        /// The request that created the task.
        request: u64,
        /// The status.
        status: String,
    },
    /// A response.
    Response {
        /// The answered request.
        request: u64,
        /// The result or error.
        answer: Answer,
    },
    /// Another notification.
    Notification {
        /// The method.
        method: String,
    },
    /// Data that is not a JSON-RPC message.
    Garbage {
        /// The data.
        text: String,
    },
}

/// The content of a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A tool's result.
    Result {
        /// The first text.
        text: String,
        /// Whether the tool failed (`isError`).
        failed: bool,
    },
    /// An error.
    Error {
        /// The JSON-RPC error code.
        code: i64,
        /// The error's text.
        message: String,
    },
}

impl Message {
    /// Whether this is a notification other than progress.
    #[must_use]
    pub fn is_notification(&self) -> bool {
        matches!(self, Self::Notification { .. })
    }

    /// Parses the data of an event, or a JSON body.
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
    /// Parses a JSON-RPC response, or the body of a refusal.
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
