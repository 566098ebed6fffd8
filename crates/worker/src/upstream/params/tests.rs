use std::sync::Arc;

use shoal_ports::{Call, CallId, Caller, ForwardedHeaders, LogFilter, MayStart, Principal, Repeat};
use shoal_protocol::{Era, LogLevel, Method, RawJson, Revision, TraceContext};

use super::{for_server, restore_token};
use crate::upstream::greeting::Greeting;

fn call(params: Option<&'static str>) -> Call {
    Call {
        id: CallId::generate(),
        method: Method::ToolsCall,
        params: params.map(RawJson::from_static),
        caller: Arc::new(Caller {
            principal: Principal::anonymous(),
            session: None,
            revision: Revision::LATEST,
            client_info: None,
            capabilities: RawJson::from_static(r#"{"roots":{}}"#),
            headers: ForwardedHeaders::default(),
            grant: None,
        }),
        progress_token: None,
        log: LogFilter::Off,
        deadline: tokio::time::Instant::now(),
        trace: None,
        binding: None,
        may_start: MayStart::Yes,
        epoch: None,
        repeat: Repeat::Never,
    }
}

fn rewritten(call: &Call, era: Era) -> String {
    let server = Greeting {
        era,
        ..Greeting::NONE
    };
    let params = for_server(call, &server, 7);
    params
        .map(|params| params.as_str().to_owned())
        .unwrap_or_default()
}

#[test]
fn what_concerns_nobody_else_keeps_its_bytes() {
    let text = r#"{"name":"t","arguments":{ "n":1.0, "big":123456789012345678901 },"_meta":{"x/y":[ 1 ]}}"#;
    assert_eq!(rewritten(&call(Some(text)), Era::Legacy), text);
    assert_eq!(rewritten(&call(None), Era::Legacy), "");
}

#[test]
fn a_legacy_process_sees_nothing_modern() {
    let text = r#"{"name":"t","requestState":"s","inputResponses":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"v","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"}}"#;
    assert_eq!(rewritten(&call(Some(text)), Era::Legacy), r#"{"name":"t"}"#);
}

#[test]
fn a_modern_process_is_told_of_the_caller() {
    let mut call = call(Some(r#"{"name":"t","_meta":{"a":1}}"#));
    call.log = LogFilter::AtLeast(LogLevel::Error);
    call.trace = TraceContext::parse(
        "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
        Some("vendor=1"),
    );
    assert_eq!(
        rewritten(&call, Era::Modern),
        r#"{"name":"t","_meta":{"a":1,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01","tracestate":"vendor=1","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/logLevel":"error"}}"#
    );
}

#[test]
fn a_progress_token_is_replaced_or_removed_also_where_it_hides() {
    let text = r#"{"_meta":{"a":1},"n":2,"_meta":{"progressToken":3,"progressToken":4}}"#;
    let mut call = call(Some(text));
    assert_eq!(rewritten(&call, Era::Legacy), r#"{"n":2}"#);
    call.progress_token = Some(RawJson::from_static("4"));
    assert_eq!(
        rewritten(&call, Era::Legacy),
        r#"{"n":2,"_meta":{"progressToken":7}}"#
    );
}

#[test]
fn what_comes_back_is_as_the_caller_knows_it() {
    let progress = RawJson::from_static(r#"{"progressToken":7,"progress":0.50}"#);
    let restored = restore_token(&progress, RawJson::from_static("\"mine\""));
    assert_eq!(
        restored.as_str(),
        r#"{"progressToken":"mine","progress":0.50}"#
    );
}
