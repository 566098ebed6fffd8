use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use rmcp::ServerHandler;
use rmcp::model::{InitializeRequestParams, RequestId};
use rmcp::service::{RequestContext, serve_directly};
use serde_json::json;
use shoal_ports::{CallOutcome, SessionId, StateRequest};
use shoal_protocol::{Outcome, RawJson, TraceContext};
use tokio::time::Instant;

use super::client::{Client, Said, ended, said, text};
use super::probe::Probe;
use crate::RequestContextExt as _;

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test(start_paused = true)]
async fn a_handler_finds_all_that_shoal_knows_of_its_call() {
    let client = Client::of(Probe::default()).await;
    let mut call = client.tool_for("known", |caller| {
        caller.session = Some(SessionId::new("session"));
    });
    call.deadline = Instant::now() + Duration::from_secs(9);
    call.trace = TraceContext::parse(TRACEPARENT, None);
    let mut running = client.start(call).await;
    let Said::Told(_, progress) = said(&mut running).await else {
        panic!("no progress")
    };
    let expected =
        json!({ "progressToken": "t", "progress": 1.0, "total": 2.0, "message": "half" });
    assert_eq!(progress, expected);
    for (key, answered) in [("get", r#"{"value":41}"#), ("set", "{}")] {
        let Said::Kept(ask, request) = said(&mut running).await else {
            panic!("no {key}")
        };
        match request {
            StateRequest::Get { .. } => assert_eq!(key, "get"),
            StateRequest::Set { value, .. } => assert_eq!(value, Some(RawJson::of(&42))),
            StateRequest::Keys => panic!("nobody asks for keys"),
        }
        let answer = Outcome::Result(RawJson::from_static(answered));
        let open = running.control.answer(ask, answer).now_or_never();
        assert_eq!(open, Some(true));
    }
    let told = text(&ended(&mut running).await);
    assert_eq!(told, format!("9 s left, Some({TRACEPARENT:?}), 41"));
}

#[tokio::test]
async fn a_refusal_of_the_session_is_an_error_of_the_handlers_kind() {
    let client = Client::of(Probe::default()).await;
    match client.call("known", json!({})).await {
        CallOutcome::Error(error) => {
            assert!(error.message.contains("explicit handle"), "{error:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn elsewhere_there_is_nothing_to_know() {
    struct Nothing;
    impl ServerHandler for Nothing {}
    let (ours, _theirs) = tokio::io::duplex(64);
    let service = serve_directly(Arc::new(Nothing), ours, None::<InitializeRequestParams>);
    let ctx = RequestContext::new(RequestId::Number(1), service.peer().clone());
    assert_eq!((ctx.principal(), ctx.deadline()), (None, None));
    assert_eq!(ctx.trace_context(), None);
    ctx.report_progress(1.0, None, None).await;
    let refused = ctx.session().keys().await.unwrap_err();
    assert!(
        refused.message.contains("Shoal does not run"),
        "{refused:?}"
    );
}
