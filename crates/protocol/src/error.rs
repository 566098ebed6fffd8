use crate::{RawJson, RawObject, shown};

/// Maximum bytes of Shoal's own error messages, which may quote a client. Longer messages are shortened.
pub const LONGEST_MESSAGE: usize = 1024;

const MALFORMED: &str = "the peer answered with an error that has no message";

/// Error codes that Shoal emits (2026-07-28, Overview, Error Codes).
pub mod code {
    /// The text is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The message is invalid or not allowed here.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method is unknown to this revision and these capabilities.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters are wrong, such as an unknown tool or a bad cursor.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// Legacy: the resource does not exist.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// Modern: HTTP headers and body disagree.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// Modern: a required capability is not declared.
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// Modern: the version is unsupported.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// 2025-11-25 only: the user must visit a URL first.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// Shoal: a limit was reached. Outside JSON-RPC's reserved range, as the specification requires.
    pub const OVERLOADED: i64 = 50_300;
    /// Shoal: the call was not executed.
    pub const NOT_EXECUTED: i64 = 50_301;
    /// Shoal: the call was started, with unknown effect.
    pub const OUTCOME_UNKNOWN: i64 = 50_002;
    /// Shoal: the call's deadline passed.
    pub const DEADLINE_EXCEEDED: i64 = 50_400;
    /// The client cancelled the request (LSP's code).
    pub const REQUEST_CANCELLED: i64 = -32_800;
    /// Shoal: the session or stream has ended.
    pub const GONE: i64 = 50_410;
}

/// A JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// A code of [`code`], or a backend's own.
    pub code: i64,
    /// The fault and the remedy, in one sentence.
    pub message: String,
    /// Details for programs.
    pub data: Option<RawJson>,
}

impl RpcError {
    /// Makes an error without data. Shortens messages to [`LONGEST_MESSAGE`].
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > LONGEST_MESSAGE {
            message = shown(&message, LONGEST_MESSAGE);
        }
        Self {
            code,
            message,
            data: None,
        }
    }

    /// Adds data.
    #[must_use]
    pub fn with_data(mut self, data: RawJson) -> Self {
        self.data = Some(data);
        self
    }

    /// Makes error -32600.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// Makes error -32602.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// Makes error -32601, which names the method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(
            code::METHOD_NOT_FOUND,
            format!("method not found: {method}"),
        )
    }

    /// Makes error -32603.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }

    /// Reads a peer's error, even if malformed. A code may be a whole number written as float or text; other codes
    /// become -32603. A text becomes the message. If reading loses a part of an error without data, the whole error
    /// becomes the data.
    pub fn from_json(json: &RawJson) -> Self {
        let Some(object) = RawObject::of(json) else {
            return match json.string() {
                Some(text) => Self::internal(text),
                None => Self::internal(MALFORMED).with_data(json.clone()),
            };
        };
        let code = object.get("code").and_then(|code| code_in(&code));
        let message = object.get("message").and_then(|message| message.string());
        let is_whole = code.is_some() && message.is_some();
        let data = object.get("data").filter(|data| !data.is_null());
        Self {
            code: code.unwrap_or(code::INTERNAL_ERROR),
            message: message.unwrap_or_else(|| MALFORMED.to_owned()),
            data: data.or_else(|| (!is_whole).then(|| json.clone())),
        }
    }

    /// Writes the error as JSON.
    pub fn to_json(&self) -> RawJson {
        #[derive(serde::Serialize)]
        struct Wire<'a> {
            code: i64,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: &'a Option<RawJson>,
        }
        RawJson::of(&Wire {
            code: self.code,
            message: &self.message,
            data: &self.data,
        })
    }
}

fn code_in(code: &RawJson) -> Option<i64> {
    let text = code.string();
    let text = text.as_deref().unwrap_or(code.as_str()).trim();
    if let Ok(code) = text.parse() {
        return Some(code);
    }
    let code: f64 = text.parse().ok()?;
    // From about this size, floats may be inexact.
    (code.fract() == 0.0 && code.abs() < 9e15).then_some(code as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MALFORMED, RpcError, code};
    use crate::RawJson;

    fn read(error: &Value) -> (i64, String, Option<Value>) {
        let RpcError {
            code,
            message,
            data,
        } = RpcError::from_json(&RawJson::of(error));
        (code, message, data.map(|data| data.read().unwrap()))
    }

    #[test]
    fn a_code_counts_however_it_is_written() {
        for written in [
            json!(-32000),
            json!(-32000.0),
            json!("-32000"),
            json!("-32000.0"),
        ] {
            let error = json!({"code": written, "message": "no"});
            assert_eq!(read(&error), (-32000, "no".to_owned(), None), "{written}");
        }
        for written in [
            json!(1.5),
            json!("E_NO"),
            json!(null),
            json!([]),
            json!(1e300),
            json!("NaN"),
        ] {
            let error = json!({"code": written, "message": "no"});
            let told = (code::INTERNAL_ERROR, "no".to_owned(), Some(error.clone()));
            assert_eq!(read(&error), told, "{written}");
        }
    }

    #[test]
    fn what_an_error_says_is_told() {
        let internal = code::INTERNAL_ERROR;
        assert_eq!(read(&json!("no")), (internal, "no".to_owned(), None));
        let error = json!({"message": "no", "data": 1});
        assert_eq!(read(&error), (internal, "no".to_owned(), Some(json!(1))));
        for error in [
            json!({"code": 7}),
            json!({"code": 7, "message": null}),
            json!({"code": 7, "message": {}}),
        ] {
            assert_eq!(read(&error), (7, MALFORMED.to_owned(), Some(error)));
        }
        assert_eq!(
            read(&json!([1])),
            (internal, MALFORMED.to_owned(), Some(json!([1])))
        );
    }
}
