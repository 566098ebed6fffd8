use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use shoal_testkit::cluster::{Builder, Cluster, Member};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::client::{SOON, progress_of, text_of, within};
use crate::{small, start};

struct Client {
    socket: WebSocketStream<TcpStream>,
    session: String,
    last: String,
}

enum Heard {
    Message(Value),
    Closed(Option<CloseCode>),
}

fn with_websocket() -> Builder {
    small().setting("server.websocket", "true")
}

async fn connect(edge: &Member, protocols: &str) -> WebSocketStream<TcpStream> {
    let url = edge.mcp_url().unwrap().replacen("http://", "ws://", 1);
    let mut request = url.into_client_request().unwrap();
    let host = request.uri().authority().unwrap().to_string();
    let offered = protocols.parse().unwrap();
    request
        .headers_mut()
        .insert("sec-websocket-protocol", offered);
    let stream = TcpStream::connect(host).await.unwrap();
    let connected = client_async(request, stream);
    within(connected).await.unwrap().0
}

impl Client {
    async fn open(edge: &Member) -> Self {
        let mut client = Self {
            socket: connect(edge, "mcp.resume").await,
            session: String::new(),
            last: String::new(),
        };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" },
        });
        client
            .send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))
            .await;
        let greeting = client.message().await;
        client.session = greeting["mcpSessionId"].as_str().unwrap().to_owned();
        client
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        client
    }

    async fn at(self, edge: &Member) -> Self {
        let Self { session, last, .. } = self;
        let protocols = format!("mcp.resume, mcp.session.{session}, mcp.after.{last}");
        Self {
            socket: connect(edge, &protocols).await,
            session,
            last,
        }
    }

    async fn send(&mut self, message: &Value) {
        let message = Message::text(message.to_string());
        self.socket.send(message).await.unwrap();
    }

    async fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        let params =
            json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": id } });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
            .await;
    }

    async fn message(&mut self) -> Value {
        match self.heard().await {
            Heard::Message(message) => message,
            Heard::Closed(code) => panic!("closed: {code:?}"),
        }
    }

    async fn heard(&mut self) -> Heard {
        loop {
            match within(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => {
                    let message: Value = serde_json::from_str(&text).unwrap();
                    if let Some(id) = message["mcpEventId"].as_str() {
                        id.clone_into(&mut self.last);
                    }
                    return Heard::Message(message);
                }
                Some(Ok(Message::Close(frame))) => return Heard::Closed(frame.map(|it| it.code)),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Heard::Closed(None),
            }
        }
    }

    /// Reconnects whenever the edge sends the client away.
    async fn until_answered(mut self, id: u64, edge: &Member, messages: &mut Vec<Value>) -> Self {
        loop {
            match self.heard().await {
                Heard::Message(message) => {
                    let answered = message["id"] == id;
                    messages.push(message);
                    if answered {
                        return self;
                    }
                }
                Heard::Closed(_) => self = self.at(edge).await,
            }
        }
    }
}

fn edges(cluster: &Cluster) -> [&Member; 2] {
    cluster.edges()[..].try_into().unwrap()
}

fn check(cluster: &Cluster, messages: &[Value], steps: u64) {
    assert_eq!(progress_of(messages), (1..=steps).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "once");
    let ids: Vec<&str> = messages
        .iter()
        .filter_map(|it| it["mcpEventId"].as_str())
        .collect();
    assert_eq!(ids.len(), messages.len());
    let mut different = ids.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), ids.len(), "an event came twice: {ids:?}");
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    assert_eq!(ledger.lines().count(), 1, "executed once: {ledger}");
}

#[tokio::test]
async fn a_call_goes_on_while_its_client_goes_from_edge_to_edge() {
    let cluster = start(with_websocket()).await;
    let [first, second] = edges(&cluster);
    let mut client = Client::open(first).await;
    client
        .call(
            1,
            "steps_once",
            &json!({ "nonce": "once", "count": 20, "ms": 100 }),
        )
        .await;
    let mut messages = vec![client.message().await, client.message().await];
    for edge in [second, first, second] {
        client = client.at(edge).await;
        messages.push(client.message().await);
    }
    client.until_answered(1, second, &mut messages).await;
    check(&cluster, &messages, 20);
}

#[tokio::test]
async fn a_client_of_a_killed_edge_misses_nothing() {
    let cluster = start(with_websocket()).await;
    let [first, second] = edges(&cluster);
    let mut client = Client::open(first).await;
    client
        .call(
            1,
            "steps_once",
            &json!({ "nonce": "once", "count": 20, "ms": 100 }),
        )
        .await;
    let mut messages = vec![client.message().await, client.message().await];
    first.kill().await.unwrap();
    client.until_answered(1, second, &mut messages).await;
    check(&cluster, &messages, 20);
}

#[tokio::test]
async fn a_client_of_a_draining_edge_is_sent_to_another() {
    let cluster = start(with_websocket()).await;
    let [first, second] = edges(&cluster);
    let mut client = Client::open(first).await;
    client
        .call(
            1,
            "steps_once",
            &json!({ "nonce": "once", "count": 40, "ms": 100 }),
        )
        .await;
    let mut messages = vec![client.message().await];
    let drained = async {
        let status = first.terminate(Duration::from_secs(30)).await.unwrap();
        assert!(status.success());
    };
    let reading = async {
        loop {
            match client.heard().await {
                Heard::Message(message) => messages.push(message),
                Heard::Closed(code) => {
                    assert_eq!(code, Some(CloseCode::Away));
                    break client.at(second).await;
                }
            }
        }
    };
    let (client, ()) = tokio::join!(reading, drained);
    client.until_answered(1, second, &mut messages).await;
    check(&cluster, &messages, 40);
}

#[tokio::test]
async fn a_session_changes_its_node_under_its_connection() {
    let cluster = start(with_websocket().lease(Duration::from_secs(600))).await;
    let [first, _] = edges(&cluster);
    let mut client = Client::open(first).await;
    client
        .call(
            1,
            "steps_once",
            &json!({ "nonce": "once", "count": 60, "ms": 100 }),
        )
        .await;
    let mut messages = vec![client.message().await];
    for node in cluster.sessions() {
        node.terminate(Duration::from_secs(30)).await.unwrap();
        node.start_again().await.unwrap();
    }
    client.until_answered(1, first, &mut messages).await;
    check(&cluster, &messages, 60);
}

#[tokio::test]
async fn a_question_is_answered_at_another_edge() {
    let cluster = start(with_websocket()).await;
    let [first, second] = edges(&cluster);
    let mut client = Client::open(first).await;
    client.call(1, "ask", &json!({ "nonce": "once" })).await;
    let question = client.message().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let mut client = client.at(second).await;
    let reply = json!({ "action": "accept", "content": { "text": "fine" } });
    client
        .send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": reply }))
        .await;
    let answer = client.message().await;
    assert_eq!(text_of(&answer), "once fine");
}

#[tokio::test]
async fn the_newest_connection_has_the_session() {
    let cluster = start(with_websocket()).await;
    let [first, second] = edges(&cluster);
    let mut old = Client::open(first).await;
    old.call(1, "echo", &json!({ "nonce": "n" })).await;
    assert_eq!(text_of(&old.message().await), "n");
    let (session, last) = (old.session.clone(), old.last.clone());
    let protocols = format!("mcp.resume, mcp.session.{session}, mcp.after.{last}");
    let socket = connect(second, &protocols).await;
    let mut new = Client {
        socket,
        session,
        last,
    };
    let closed = tokio::time::timeout(SOON, old.heard()).await.unwrap();
    assert!(matches!(closed, Heard::Closed(Some(CloseCode::Normal))));
    new.call(2, "echo", &json!({ "nonce": "m" })).await;
    assert_eq!(text_of(&new.message().await), "m");
}
