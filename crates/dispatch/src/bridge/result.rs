use std::sync::LazyLock;

use memchr::memmem::Finder;
use shoal_ports::CallOutcome;
use shoal_protocol::{Method, RawJson, RawObject, RpcError};

use super::input::InputRequired;
use crate::shape::Typed;

pub(super) enum Judged {
    Complete(Typed),
    Required(InputRequired),
}

pub(crate) fn complete(method: &Method, outcome: &CallOutcome) -> Option<Typed> {
    match outcome {
        CallOutcome::Result(result) => match judge(method, result) {
            Ok(Judged::Complete(typed)) => Some(typed),
            Ok(Judged::Required(_)) | Err(_) => None,
        },
        CallOutcome::Error(_) | CallOutcome::Refused(_) => Some(Typed::No),
        CallOutcome::Failed(_) => None,
    }
}

/// Fails with -32603 if the backend violates the protocol.
pub(super) fn judge(method: &Method, result: &RawJson) -> Result<Judged, RpcError> {
    // Searching is cheaper than parsing, which few results need.
    static SEARCH: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("resultType"));
    if SEARCH.find(result.as_bytes()).is_none() {
        check(method, result)?;
        return Ok(Judged::Complete(Typed::No));
    }
    let kind = result.member("resultType").and_then(|kind| kind.string());
    match kind.as_deref() {
        Some("input_required") => {
            let object = RawObject::of(result).unwrap_or_default();
            Ok(Judged::Required(InputRequired::of(method, object)?))
        }
        _ => {
            check(method, result)?;
            Ok(Judged::Complete(Typed::Perhaps))
        }
    }
}

/// Without the checked member, official clients lose the answer or the connection.
fn check(method: &Method, result: &RawJson) -> Result<(), RpcError> {
    let broken = |what: &str| {
        Err(RpcError::internal(format!(
            "the call has run, but the server's answer cannot be passed on: {what}"
        )))
    };
    if !result.is_object() {
        return broken("its result is not a JSON object");
    }
    let (member, begins, kind) = match method {
        Method::ToolsCall => ("content", b'[', "array"),
        Method::ResourcesRead => ("contents", b'[', "array"),
        Method::PromptsGet => ("messages", b'[', "array"),
        Method::Complete => ("completion", b'{', "object"),
        _ => return Ok(()),
    };
    match result.member_begins(member) {
        Some(found) if found == begins => Ok(()),
        Some(_) => broken(&format!("`{member}` of its result is not an {kind}")),
        None => broken(&format!("its result has no `{member}`")),
    }
}

#[cfg(test)]
mod tests {
    use shoal_protocol::{Method, RawJson, code};

    use super::{Judged, Typed, judge};

    fn judged(method: &Method, text: &'static str) -> Result<Judged, String> {
        judge(method, &RawJson::from_static(text)).map_err(|error| {
            assert_eq!(error.code, code::INTERNAL_ERROR);
            error.message
        })
    }

    #[test]
    fn a_result_that_no_client_can_read_is_an_error() {
        for (method, text, why) in [
            (Method::ToolsCall, r#""done""#, "not a JSON object"),
            (Method::ToolsCall, "[]", "not a JSON object"),
            (Method::ToolsCall, "7", "not a JSON object"),
            (Method::ToolsCall, "null", "not a JSON object"),
            (Method::ToolsCall, r#""resultType""#, "not a JSON object"),
            (Method::ToolsCall, "{}", "has no `content`"),
            (
                Method::ToolsCall,
                r#"{"resultType":"complete"}"#,
                "has no `content`",
            ),
            (
                Method::ToolsCall,
                r#"{"x":{"content":[]}}"#,
                "has no `content`",
            ),
            (Method::ToolsCall, r#"{"content":"x"}"#, "is not an array"),
            (
                Method::ResourcesRead,
                r#"{"content":[]}"#,
                "has no `contents`",
            ),
            (Method::PromptsGet, "{}", "has no `messages`"),
            (Method::Complete, r#"{"completion":[]}"#, "is not an object"),
        ] {
            let message = judged(&method, text).err().unwrap_or_default();
            assert!(message.contains(why), "{method} {text}: {message}");
        }
    }

    #[test]
    fn what_a_client_can_read_is_passed_on() {
        for (method, text, typed) in [
            (Method::ToolsCall, r#"{"content":[]}"#, Typed::No),
            (
                Method::ToolsCall,
                r#"{ "structuredContent" : {"content":1}, "content" : [ ] }"#,
                Typed::No,
            ),
            (
                Method::ToolsCall,
                r#"{"content":[],"resultType":"complete"}"#,
                Typed::Perhaps,
            ),
            (
                Method::ToolsCall,
                r#"{"content":["resultType"]}"#,
                Typed::Perhaps,
            ),
            (Method::ResourcesRead, r#"{"contents":[]}"#, Typed::No),
            (Method::PromptsGet, r#"{"messages":[]}"#, Typed::No),
            (
                Method::Complete,
                r#"{"completion":{"values":[]}}"#,
                Typed::No,
            ),
        ] {
            match judged(&method, text) {
                Ok(Judged::Complete(found)) => assert_eq!(found, typed, "{text}"),
                Ok(Judged::Required(_)) => panic!("{text}: asks"),
                Err(message) => panic!("{text}: {message}"),
            }
        }
    }

    #[test]
    fn a_question_is_no_result_yet() {
        let text = r#"{"requestState":"s","resultType":"input_required"}"#;
        assert!(matches!(
            judged(&Method::ToolsCall, text),
            Ok(Judged::Required(_))
        ));
        let message = judged(&Method::Complete, text).err().unwrap_or_default();
        assert!(message.contains("not allowed"), "{message}");
    }
}
