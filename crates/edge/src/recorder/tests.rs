use std::time::{Duration, Instant};

use http::request::Parts;
use shoal_ports::SessionId;
use shoal_protocol::{Body, Outcome, RawJson, RequestId, RpcError, code, error_response, response};

use super::{ERRORS, Gauges, Recorder, RequestRecord, STEPS};
use crate::refusal::Refusal;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn body(params: &str) -> Body {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    Body::parse(&text.into(), 16).unwrap()
}

fn request(recorder: &Recorder) -> RequestRecord {
    let params =
        format!(r#"{{"name":"add","_meta":{{"traceparent":"00-{TRACE}-b7ad6b7169203331-01"}}}}"#);
    let session = SessionId::new("s1");
    RequestRecord::of(
        recorder,
        Instant::now(),
        &head(),
        &body(&params),
        Some(&session),
    )
    .unwrap()
}

fn one() -> RequestId {
    RequestId::from_json(&RawJson::from_static("1")).unwrap()
}

#[test]
fn each_request_is_counted_once_by_how_it_ended() {
    let recorder = Recorder::default();
    let ok = request(&recorder);
    ok.wrote(br#"{"jsonrpc":"2.0","method":"notifications/progress"}"#);
    ok.wrote(&response(&one(), &RawJson::from_static("{}")));
    ok.ended(&Outcome::Error(RpcError::internal("late")));
    drop(ok);
    request(&recorder).wrote(&error_response(&one(), &RpcError::invalid_params("bad")));
    let overloaded = RpcError::new(code::OVERLOADED, "full");
    request(&recorder).ended(&Outcome::Error(overloaded));
    let cancelled = RpcError::new(code::REQUEST_CANCELLED, "stop");
    request(&recorder).ended(&Outcome::Error(cancelled));
    drop(request(&recorder));
    recorder.refused_unread(&Refusal::EncodedBody, Duration::ZERO);
    request(&recorder).answered(b"[]");

    let gauges = Gauges {
        sessions: 3,
        streams: 2,
        calls: 1,
    };
    recorder.end_step(10, gauges);
    recorder.end_step(15, Gauges::default());
    let steps = recorder.steps();
    let outcomes = steps[0].outcomes;
    let counted = (
        outcomes.ok,
        outcomes.rejected,
        outcomes.failed,
        outcomes.cancelled,
    );
    assert_eq!(counted, (2, 2, 1, 2));
    assert_eq!(
        steps[0].latency.iter().sum::<u64>(),
        5,
        "none that was cancelled"
    );
    assert_eq!(
        (steps[0].sessions, steps[0].streams, steps[0].calls),
        (3, 2, 1)
    );
    assert_eq!(
        (steps[1].at, steps[1].outcomes.total()),
        (15, 0),
        "begins anew"
    );
}

#[test]
fn a_tool_that_says_that_it_failed_is_not_counted_as_ok() {
    let recorder = Recorder::default();
    let failed = RawJson::from_static(r#"{"content":[],"isError":true}"#);
    request(&recorder).wrote(&response(&one(), &failed));
    request(&recorder).ended(&Outcome::Result(failed));
    let fine = RawJson::from_static(r#"{"content":[],"isError":false}"#);
    request(&recorder).ended(&Outcome::Result(fine));
    recorder.end_step(5, Gauges::default());
    let outcomes = recorder.steps()[0].outcomes;
    assert_eq!(
        (outcomes.ok, outcomes.rejected, outcomes.total()),
        (1, 2, 3)
    );
}

#[test]
fn what_a_tool_says_of_its_failure_is_kept_beside_the_errors() {
    let recorder = Recorder::default();
    // Tool failures do not displace errors, however many there are.
    request(&recorder).ended(&Outcome::Error(RpcError::invalid_params("bad")));
    let long = format!(
        r#"{{"content":[{{"text":"{}"}}],"isError":true}}"#,
        "x".repeat(10_000)
    );
    let long = RawJson::parse_text(long.into()).unwrap();
    for _ in 0..ERRORS {
        request(&recorder).ended(&Outcome::Result(long.clone()));
    }
    let errors = recorder.errors(ERRORS + 1);
    assert_eq!(errors.total, ERRORS + 1);
    let kept = errors.items.iter().filter(|error| !error.tool_failed);
    assert_eq!(
        kept.map(|error| &*error.message).collect::<Vec<_>>(),
        ["bad"]
    );
    let newest = errors.items.iter().find(|error| error.tool_failed).unwrap();
    assert_eq!(
        (newest.target.as_deref(), newest.trace.as_deref()),
        (Some("add"), Some(TRACE))
    );
    assert!(newest.message.len() < 500, "{}", newest.message.len());

    let recorder = Recorder::default();
    request(&recorder).ended(&Outcome::Result(RawJson::from_static(
        r#"{"content":[{"type":"image"},{"type":"text","text":"no \u001bsuch city"}],"isError":true}"#,
    )));
    request(&recorder).ended(&Outcome::Result(RawJson::from_static(
        r#"{"content":"odd","isError":true}"#,
    )));
    let said = recorder
        .errors(9)
        .items
        .into_iter()
        .map(|error| error.message);
    assert_eq!(
        said.collect::<Vec<_>>(),
        ["the tool did not say why", "no such city"]
    );
}

#[test]
fn errors_say_what_was_asked_for() {
    let recorder = Recorder::default();
    recorder.refused_unread(&Refusal::EncodedBody, Duration::ZERO);
    let long = "x".repeat(10_000);
    request(&recorder).wrote(&error_response(&one(), &RpcError::invalid_params(long)));
    let errors = recorder.errors(10);
    let [newest, oldest] = &errors.items[..] else {
        panic!("{errors:?}")
    };
    assert_eq!(newest.method.as_deref(), Some("tools/call"));
    assert_eq!(newest.target.as_deref(), Some("add"));
    assert_eq!(newest.session.as_deref(), Some("s1"));
    assert_eq!(newest.trace.as_deref(), Some(TRACE));
    assert_eq!(newest.code, code::INVALID_PARAMS);
    assert_eq!(newest.message.chars().count(), 400);
    assert!(newest.at_ms > 1_600_000_000_000);
    assert_eq!(
        (oldest.method.as_deref(), oldest.code),
        (None, code::INVALID_REQUEST)
    );
}

#[test]
fn only_the_newest_are_kept() {
    let recorder = Recorder::default();
    for at in 0..ERRORS + 5 {
        let why = Refusal::BodyTooLarge { limit: at };
        recorder.refused_unread(&why, Duration::ZERO);
        recorder.end_step(at as u64, Gauges::default());
    }
    let errors = recorder.errors(2);
    assert_eq!((errors.items.len(), errors.total), (2, ERRORS));
    assert!(errors.items[0].message.contains(&(ERRORS + 4).to_string()));
    let steps = recorder.steps();
    assert_eq!(
        (steps.len(), steps[STEPS - 1].at),
        (STEPS, (ERRORS + 4) as u64)
    );
}

#[test]
fn what_only_tells_is_not_counted() {
    let recorder = Recorder::default();
    let text = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let body = Body::parse(&text.into(), 16).unwrap();
    assert!(RequestRecord::of(&recorder, Instant::now(), &head(), &body, None).is_none());
}

#[test]
fn a_malformed_trace_is_left_out() {
    for traceparent in [
        "",
        "00",
        "00-xyz-1-1",
        "00-0af7651916cd43dd8448eb211c80319-1-1",
    ] {
        assert_eq!(super::request::trace_id(traceparent), None, "{traceparent}");
    }
}

fn head() -> Parts {
    http::Request::post("/mcp").body(()).unwrap().into_parts().0
}
