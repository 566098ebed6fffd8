pub(crate) mod client;
mod ends;
mod frames;
mod handshake;
mod limits;
mod upgrading;

use serde_json::{Value, json};
use shoal_ports::StreamItem;
use shoal_protocol::Body;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use self::client::{Client, INITIALIZE, server};
use crate::gateway::{LIVE, event, id};

const TOLD: &str = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;

fn told(member: Option<&str>) -> Value {
    let mut told: Value = serde_json::from_str(TOLD).unwrap();
    if let Some(id) = member {
        told["mcpEventId"] = id.into();
    }
    told
}

#[tokio::test]
async fn a_client_without_ids_has_plain_messages_and_a_session_for_its_connection() {
    let server = server(|_| {}).await;
    let mut client = Client::connect(&server, &["mcp"]).await;
    assert_eq!(client.protocol, "mcp");
    let greeting = client.ask(INITIALIZE).await;
    let due = json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-11-25"}});
    assert_eq!(greeting, due);
    let stream = server.gateway.stream().await;
    stream.send(event(1, TOLD)).await.unwrap();
    assert_eq!(client.message().await, told(None));
    client.close().await;
    server.gateway.was_closed(LIVE).await;
    assert_eq!(server.load.single_streams().count(), 0);
}

#[tokio::test]
async fn a_client_with_ids_goes_on_after_the_last_one() {
    let server = server(|_| {}).await;
    let mut client = Client::connect(&server, &["mcp", "mcp.resume"]).await;
    assert_eq!(client.protocol, "mcp.resume");
    let greeting = client.ask(INITIALIZE).await;
    assert_eq!(greeting["mcpSessionId"], LIVE);
    let stream = server.gateway.stream().await;
    stream.send(event(1, TOLD)).await.unwrap();
    assert_eq!(client.message().await, told(Some("1-2-1")));
    drop(client);
    stream.closed().await;

    let named = ["mcp.resume", "mcp.session.live", "mcp.after.1-2-1"];
    let mut client = Client::connect(&server, &named).await;
    let stream = server.gateway.stream().await;
    stream.send(event(2, TOLD)).await.unwrap();
    assert_eq!(client.message().await, told(Some("1-2-2")));
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    assert_eq!(client.ask(PING).await["id"], 7);
    assert_eq!(*server.gateway.cursors.lock(), [None, Some(id(1))]);
    let delivered = server.gateway.delivered.lock().len();
    assert_eq!(delivered, 2);
    assert!(
        server.gateway.closed.borrow().is_empty(),
        "it may come back"
    );
}

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

#[tokio::test]
async fn headers_name_what_to_resume_as_well() {
    let server = server(|_| {}).await;
    let headers = [("mcp-session-id", LIVE), ("last-event-id", "1-2-5")];
    let mut client = Client::connect_with(&server, &["mcp.resume"], &headers)
        .await
        .unwrap();
    let stream = server.gateway.stream().await;
    stream.send(event(6, TOLD)).await.unwrap();
    assert_eq!(client.message().await, told(Some("1-2-6")));
    assert_eq!(*server.gateway.cursors.lock(), [Some(id(5))]);
}

#[tokio::test]
async fn what_the_client_says_arrives_in_its_order() {
    let server = server(|_| {}).await;
    let mut client = Client::opened(&server, &["mcp.resume"]).await;
    let _stream = server.gateway.stream().await;
    let messages = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","id":"ask","result":{}}"#,
    ];
    for message in messages {
        client.send(message).await;
    }
    // The answer proves that earlier messages were handed over.
    assert_eq!(client.ask(PING).await["id"], 7);
    let delivered = server.gateway.delivered.lock();
    let kinds = delivered.iter().map(|(session, body)| {
        assert_eq!(session, LIVE);
        match body {
            Body::Single(shoal_protocol::Message::Request(request)) => request.method.to_string(),
            Body::Single(shoal_protocol::Message::Notification(said)) => said.method.to_string(),
            Body::Single(shoal_protocol::Message::Response(_)) => "response".to_owned(),
            Body::Batch(_) => "batch".to_owned(),
        }
    });
    let kinds: Vec<String> = kinds.collect();
    assert_eq!(
        kinds,
        ["tools/call", "notifications/cancelled", "response", "ping"]
    );
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_the_connection_goes_on() {
    let server = server(|_| {}).await;
    let mut client = Client::opened(&server, &["mcp"]).await;
    for (sent, code) in [("no json", -32700), ("{}", -32600), ("[]", -32600)] {
        let answer = client.ask(sent).await;
        assert_eq!(answer["error"]["code"], code, "{sent}: {answer}");
        assert!(answer.get("id").is_none(), "{answer}");
    }
    let refused = client
        .ask(r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#)
        .await;
    assert_eq!(refused["id"], 3);
    assert_eq!(client.ask(PING).await["id"], 7);
}

#[tokio::test]
async fn the_first_message_is_initialize_and_not_of_the_modern_era() {
    let server = server(|_| {}).await;
    let mut client = Client::connect(&server, &["mcp"]).await;
    let refused = client.ask(PING).await;
    let due = "the session is not open yet; send initialize first";
    assert_eq!(refused["error"]["message"], due);
    let modern = json!({"jsonrpc": "2.0", "id": 8, "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let refused = client.ask(&modern.to_string()).await;
    assert_eq!(refused["error"]["code"], -32022, "{refused}");
    let supported = &refused["error"]["data"]["supported"];
    assert_eq!(supported[0], "2025-11-25");
    assert!(!supported.as_array().unwrap().contains(&"2026-07-28".into()));
    assert_eq!(client.ask(INITIALIZE).await["id"], 0);
}

#[tokio::test]
async fn an_opening_that_fails_is_told_and_may_be_tried_again() {
    let server = server(|_| {}).await;
    let error = shoal_ports::GatewayError::Internal("a lock was poisoned".into());
    *server.gateway.opening.lock() = Some(error);
    let mut client = Client::connect(&server, &["mcp"]).await;
    let refused = client.ask(INITIALIZE).await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(0), &json!(-32603))
    );
    *server.gateway.opening.lock() = None;
    assert_eq!(
        client.ask(INITIALIZE).await["result"]["protocolVersion"],
        "2025-11-25"
    );
}

#[tokio::test]
async fn messages_in_passing_have_no_id_and_ids_without_a_message_are_not_told() {
    let server = server(|_| {}).await;
    let mut client = Client::opened(&server, &["mcp.resume"]).await;
    let stream = server.gateway.stream().await;
    stream.send(StreamItem::Prime { id: id(3) }).await.unwrap();
    let data = bytes::Bytes::from_static(TOLD.as_bytes());
    stream.send(StreamItem::Passing { data }).await.unwrap();
    assert_eq!(client.message().await, told(None));
}

#[tokio::test]
async fn a_message_of_any_length_arrives_whole() {
    let server = server(|_| {}).await;
    let mut client = Client::opened(&server, &["mcp.resume"]).await;
    let stream = server.gateway.stream().await;
    for length in [1, 64 << 10, 65 << 10, 300 << 10] {
        // A two-byte character may span two frames.
        let text = "é".repeat(length);
        let data = json!({ "jsonrpc": "2.0", "method": "m", "params": { "text": text } });
        let data = data.to_string().into();
        stream
            .send(StreamItem::Event { id: id(1), data })
            .await
            .unwrap();
        let message = client.message().await;
        assert_eq!(message["params"]["text"], text);
        assert_eq!(message["mcpEventId"], "1-2-1");
    }
}

#[tokio::test]
async fn a_session_of_streamable_http_stays_there() {
    let server = upgrading::start(|config| config.endpoint.websocket = true).await;
    let mut client = Client::connect(&server, &["mcp.resume", "mcp.session.live"]).await;
    let _standalone = server.gateway.stream().await;
    client
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#)
        .await;
    let (code, reason) = client.closed().await;
    assert_eq!(code, CloseCode::Policy);
    assert!(reason.contains("Streamable HTTP"), "{reason}");
}
