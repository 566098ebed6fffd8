use reqwest::Method;
use serde_json::{Value, json};
use shoal_edge::EdgeConfig;
use shoal_ports::{QuotaConfig, QuotaPer};

use tokio::time::timeout;

use crate::gateway::event;
use crate::server::{Server, rpc};
use crate::sse::Events;
use crate::websocket::client::{self, Client, SOON};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;

fn one_at_a_time(config: &mut EdgeConfig) {
    config.quotas.push(QuotaConfig {
        name: "one".to_owned(),
        per: QuotaPer::All,
        tools: Vec::new(),
        rate: None,
        burst: None,
        concurrent: Some(1),
    });
}

fn call() -> Value {
    rpc("tools/call", &json!({"name": "echo", "arguments": {}}))
}

fn answer() -> Value {
    serde_json::from_str(ANSWER).unwrap()
}

#[tokio::test]
async fn with_an_answer_that_is_all_json() {
    let server = Server::with(one_at_a_time).await;
    for _ in 0..2 {
        let mut call = server.legacy(&call()).build().unwrap();
        let json = "application/json".parse().unwrap();
        call.headers_mut().insert("accept", json);
        let answering = async {
            let stream = server.gateway.stream().await;
            stream.send(event(1, ANSWER)).await.unwrap();
        };
        let sent = reqwest::Client::new();
        let called = async { tokio::join!(sent.execute(call), answering).0 };
        let response = timeout(SOON, called).await.unwrap().unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.json::<Value>().await.unwrap(), answer());
    }
}

#[tokio::test]
async fn with_an_answer_over_websocket() {
    let server = client::server(one_at_a_time).await;
    let mut client = Client::opened(&server, &["mcp"]).await;
    let stream = server.gateway.stream().await;
    let list = rpc("tools/list", &json!({}));
    for (posted, request) in (1..).zip([call(), list.clone(), list, call()]) {
        client.send(&request.to_string()).await;
        let came = server.gateway.has_requests(posted);
        timeout(SOON, came).await.unwrap();
        let answered = event(posted.try_into().unwrap(), ANSWER);
        stream.send(answered).await.unwrap();
        assert_eq!(client.message().await, answer());
    }
}

#[tokio::test]
async fn with_an_answer_over_http_sse() {
    let server = Server::with(one_at_a_time).await;
    let opening = server.request(Method::GET, "/sse");
    let opening = opening.header("accept", "text/event-stream");
    let mut events = Events::of(opening.send().await.unwrap());
    let stream = server.gateway.stream().await;
    events.block().await.unwrap();
    for sequence in 1..=2 {
        let posted = server
            .request(Method::POST, "/messages?sessionId=live")
            .header("content-type", "application/json")
            .body(call().to_string());
        assert_eq!(posted.send().await.unwrap().status(), 202);
        let answered = event(sequence, ANSWER);
        stream.send(answered).await.unwrap();
        assert_eq!(events.message().await, answer());
    }
}
