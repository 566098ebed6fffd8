use http::{HeaderMap, HeaderValue, header};
use shoal_protocol::shown;

use crate::refusal::Refusal;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AcceptedTypes {
    json: bool,
    event_stream: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// JSON, or a stream if the call sends other messages or takes a while.
    JsonOrStream,
    Json,
    /// An answer on the session's single stream (HTTP+SSE, WebSocket).
    SessionStream,
}

/// Official clients' `Accept` headers, which need no parsing.
const USUAL: [&[u8]; 2] = [
    b"application/json, text/event-stream",
    b"text/event-stream, application/json",
];

/// Every client must accept JSON.
pub(crate) fn answer_form(headers: &HeaderMap, json_only: bool) -> Result<AnswerForm, Refusal> {
    match AcceptedTypes::of(headers) {
        AcceptedTypes { json: false, .. } => Err(Refusal::NotAcceptable(
            "application/json, text/event-stream",
        )),
        AcceptedTypes { event_stream, .. } if event_stream && !json_only => {
            Ok(AnswerForm::JsonOrStream)
        }
        _ => Ok(AnswerForm::Json),
    }
}

pub(crate) fn expect_event_stream(headers: &HeaderMap) -> Result<(), Refusal> {
    if AcceptedTypes::of(headers).event_stream {
        Ok(())
    } else {
        Err(Refusal::NotAcceptable("text/event-stream"))
    }
}

pub(crate) fn expect_json_body(headers: &HeaderMap) -> Result<(), Refusal> {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    // A proxy may have joined repeated headers.
    let mut types = content_type.split(',');
    if !is_json(content_type) && !types.all(is_json) {
        return Err(Refusal::UnsupportedMediaType(shown(content_type, 128)));
    }
    let encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    match encodings.map(HeaderValue::as_bytes).all(is_identity) {
        true => Ok(()),
        false => Err(Refusal::EncodedBody),
    }
}

fn is_json(content_type: &str) -> bool {
    essence(content_type).eq_ignore_ascii_case("application/json")
}

/// Also allows `utf-8`, because some clients put the charset into `Content-Encoding`.
fn is_identity(encodings: &[u8]) -> bool {
    encodings.split(|&byte| byte == b',').all(|encoding| {
        let is = |none: &[u8]| encoding.trim_ascii().eq_ignore_ascii_case(none);
        is(b"identity") || is(b"utf-8") || is(b"")
    })
}

impl AcceptedTypes {
    fn of(headers: &HeaderMap) -> Self {
        let both = Self {
            json: true,
            event_stream: true,
        };
        // Without this header, the client accepts every type (RFC 9110, 12.5.1).
        if !headers.contains_key(header::ACCEPT) {
            return both;
        }
        let mut accepted = Self::default();
        for value in headers.get_all(header::ACCEPT) {
            if USUAL.contains(&value.as_bytes()) {
                return both;
            }
            for range in value.to_str().unwrap_or_default().split(',') {
                if is_excluded(range) {
                    continue;
                }
                let range = essence(range);
                let is = |name: &str| range.eq_ignore_ascii_case(name);
                accepted.json |= is("application/json") || is("application/*") || is("*/*");
                accepted.event_stream |= is("text/event-stream") || is("text/*") || is("*/*");
            }
        }
        accepted
    }
}

fn essence(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

fn is_excluded(range: &str) -> bool {
    range.split(';').skip(1).any(|parameter| {
        let weight = parameter.trim().strip_prefix("q=");
        weight.is_some_and(|weight| weight.parse::<f32>().is_ok_and(|weight| weight == 0.0))
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::{AcceptedTypes, AnswerForm, answer_form, expect_json_body};

    fn accepted(values: &[&str]) -> (bool, bool) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("accept", value.parse().unwrap());
        }
        let accepted = AcceptedTypes::of(&headers);
        (accepted.json, accepted.event_stream)
    }

    #[test]
    fn lists_wildcards_and_several_headers_count() {
        for both in [
            &["application/json, text/event-stream"][..],
            &["text/event-stream, application/json"],
            &["text/event-stream;q=0.5,application/json;charset=utf-8"],
            &["application/json", "TEXT/event-stream"],
            &["*/*"],
            &["application/*, text/*"],
        ] {
            assert_eq!(accepted(both), (true, true), "{both:?}");
        }
        assert_eq!(accepted(&["application/json"]), (true, false));
        assert_eq!(accepted(&["*/*;q=0"]), (false, false));
        assert_eq!(accepted(&[]), (true, true));
        assert_eq!(accepted(&[""]), (false, false));
    }

    #[test]
    fn an_answer_is_json_if_the_client_takes_no_stream_or_the_operator_wants_it() {
        let form = |accept: &str, json_only| {
            let mut headers = HeaderMap::new();
            headers.insert("accept", accept.parse().unwrap());
            answer_form(&headers, json_only).ok()
        };
        let both = "application/json, text/event-stream";
        assert_eq!(form(both, false), Some(AnswerForm::JsonOrStream));
        assert_eq!(form(both, true), Some(AnswerForm::Json));
        assert_eq!(form("application/json", false), Some(AnswerForm::Json));
        assert_eq!(form("text/event-stream", false), None);
    }

    #[test]
    fn only_plain_json_is_read() {
        let body = |content_type: &str, encoding: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("content-type", content_type.parse().unwrap());
            headers.insert("content-encoding", encoding.parse().unwrap());
            expect_json_body(&headers).is_ok()
        };
        assert!(body("application/json; charset=utf-8", "identity"));
        assert!(body("application/json, application/json", "identity"));
        assert!(body("application/json; charset=\"a,b\"", "identity"));
        assert!(!body("application/json, text/plain", "identity"));
        assert!(!body("application/json-patch+json", "identity"));
        assert!(!body("text/plain", "identity"));
        assert!(body("application/json", ""));
        assert!(body("application/json", "UTF-8"));
        assert!(!body("application/json", "gzip"));
        assert!(!body("application/json", "utf-8, gzip"));
        assert!(!body("application/json", "x"));
    }
}
