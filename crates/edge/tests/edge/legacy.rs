use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use serde_json::json;
use shoal_ports::{StreamItem, WorkerId};
use shoal_protocol::Body;

use crate::gateway::{CUT_OFF, LIVE, event, id};
use crate::server::{Server, header, rpc};
use crate::sse::Events;

#[tokio::test]
async fn initialize_opens_a_session() {
    let server = Server::start().await;
    let body = rpc("initialize", &json!({"protocolVersion": "2025-11-25"}));
    let answer = server.post(body.to_string()).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(header(&answer, "mcp-session-id"), LIVE);
    assert_eq!(header(&answer, "content-type"), "application/json");
    assert!(answer.text().await.unwrap().contains("protocolVersion"));
}

#[tokio::test]
async fn what_becomes_of_a_message_decides_the_answer() {
    let server = Server::start().await;
    let request = server
        .legacy(&rpc("ping", &json!({})))
        .send()
        .await
        .unwrap();
    assert_eq!(request.status(), 200);
    assert_eq!(header(&request, "content-length"), "36");
    assert_eq!(
        request.text().await.unwrap(),
        r#"{"jsonrpc":"2.0","id":7,"result":{}}"#
    );

    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let accepted = server.legacy(&notification).send().await.unwrap();
    assert_eq!(accepted.status(), 202);
    assert_eq!(accepted.text().await.unwrap(), "");

    let batch = server.legacy(&json!([notification])).send().await.unwrap();
    assert_eq!(batch.status(), 200);
    assert!(matches!(
        server.gateway.delivered.lock()[2].1,
        Body::Batch(_)
    ));
}

#[tokio::test]
async fn a_stream_carries_ids_and_hints() {
    let server = Server::start().await;
    let answer = server
        .legacy(&rpc("tools/call", &json!({})))
        .send()
        .await
        .unwrap();
    let stream = server.gateway.stream().await;
    let mut events = Events::of(answer);
    let retry = Duration::from_millis(500);
    stream.send(StreamItem::Prime { id: id(0) }).await.unwrap();
    assert_eq!(events.block().await.unwrap(), "id: 1-2-0\ndata: ");
    stream.send(event(1, r#"{"a":1}"#)).await.unwrap();
    assert_eq!(
        events.block().await.unwrap(),
        "event: message\nid: 1-2-1\ndata: {\"a\":1}"
    );
    let data = Bytes::from_static(br#"{"b":2}"#);
    stream.send(StreamItem::Passing { data }).await.unwrap();
    assert_eq!(
        events.block().await.unwrap(),
        "event: message\ndata: {\"b\":2}",
        "no id"
    );
    assert_eq!(server.load.requests_in_flight(), 1);
    stream.send(StreamItem::Retry(retry)).await.unwrap();
    assert_eq!(events.block().await.unwrap(), "retry: 500");
    assert_eq!(events.block().await, None);
}

#[tokio::test]
async fn a_stream_ends_with_its_channel() {
    let server = Server::start().await;
    let answer = server
        .legacy(&rpc("tools/call", &json!({})))
        .send()
        .await
        .unwrap();
    let stream = server.gateway.stream().await;
    stream.send(event(1, "{}")).await.unwrap();
    drop(stream);
    let mut events = Events::of(answer);
    assert!(events.block().await.is_some());
    assert_eq!(events.block().await, None);
}

#[tokio::test]
async fn a_get_listens_and_resumes() {
    let server = Server::start().await;
    let _standalone = Events::of(server.listen().send().await.unwrap());
    let resumed = server.listen().header("last-event-id", "1-2-ff").send();
    let mut resumed = Events::of(resumed.await.unwrap());
    assert_eq!(*server.gateway.cursors.lock(), [None, Some(id(0xff))]);
    assert_eq!(server.load.open_streams(), 2);
    let _first = server.gateway.stream().await;
    server
        .gateway
        .stream()
        .await
        .send(event(256, "{}"))
        .await
        .unwrap();
    assert_eq!(
        resumed.block().await.unwrap(),
        "event: message\nid: 1-2-100\ndata: {}"
    );
}

#[tokio::test]
async fn an_event_id_of_another_server_listens_from_now_on() {
    let server = Server::start().await;
    for foreign in [
        "0",
        "from the beginning",
        "6f1c8d1e_17_x",
        "\u{fc}",
        "1-2-3-4",
    ] {
        let mut listen = server.listen().build().unwrap();
        let value = http::HeaderValue::from_bytes(foreign.as_bytes()).unwrap();
        listen.headers_mut().insert("last-event-id", value);
        let answer = reqwest::Client::new().execute(listen).await.unwrap();
        assert_eq!(answer.status(), 200, "{foreign}");
        assert_eq!(server.gateway.cursors.lock().pop(), Some(None), "{foreign}");
    }
}

#[tokio::test]
async fn leaving_detaches_and_cancels_nothing() {
    let server = Server::start().await;
    let answer = server
        .legacy(&rpc("tools/call", &json!({})))
        .send()
        .await
        .unwrap();
    let stream = server.gateway.stream().await;
    drop(answer);
    stream.closed().await;
    assert!(server.dispatcher.cancelled.borrow().is_empty());
    assert!(server.gateway.closed.borrow().is_empty());
}

#[tokio::test]
async fn delete_ends_the_session() {
    let server = Server::start().await;
    let request = server
        .request(Method::DELETE, "/mcp")
        .header("mcp-session-id", LIVE);
    assert_eq!(request.send().await.unwrap().status(), 204);
    server.gateway.was_closed(LIVE).await;
}

/// The session's owner plans all requests, and chooses workers for those that the edge has not bound.
#[tokio::test]
async fn a_request_that_runs_once_is_bound_before_it_goes_to_its_session() {
    let server = Server::start().await;
    let call = |tool: &str| rpc("tools/call", &json!({ "name": tool }));
    let list = rpc("tools/list", &json!({}));
    let batch = json!([call("write")]);
    let bodies = ["write", "echo", "nobody"].map(call);
    for body in bodies.iter().chain([&list, &batch]) {
        server.legacy(body).send().await.unwrap();
    }
    let bindings = std::mem::take(&mut *server.gateway.bindings.lock());
    let workers = bindings.iter().map(|(_, worker)| worker.clone());
    let bound = Some(WorkerId::new("w"));
    assert_eq!(Vec::from_iter(workers), [bound, None, None, None, None]);
    assert!(
        server.dispatcher.calls.lock().is_empty(),
        "none is started here"
    );
}

/// The session's node has not sent the call, so the edge binds the call to another worker, and at last leaves the
/// choice to the session's owner.
#[tokio::test]
async fn a_call_that_its_sessions_node_cannot_start_is_bound_anew() {
    let server = Server::start().await;
    let body = rpc("tools/call", &json!({ "name": "write" }));
    let request = server.post(body.to_string());
    let answered = request.header("mcp-session-id", CUT_OFF).send();
    let (answer, stream) = tokio::join!(answered, server.gateway.stream());
    assert_eq!(answer.unwrap().status(), 200);
    drop(stream);
    let bindings = std::mem::take(&mut *server.gateway.bindings.lock());
    let workers = bindings.iter().map(|(_, worker)| worker.clone());
    let bound = ["w", "w2"].map(|worker| Some(WorkerId::new(worker)));
    let [first, second] = bound;
    assert_eq!(Vec::from_iter(workers), [first, second, None]);
    assert!((bindings.iter()).all(|(delivery, _)| *delivery == bindings[0].0));
}

/// The edge acknowledges only whole answers. The session's owner acknowledges streams.
#[tokio::test]
async fn an_answer_that_is_whole_is_acknowledged_to_the_worker() {
    let server = Server::start().await;
    let call = rpc("tools/call", &json!({ "name": "write" }));
    let (answer, stream) = tokio::join!(server.legacy(&call).send(), server.gateway.stream());
    drop((answer.unwrap(), stream));
    let short = rpc("prompts/get", &json!({ "name": "write" }));
    assert_eq!(server.legacy(&short).send().await.unwrap().status(), 200);
    let (delivery, _) = server.gateway.bindings.lock()[1].clone();
    let acknowledged = server.dispatcher.acknowledged.lock();
    assert_eq!(*acknowledged, [(WorkerId::new("w"), delivery.into())]);
}
