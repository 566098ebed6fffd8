use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use reqwest::Response;
use shoal_outbound::collect;
use shoal_ports::CallFailure;
use shoal_protocol::{Outcome, RawJson, RawObject, RequestId, RpcError, code, shown};

use super::stream::has_media_type;
use crate::http_client::{LATER, SAID, redirect_target, retry_after};
use crate::upstream::{Denied, RequestOutcome, readable};

const BODY: usize = 64 * 1024;

pub(super) enum Refusal {
    Forgotten,
    /// The server has forgotten the session if it also refuses a ping in the session. If not, this
    /// is the request's outcome, because some servers answer unknown methods with 404.
    PerhapsForgotten(RequestOutcome),
    Outcome(RequestOutcome),
}

#[derive(Clone, Copy)]
pub(super) struct RefusedRequest {
    pub(super) id: Option<u64>,
    /// Whether the request is a call, which may have run.
    pub(super) is_call: bool,
    pub(super) in_session: bool,
    /// Whether the request carried the caller's token, as is or exchanged.
    pub(super) in_callers_name: bool,
    /// Whether the request carried the operator's credentials, which the refusal may quote.
    pub(super) in_operators_name: bool,
}

/// Members with the server's error message, in order of preference.
const WORDS: [&str; 4] = ["error_description", "message", "detail", "error"];

fn words(headers: &HeaderMap, body: &Bytes, json: Option<&RawJson>) -> Option<String> {
    let said = match json {
        Some(json) => {
            let object = RawObject::of(json);
            let member = |name: &&str| object.as_ref()?.get(name)?.string();
            let error = object.as_ref().and_then(|object| object.get("error"));
            let message = error.and_then(|error| error.member("message")?.string());
            message.or_else(|| WORDS.iter().find_map(member))?
        }
        None if has_media_type(headers, "text/plain") => str::from_utf8(body).ok()?.to_owned(),
        None => return None,
    };
    let said = shown(said.trim(), SAID);
    (!said.is_empty()).then_some(said)
}

/// Reads a refusal. If it may concern the operator's credentials, also returns the server's words, perhaps
/// empty, for the operator alone.
pub(super) async fn read(answer: Response, refused: RefusedRequest) -> (Refusal, Option<String>) {
    let (status, headers) = (answer.status(), answer.headers().clone());
    if let Some(target) = redirect_target(&answer) {
        let told =
            format!("the server answers with a redirect to {target}: set url to it ({status})");
        let outcome = RequestOutcome::Rejected(RpcError::internal(told));
        return (Refusal::Outcome(outcome), None);
    }
    let body = collect(answer, BODY).await.unwrap_or_default();
    judge(status, &headers, body, refused)
}

fn judge(
    status: StatusCode,
    headers: &HeaderMap,
    body: Bytes,
    refused: RefusedRequest,
) -> (Refusal, Option<String>) {
    let body = readable(body).text;
    let json = RawJson::parse_text(body.clone()).ok();
    let said = words(headers, &body, json.as_ref());
    let is_of_credentials = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
    if is_of_credentials && refused.in_operators_name {
        let outcome = denied(status, refused.in_callers_name, None);
        return (Refusal::Outcome(outcome), Some(said.unwrap_or_default()));
    }
    let said = said.as_deref();
    let meaning = meaning(status, headers, json.as_ref(), said, refused);
    (meaning, None)
}

fn meaning(
    status: StatusCode,
    headers: &HeaderMap,
    json: Option<&RawJson>,
    said: Option<&str>,
    RefusedRequest {
        id,
        is_call,
        in_session,
        in_callers_name,
        ..
    }: RefusedRequest,
) -> Refusal {
    let body = json.and_then(RawObject::of);
    let own = body.as_ref().and_then(|body| body.get("error"));
    let own = own.filter(RawJson::is_object);
    let own = own.map(|error| RpcError::from_json(&error));
    let answers = body.and_then(|body| RequestId::from_json(&body.get("id")?).ok());
    let is_answer =
        answers.is_some_and(|answers| id.is_some() && answers.number_as_answered() == id);
    if in_session && says_forgotten(status, own.as_ref(), is_answer) {
        return Refusal::Forgotten;
    }
    if in_session && status == StatusCode::NOT_FOUND && !is_answer {
        let reason = format!("the server answered {status}, and still knows the session");
        return Refusal::PerhapsForgotten(match is_call {
            true => may_have_run(reason, said),
            false => RequestOutcome::Rejected(RpcError::internal(saying(reason, said))),
        });
    }
    if let Some(error) = own.clone().filter(|_| is_answer) {
        return Refusal::Outcome(RequestOutcome::Answered(Outcome::Error(error)));
    }
    let retry_after = retry_after(headers);
    let told = |what: &str| {
        let told = saying(format!("{what} ({status})"), said);
        RequestOutcome::Rejected(RpcError::internal(told))
    };
    Refusal::Outcome(match status {
        StatusCode::TOO_MANY_REQUESTS => {
            busy("the server takes no more requests", said, retry_after)
        }
        StatusCode::SERVICE_UNAVAILABLE if headers.contains_key(header::RETRY_AFTER) => {
            busy("the server is not available", said, retry_after)
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => denied(status, in_callers_name, said),
        // The status means that the request arrived too slowly, but some servers send it after a call that
        // ran too long.
        StatusCode::REQUEST_TIMEOUT if is_call => {
            may_have_run(format!("the server answered {status}"), said)
        }
        StatusCode::NOT_FOUND if own.is_none() && is_call => may_have_run(
            format!("the server answered {status}; is the URL that of an MCP endpoint?"),
            said,
        ),
        StatusCode::NOT_FOUND if own.is_none() => {
            told("the server has nothing there; is the URL that of an MCP endpoint?")
        }
        _ if status.is_redirection() => {
            told("the server answers with a redirect that names no URL")
        }
        // A failing server may have executed the call.
        _ if status.is_server_error() => {
            may_have_run(format!("the server answered {status}"), said)
        }
        _ => match own {
            Some(error) => RequestOutcome::Answered(Outcome::Error(error)),
            None => told("the server refused the request"),
        },
    })
}

fn saying(what: String, said: Option<&str>) -> String {
    match said {
        Some(said) => format!("{what}: {said}"),
        None => what,
    }
}

/// Whether the session is unknown, rather than the request wrong.
fn says_forgotten(status: StatusCode, error: Option<&RpcError>, is_answer: bool) -> bool {
    let Some(error) = error else {
        return false;
    };
    match status {
        // Only another Shoal says in an answer with the request's id that the session is forgotten.
        StatusCode::NOT_FOUND if is_answer => error.code == code::GONE,
        // Some servers use 400, among them the reference server.
        StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST if !is_answer => {
            error.message.to_lowercase().contains("session")
        }
        _ => false,
    }
}

fn may_have_run(reason: String, said: Option<&str>) -> RequestOutcome {
    RequestOutcome::Lost {
        written: true,
        reason: saying(reason, said).into(),
    }
}

/// Rejects the request for good, because the server would refuse the same credentials again.
fn denied(status: StatusCode, in_callers_name: bool, said: Option<&str>) -> RequestOutcome {
    let what = match (status, in_callers_name) {
        (StatusCode::UNAUTHORIZED, true) => "the server does not accept the caller's credentials",
        (StatusCode::UNAUTHORIZED, false) => {
            "the server does not accept Shoal's credentials; its operator may set headers or client_credentials of the backend"
        }
        (_, true) => "the server does not let the caller do this",
        (_, false) => "the server does not let Shoal do this",
    };
    let told = RpcError::internal(saying(format!("{what} ({status})"), said));
    RequestOutcome::Rejected(told.with_data(RawJson::of(&Denied {
        status: status.as_u16(),
    })))
}

fn busy(what: &str, said: Option<&str>, retry_after: Option<Duration>) -> RequestOutcome {
    RequestOutcome::Declined(CallFailure::Overloaded {
        reason: saying(what.to_owned(), said),
        retry_after: retry_after.unwrap_or(LATER),
    })
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};
    use shoal_ports::CallFailure;
    use shoal_protocol::Outcome;

    use super::{Refusal, RefusedRequest, judge};
    use crate::upstream::RequestOutcome;

    fn of(status: u16, body: &'static str, in_session: bool) -> Refusal {
        let status = StatusCode::from_u16(status).unwrap();
        let headers: HeaderMap = [(http::header::RETRY_AFTER, "7".parse().unwrap())]
            .into_iter()
            .collect();
        let refused = RefusedRequest {
            id: Some(3),
            is_call: true,
            in_session,
            in_callers_name: false,
            in_operators_name: false,
        };
        judge(status, &headers, body.into(), refused).0
    }

    fn message(refusal: Refusal) -> String {
        match refusal {
            Refusal::Outcome(
                RequestOutcome::Answered(Outcome::Error(error)) | RequestOutcome::Rejected(error),
            ) => error.message,
            Refusal::Outcome(outcome) | Refusal::PerhapsForgotten(outcome) => panic!("{outcome:?}"),
            Refusal::Forgotten => panic!("forgotten"),
        }
    }

    #[test]
    fn a_session_is_forgotten_by_words_and_perhaps_by_404() {
        let unknown = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;
        for bare in [
            "",
            "<html>",
            r#"{"error":{"code":1,"message":"no such page"}}"#,
        ] {
            assert!(matches!(
                of(404, bare, true),
                Refusal::PerhapsForgotten(RequestOutcome::Lost { written: true, .. })
            ));
        }
        assert!(matches!(of(400, unknown, true), Refusal::Forgotten));
        assert!(matches!(of(404, unknown, true), Refusal::Forgotten));
        assert!(message(of(400, unknown, false)).contains("No valid session"));
        let ours =
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":50410,"message":"session not found"}}"#;
        assert!(matches!(of(404, ours, true), Refusal::Forgotten));
        for answered in [
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no such session tool"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no such session tool"}}"#,
        ] {
            assert_eq!(message(of(404, answered, true)), "no such session tool");
        }
    }

    #[test]
    fn what_a_server_says_is_told_whatever_its_status() {
        let told = |status, body, in_session| match of(status, body, in_session) {
            Refusal::Outcome(outcome) | Refusal::PerhapsForgotten(outcome) => {
                format!("{outcome:?}")
            }
            Refusal::Forgotten => panic!("forgotten"),
        };
        for body in [
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"it broke"}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"it broke"}}"#,
            r#"{"jsonrpc":"2.0","id":"other","error":{"code":-32000,"message":"it broke"}}"#,
            r#"{"error":"it broke"}"#,
            r#"{"detail":"it broke"}"#,
            r#"{"error":"invalid_token","error_description":"it broke"}"#,
        ] {
            for status in [400, 401, 403, 404, 408, 422, 429, 500, 503] {
                assert!(
                    told(status, body, false).contains("it broke"),
                    "{status} {body}"
                );
                assert!(
                    told(status, body, true).contains("it broke"),
                    "{status} {body}"
                );
            }
        }
        assert!(!told(500, "<html>it broke", false).contains("it broke"));
    }

    #[test]
    fn what_a_server_says_of_the_operators_credentials_is_for_the_operator() {
        let refused = |in_callers_name| RefusedRequest {
            id: Some(3),
            is_call: true,
            in_session: false,
            in_callers_name,
            in_operators_name: true,
        };
        let answered =
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"key abc expired"}}"#;
        let bodies = [answered, r#"{"error":"key abc expired"}"#];
        for (body, with_callers) in bodies.into_iter().flat_map(|it| [(it, false), (it, true)]) {
            for (status, is_kept_back) in [(401, true), (403, true), (400, false), (500, false)] {
                let status = StatusCode::from_u16(status).unwrap();
                let (refusal, for_operator) = judge(
                    status,
                    &HeaderMap::new(),
                    body.into(),
                    refused(with_callers),
                );
                let Refusal::Outcome(outcome) = refusal else {
                    panic!("{status}");
                };
                let told = format!("{outcome:?}").contains("key abc");
                assert_eq!(
                    (told, for_operator.is_some()),
                    (!is_kept_back, is_kept_back)
                );
            }
        }
        let (_, for_operator) = judge(
            StatusCode::FORBIDDEN,
            &HeaderMap::new(),
            "".into(),
            refused(false),
        );
        assert_eq!(for_operator.as_deref(), Some(""));
    }

    #[test]
    fn what_may_have_run_is_told_from_what_has_not() {
        for status in [404, 408, 500, 502, 504] {
            let refusal = of(status, "", false);
            assert!(matches!(
                refusal,
                Refusal::Outcome(RequestOutcome::Lost { written: true, .. })
            ));
        }
        for status in [429, 503] {
            let Refusal::Outcome(RequestOutcome::Declined(CallFailure::Overloaded {
                retry_after,
                ..
            })) = of(status, "", true)
            else {
                panic!("{status}");
            };
            assert_eq!(retry_after.as_secs(), 7);
        }
        assert!(message(of(401, "", true)).contains("credentials"));
        assert!(message(of(302, "", true)).contains("names no URL"));
    }
}
