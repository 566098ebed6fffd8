use reqwest::Method;
use serde_json::json;
use shoal_ports::StreamItem;

use crate::gateway::{LIVE, event, id};
use crate::server::{Server, rpc};
use crate::sse::Events;

async fn open(server: &Server) -> Events {
    let request = server
        .request(Method::GET, "/sse")
        .header("accept", "text/event-stream");
    Events::of(request.send().await.unwrap())
}

#[tokio::test]
async fn the_first_event_says_where_to_post() {
    let server = Server::with(|config| {
        config.endpoint.public_base = "/tools/".into();
    })
    .await;
    let mut events = open(&server).await;
    let endpoint = "event: endpoint\ndata: /tools/messages?sessionId=live";
    assert_eq!(events.block().await.unwrap(), endpoint);
}

#[tokio::test]
async fn the_stream_is_opened_whatever_the_client_accepts() {
    let server = Server::start().await;
    for accept in [None, Some("*/*"), Some("application/json"), Some("")] {
        let get = server.request(Method::GET, "/sse");
        let get = match accept {
            Some(accept) => get.header("accept", accept),
            None => get,
        };
        let mut events = Events::of(get.send().await.unwrap());
        let first = events.block().await.unwrap();
        assert!(first.starts_with("event: endpoint"), "{accept:?}: {first}");
    }
}

#[tokio::test]
async fn messages_go_in_by_post_and_come_out_on_the_stream() {
    let server = Server::start().await;
    let mut events = open(&server).await;
    let stream = server.gateway.stream().await;
    let endpoint = events.block().await.unwrap();
    let path = endpoint.split("data: ").nth(1).unwrap();
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let posted = server
        .request(Method::POST, path)
        .header("content-type", "application/json")
        .body(notification.to_string());
    assert_eq!(posted.send().await.unwrap().status(), 202);
    stream.send(StreamItem::Prime { id: id(0) }).await.unwrap();
    stream.send(event(1, r#"{"a":1}"#)).await.unwrap();
    assert_eq!(
        events.block().await.unwrap(),
        "event: message\ndata: {\"a\":1}"
    );
    let data = bytes::Bytes::from_static(br#"{"b":2}"#);
    stream.send(StreamItem::Passing { data }).await.unwrap();
    assert_eq!(
        events.block().await.unwrap(),
        "event: message\ndata: {\"b\":2}"
    );
}

#[tokio::test]
async fn a_refused_message_is_told_why() {
    let server = Server::start().await;
    let posted = server
        .request(Method::POST, "/messages?sessionId=unknown")
        .header("content-type", "application/json")
        .body(rpc("ping", &json!({})).to_string());
    let answer = posted.send().await.unwrap();
    assert_eq!(answer.status(), 404);
    assert!(answer.text().await.unwrap().contains(r#""id":7"#));
}

#[tokio::test]
async fn the_session_ends_with_the_stream() {
    let server = Server::start().await;
    let events = open(&server).await;
    drop(events);
    server.gateway.was_closed(LIVE).await;
}
