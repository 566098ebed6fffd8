use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use shoal_ports::StreamItem;

use crate::gateway::{LIVE, event, id};
use crate::server::{Server, rpc};
use crate::sse::Events;

fn wait_of(block: &str) -> u64 {
    block.strip_prefix("retry: ").unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_standalone_stream_ends_with_a_hint() {
    let server = Server::start().await;
    let mut events = Events::of(server.listen().send().await.unwrap());
    let stream = server.gateway.stream().await;
    stream.send(event(1, "{}")).await.unwrap();
    server.drain.cancel();
    assert!(
        events
            .block()
            .await
            .unwrap()
            .starts_with("event: message\nid: ")
    );
    let wait = wait_of(&events.block().await.unwrap());
    assert!((1000..=5000).contains(&wait), "{wait}");
    assert_eq!(events.block().await, None);
    stream.closed().await;
}

#[tokio::test]
async fn a_primed_call_is_resumed_elsewhere_and_an_unprimed_one_finishes_here() {
    let server = Server::start().await;
    let call = rpc("tools/call", &json!({}));
    let mut primed = Events::of(server.legacy(&call).send().await.unwrap());
    let feed_primed = server.gateway.stream().await;
    let mut unprimed = Events::of(server.legacy(&call).send().await.unwrap());
    let feed_unprimed = server.gateway.stream().await;
    feed_primed
        .send(StreamItem::Prime { id: id(0) })
        .await
        .unwrap();
    server.drain.cancel();
    primed.block().await.unwrap();
    // Short, because the client has already waited for its share of the spread.
    assert_eq!(wait_of(&primed.block().await.unwrap()), 10);
    assert_eq!(primed.block().await, None);

    feed_unprimed.send(event(1, r#"{"id":7}"#)).await.unwrap();
    assert!(unprimed.block().await.unwrap().contains(r#"{"id":7}"#));
    drop(feed_unprimed);
    assert_eq!(unprimed.block().await, None);
}

#[tokio::test]
async fn a_primed_call_of_a_client_that_never_resumes_is_answered_here() {
    let call = rpc("tools/call", &json!({}));
    for agent in ["Java-http-client/17.0.15", "ReactorNetty/1.3.6"] {
        let server = Server::start().await;
        let post = || server.legacy(&call).header("user-agent", agent);
        let mut finishes = Events::of(post().send().await.unwrap());
        let feed_finishes = server.gateway.stream().await;
        let mut outlasts = Events::of(post().send().await.unwrap());
        let feed_outlasts = server.gateway.stream().await;
        for feed in [&feed_finishes, &feed_outlasts] {
            let prime = StreamItem::Prime { id: id(0) };
            feed.send(prime).await.unwrap();
        }
        finishes.block().await.unwrap();
        outlasts.block().await.unwrap();
        server.drain.cancel();
        feed_finishes.send(event(1, r#"{"id":7}"#)).await.unwrap();
        assert!(finishes.block().await.unwrap().contains(r#"{"id":7}"#));
        drop(feed_finishes);
        assert_eq!(finishes.block().await, None);

        feed_outlasts.send(event(1, "{}")).await.unwrap();
        outlasts.block().await.unwrap();
        server.load.end_waits();
        assert_eq!(outlasts.message().await["id"], call["id"]);
        assert_eq!(outlasts.block().await, None);
        feed_outlasts.closed().await;
    }
}

#[tokio::test]
async fn an_unprimed_call_that_outlasts_the_drain_is_answered_or_resumed_by_an_id() {
    let server = Server::start().await;
    let call = rpc("tools/call", &json!({}));
    let mut silent = Events::of(server.legacy(&call).send().await.unwrap());
    let feed_silent = server.gateway.stream().await;
    let mut told = Events::of(server.legacy(&call).send().await.unwrap());
    let feed_told = server.gateway.stream().await;
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    feed_told.send(event(1, progress)).await.unwrap();
    assert!(told.block().await.unwrap().contains(progress));
    server.drain.cancel();
    server.load.end_waits();

    let answer = silent.message().await;
    assert_eq!(answer["id"], call["id"]);
    let code = answer["error"]["code"].as_i64().unwrap();
    assert!([50002, 50301].contains(&code), "{answer}");
    assert_eq!(silent.block().await, None);
    feed_silent.closed().await;

    assert_eq!(wait_of(&told.block().await.unwrap()), 10);
    assert_eq!(told.block().await, None);
    feed_told.closed().await;
}

/// The edge binds the call of `write`, and the session's owner chooses a worker for `nobody`. Only
/// `echo` is safe to repeat.
#[tokio::test]
async fn only_a_call_that_is_safe_to_repeat_is_not_executed_when_its_answer_is_cut_off() {
    for (tool, code) in [("write", 50002), ("nobody", 50002), ("echo", 50301)] {
        let server = Server::start().await;
        let call = rpc("tools/call", &json!({ "name": tool }));
        let mut silent = Events::of(server.legacy(&call).send().await.unwrap());
        let feed = server.gateway.stream().await;
        server.drain.cancel();
        server.load.end_waits();
        let answer = silent.message().await;
        assert_eq!(answer["error"]["code"], code, "{tool}: {answer}");
        feed.closed().await;
    }
}

#[tokio::test]
async fn a_call_that_ends_soon_is_answered_before_its_client_is_sent_away() {
    let hour = Duration::from_secs(3600);
    let server = Server::with(|config| config.streams.retry = hour.into()).await;
    server.drain.cancel();
    let call = rpc("tools/call", &json!({}));
    let mut posted = Events::of(server.legacy(&call).send().await.unwrap());
    let to_post = server.gateway.stream().await;
    let from = server.listen().header("last-event-id", id(1).to_string());
    let mut resumed = Events::of(from.send().await.unwrap());
    let to_resumed = server.gateway.stream().await;
    to_post.send(StreamItem::Prime { id: id(0) }).await.unwrap();
    posted.block().await.unwrap();
    for (stream, events) in [(to_post, &mut posted), (to_resumed, &mut resumed)] {
        stream.send(event(2, r#"{"id":7}"#)).await.unwrap();
        assert!(events.block().await.unwrap().contains(r#"{"id":7}"#));
        drop(stream);
        assert_eq!(events.block().await, None);
    }
}

#[tokio::test]
async fn a_modern_call_finishes() {
    let server = Server::start().await;
    let mut events = Events::of(server.tool("played").send().await.unwrap());
    server.drain.cancel();
    server.dispatcher.call().await.finish("{}").await;
    assert_eq!(events.message().await["id"], 7);
}

#[tokio::test]
async fn an_http_sse_stream_ends_when_it_is_told() {
    let server = Server::start().await;
    let request = server
        .request(Method::GET, "/sse")
        .header("accept", "text/event-stream");
    let mut events = Events::of(request.send().await.unwrap());
    let stream = server.gateway.stream().await;
    events.block().await.unwrap();
    let open = server.load.single_streams().open();
    assert_eq!(open.len(), 1);
    server.drain.cancel();
    for sequence in [1, 2] {
        stream.send(event(sequence, "{}")).await.unwrap();
        assert_eq!(events.block().await.unwrap(), "event: message\ndata: {}");
    }
    let open = server.load.single_streams().open();
    let (session, passed) = &open[0];
    assert_eq!(*passed, id(2));
    server.load.single_streams().end(session);
    wait_of(&events.block().await.unwrap());
    assert_eq!(events.block().await, None);
    server.gateway.was_closed(LIVE).await;
    assert_eq!(server.load.single_streams().count(), 0);
}

#[tokio::test]
async fn requests_are_answered() {
    let server = Server::start().await;
    server.drain.cancel();
    let answer = server.tool("echo").send().await.unwrap();
    assert_eq!(answer.status(), 200);
}

fn calls(server: &Server) -> Vec<reqwest::RequestBuilder> {
    let call = rpc("tools/call", &json!({"name": "echo"}));
    let to_stream = server
        .request(Method::POST, "/messages?sessionId=live")
        .header("content-type", "application/json");
    vec![
        server.tool("echo"),
        server.modern("resources/read", json!({"uri": "file:///a"})),
        server.legacy(&call),
        server.legacy(&json!([call])),
        to_stream.body(call.to_string()),
    ]
}

#[tokio::test]
async fn a_call_that_comes_too_late_to_end_is_refused_and_nothing_else_is() {
    let server = Server::start().await;
    server.load.stop_calls();
    for call in calls(&server) {
        let answer = call.send().await.unwrap();
        assert_eq!(answer.status(), 503);
        assert!(answer.headers().contains_key("retry-after"), "{answer:?}");
        let body: serde_json::Value = answer.json().await.unwrap();
        assert_eq!(body["error"]["code"], 50_301, "{body}");
    }
    assert!(server.gateway.delivered.lock().is_empty());
    assert!(server.dispatcher.calls.lock().is_empty());
    let list = server.modern("tools/list", json!({})).send().await.unwrap();
    assert_eq!(list.status(), 200);
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let answer = server.legacy(&answer).send().await.unwrap();
    assert_eq!(answer.status(), 202);
}
