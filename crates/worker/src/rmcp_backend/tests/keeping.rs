use std::sync::Arc;

use futures::FutureExt as _;
use serde_json::{Value, json};
use shoal_demo::DemoServer;
use shoal_ports::{
    AskId, Attach, Call, CallEventKind, RunningCall, SessionId, StateRequest, Worker as _,
};
use shoal_protocol::{Outcome, RawJson, RpcError};

use super::client::{Client, Said, ended, result, said, text};

fn call(client: &Client<DemoServer>, tool: &str, arguments: Value) -> Call {
    let mut call = client.tool(tool, arguments);
    Arc::get_mut(&mut call.caller)
        .expect("nobody else has the caller yet")
        .session = Some(SessionId::new("session"));
    call
}

async fn asked(running: &mut RunningCall) -> (AskId, StateRequest) {
    match said(running).await {
        Said::Kept(ask, request) => (ask, request),
        other => panic!("expected a request to the session, got {other:?}"),
    }
}

async fn numbered(running: &mut RunningCall) -> (u64, AskId, StateRequest) {
    let event = running.events.next().await.expect("the call goes on");
    match event.kind {
        CallEventKind::State { ask, request } => (event.sequence, ask, request),
        other => panic!("expected a request to the session, got {other:?}"),
    }
}

fn answer(running: &RunningCall, ask: AskId, outcome: Outcome) {
    let open = running.control.answer(ask, outcome).now_or_never();
    assert_eq!(open, Some(true), "the request is open");
}

fn ok(json: &'static str) -> Outcome {
    Outcome::Result(RawJson::from_static(json))
}

#[tokio::test]
async fn what_is_remembered_is_written_and_what_is_recalled_is_read() {
    let client = Client::of(DemoServer::new()).await;
    let remember = call(&client, "remember", json!({ "key": "k", "value": "v" }));
    let mut running = client.start(remember).await;
    let (ask, request) = asked(&mut running).await;
    let StateRequest::Set { key, value, .. } = request else {
        panic!("{request:?}")
    };
    assert_eq!((key, value), ("k".to_owned(), Some(RawJson::of("v"))));
    answer(&running, ask, ok("{}"));
    assert_eq!(text(&ended(&mut running).await), "remembered k");

    for (answered, expected) in [
        (r#"{"value":"v"}"#, "v"),
        ("{}", "nothing is remembered by k"),
    ] {
        let recall = call(&client, "recall", json!({ "key": "k" }));
        let mut running = client.start(recall).await;
        let (ask, request) = asked(&mut running).await;
        assert_eq!(
            request,
            StateRequest::Get {
                key: "k".to_owned()
            }
        );
        answer(&running, ask, ok(answered));
        assert_eq!(text(&ended(&mut running).await), expected);
    }
}

#[tokio::test]
async fn a_refusal_reaches_the_tool_and_tells_why() {
    let client = Client::of(DemoServer::new()).await;
    let remember = call(&client, "remember", json!({ "key": "k", "value": "v" }));
    let mut running = client.start(remember).await;
    let (ask, _) = asked(&mut running).await;
    let full = RpcError::invalid_request("the session is full");
    answer(&running, ask, Outcome::Error(full));
    let ended = ended(&mut running).await;
    assert_eq!(text(&ended), "the session is full");
    assert_eq!(result(&ended)["isError"], true);
}

#[tokio::test]
async fn without_a_session_or_with_a_bad_key_nobody_is_asked() {
    let client = Client::of(DemoServer::new()).await;
    let text_of = client
        .text("remember", json!({ "key": "k", "value": "v" }))
        .await;
    assert!(text_of.contains("an explicit handle instead"), "{text_of}");
    let nameless = call(&client, "recall", json!({ "key": "" }));
    let mut running = client.start(nameless).await;
    let refused = text(&ended(&mut running).await);
    assert!(refused.contains("must not be empty"), "{refused}");
}

#[tokio::test]
async fn a_request_that_was_seen_and_not_answered_comes_again() {
    let client = Client::of(DemoServer::new()).await;
    let remember = call(&client, "remember", json!({ "key": "k", "value": "v" }));
    let id = remember.id;
    let mut first = client.start(remember).await;
    let (seen, ask, request) = numbered(&mut first).await;
    // Attaches like a session's next owner, whose predecessor was lost before it answered.
    let mut second = client
        .worker
        .attach(Attach::new(id, seen))
        .await
        .expect("it runs");
    let (number, again, repeated) = numbered(&mut second).await;
    assert_eq!((again, &repeated), (ask, &request), "the very same");
    assert!(number > seen);
    assert_eq!(
        first.control.answer(ask, ok("{}")).now_or_never(),
        Some(false)
    );
    answer(&second, ask, ok("{}"));
    let mut third = client
        .worker
        .attach(Attach::new(id, number))
        .await
        .expect("it is known");
    assert_eq!(text(&ended(&mut third).await), "remembered k");
}
