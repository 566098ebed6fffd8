use std::collections::BTreeSet;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::client::{call, initialize, initialized, request, text};
use crate::process::{SOON, Server};

const ON: &[(&str, &str)] = &[("SHOAL_SERVER__WEBSOCKET", "true")];

pub(crate) struct Client {
    socket: WebSocketStream<TcpStream>,
    session: String,
    last: String,
}

impl Client {
    async fn open(server: &Server) -> Self {
        Self::open_on(stream_to(server, None).await, "mcp.resume").await
    }

    pub(crate) async fn open_on(stream: TcpStream, protocol: &str) -> Self {
        let mut client = Self::connect(stream, protocol).await.unwrap();
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": { "form": {} }, "sampling": {}, "roots": {} },
            "clientInfo": { "name": "test", "version": "1" },
        });
        let greeting = client.ask(&request(0, "initialize", params)).await;
        assert_eq!(greeting["result"]["protocolVersion"], "2025-11-25");
        let session = greeting["mcpSessionId"].as_str().unwrap_or_default();
        session.clone_into(&mut client.session);
        client.send(&initialized()).await;
        client
    }

    async fn connect(stream: TcpStream, protocols: &str) -> Result<Self, Error> {
        let url = format!("ws://{}/mcp", stream.peer_addr().unwrap());
        let mut request = url.into_client_request().unwrap();
        let offered = protocols.parse().unwrap();
        request
            .headers_mut()
            .insert("sec-websocket-protocol", offered);
        let (socket, _) = client_async(request, stream).await?;
        Ok(Self {
            socket,
            session: String::new(),
            last: String::new(),
        })
    }

    async fn resumed(self, server: &Server) -> Self {
        let (session, last) = (&self.session, &self.last);
        let mut protocols = format!("mcp.resume, mcp.session.{session}");
        if !last.is_empty() {
            protocols.push_str(&format!(", mcp.after.{last}"));
        }
        let client = Self::connect(stream_to(server, None).await, &protocols).await;
        let Self { session, last, .. } = self;
        Self {
            session,
            last,
            ..client.unwrap()
        }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        let message = Message::text(message.to_string());
        self.socket.send(message).await.unwrap();
    }

    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.message().await
    }

    pub(crate) async fn message(&mut self) -> Value {
        loop {
            match timeout(SOON, self.socket.next()).await.unwrap() {
                Some(Ok(Message::Text(text))) => {
                    let message: Value = serde_json::from_str(&text).unwrap();
                    if let Some(id) = message["mcpEventId"].as_str() {
                        id.clone_into(&mut self.last);
                    }
                    return message;
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("no message: {other:?}"),
            }
        }
    }

    pub(crate) async fn close_code(&mut self) -> CloseCode {
        loop {
            match timeout(SOON, self.socket.next()).await.unwrap() {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code,
                Some(Ok(_)) => {}
                other => panic!("not closed: {other:?}"),
            }
        }
    }
}

pub(crate) async fn stream_to(server: &Server, buffer: Option<u32>) -> TcpStream {
    let host = server.mcp.strip_prefix("http://").unwrap();
    let address = host.strip_suffix("/mcp").unwrap().parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    if let Some(bytes) = buffer {
        socket.set_recv_buffer_size(bytes).unwrap();
    }
    socket.connect(address).await.unwrap()
}

fn answer(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn with_progress(mut call: Value) -> Value {
    call["params"]["_meta"] = json!({ "progressToken": "p" });
    call
}

#[tokio::test]
async fn it_is_off_by_default() {
    let server = Server::start(&["--demo"]).await;
    let refused = Client::connect(stream_to(&server, None).await, "mcp").await;
    let Err(Error::Http(refused)) = refused else {
        panic!("connected");
    };
    assert_eq!(refused.status().as_u16(), 400);
    let text: Value = serde_json::from_slice(refused.body().as_ref().unwrap()).unwrap();
    let message = text["error"]["message"].as_str().unwrap();
    assert!(message.contains("server.websocket = true"), "{message}");
}

#[tokio::test]
async fn calls_progress_and_questions_share_a_connection() {
    let server = Server::start_with(&["--demo"], ON).await;
    let mut client = Client::open(&server).await;
    let job = json!({ "steps": 3, "interval_ms": 10 });
    client.send(&with_progress(call(1, "long_job", job))).await;
    for step in 1..=3 {
        let progress = client.message().await;
        assert_eq!(
            progress["params"]["progress"].as_f64(),
            Some(f64::from(step)),
            "{progress}"
        );
    }
    assert_eq!(client.message().await["id"], 1);

    let booking = call(2, "book_table", json!({ "restaurant": "Chez Nous" }));
    let question = client.ask(&booking).await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let content = json!({ "guests": 2, "date": "Friday" });
    let accepted = answer(
        &question["id"],
        json!({ "action": "accept", "content": content }),
    );
    let booked = client.ask(&accepted).await;
    assert_eq!(text(&booked), "booked Chez Nous for 2 on Friday");

    let question = client
        .ask(&call(3, "summarize", json!({ "text": "long" })))
        .await;
    assert_eq!(question["method"], "sampling/createMessage", "{question}");
    let sampled = json!({
        "role": "assistant", "model": "m", "content": { "type": "text", "text": "short" },
    });
    let summary = client.ask(&answer(&question["id"], sampled)).await;
    assert!(text(&summary).contains("short"), "{summary}");

    let status: Value = reqwest::get(format!("{}/status", server.admin))
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(
        (&status["edge"]["websockets"], &status["edge"]["streams"]),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn a_call_is_cancelled_by_a_message_and_not_by_the_connections_end() {
    let server = Server::start_with(&["--demo"], ON).await;
    let mut client = Client::open(&server).await;
    let job = json!({ "steps": 600, "interval_ms": 100 });
    client.send(&with_progress(call(1, "long_job", job))).await;
    client.message().await;
    let mut client = client.resumed(&server).await;
    server.wait_for_calls(1).await;
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
    });
    client.send(&cancelled).await;
    server.wait_for_calls(0).await;
    loop {
        let message = client.message().await;
        if message["id"] == 1 {
            assert_eq!(message["error"]["code"], -32800, "{message}");
            break;
        }
    }
}

#[tokio::test]
async fn who_does_not_read_is_given_up_and_goes_on_where_it_was() {
    let settings = [ON[0], ("SHOAL_SERVER__WRITE_TIMEOUT", "1s")];
    let server = Server::start_with(&["--demo"], &settings).await;
    let stream = stream_to(&server, Some(4096)).await;
    let mut client = Client::open_on(stream, "mcp.resume").await;
    let large = "x".repeat(100 << 10);
    let mut sent = BTreeSet::new();
    for id in 1..=20 {
        let message = call(id, "echo", json!({ "text": large })).to_string();
        let sending = client.socket.send(Message::text(message));
        match timeout(SOON, sending).await.unwrap() {
            Ok(()) => sent.insert(id),
            Err(_) => break,
        };
    }
    let carried = async {
        let status = format!("{}/status", server.admin);
        loop {
            let status: Value = reqwest::get(&status).await.unwrap().json().await.unwrap();
            if status["edge"]["websockets"] == 0 {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, carried).await.unwrap();
    let mut client = client.resumed(&server).await;
    client.send(&request(99, "ping", json!({}))).await;
    let mut answered = BTreeSet::new();
    loop {
        let message = client.message().await;
        let id = message["id"].as_u64().unwrap();
        assert!(answered.insert(id), "{id} came twice");
        if id == 99 {
            break;
        }
        assert_eq!(text(&message).len(), large.len());
    }
    // Sent requests may have been lost with the connection, so some may have no answer.
    answered.remove(&99);
    assert!(
        !answered.is_empty() && answered.is_subset(&sent),
        "{answered:?} of {sent:?}"
    );
}

#[tokio::test]
async fn a_frame_may_come_together_with_the_handshake() {
    let server = Server::start_with(&["--demo"], ON).await;
    let mut stream = stream_to(&server, None).await;
    let mut all =
        b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        sec-websocket-protocol: mcp\r\n\r\n"
            .to_vec();
    let ping = request(5, "ping", json!({})).to_string();
    let mut frame = Frame::message(ping, OpCode::Data(Data::Text), true);
    frame.header_mut().mask = Some([0; 4]);
    frame.format(&mut all).unwrap();
    stream.write_all(&all).await.unwrap();
    let mut read = Vec::new();
    let answered = async {
        while !String::from_utf8_lossy(&read).contains("send initialize first") {
            assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0);
        }
    };
    timeout(SOON, answered).await.unwrap();
    let read = String::from_utf8_lossy(&read);
    assert!(read.starts_with("HTTP/1.1 101 "), "{read}");
    assert!(read.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{read}");
    assert!(read.contains("\"id\":5"), "{read}");
}

#[tokio::test]
async fn a_session_can_be_used_over_http_as_well() {
    let server = Server::start_with(&["--demo"], ON).await;
    let mut client = Client::open(&server).await;
    let http = reqwest::Client::new();
    let over_http = |method| {
        http.request(method, &server.mcp)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", client.session.as_str())
    };
    let echo = |id| call(id, "echo", json!({ "text": "hello" }));
    let posted = over_http(Method::POST).json(&echo(1)).send().await.unwrap();
    assert_eq!(posted.status().as_u16(), 202);
    let stream = over_http(Method::GET);
    let (second, end) = (over_http(Method::POST), over_http(Method::DELETE));
    let answer = client.message().await;
    assert_eq!(answer["id"], 1, "{answer}");
    let stream = stream.header("last-event-id", client.last.as_str());
    let mut stream = stream.send().await.unwrap();
    assert_eq!(stream.status().as_u16(), 200);
    assert_eq!(client.close_code().await, CloseCode::Normal);
    let posted = second.json(&echo(2)).send().await.unwrap();
    assert_eq!(posted.status().as_u16(), 202);
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(r#""id":2"#) {
        let chunk = timeout(SOON, stream.chunk()).await.unwrap().unwrap();
        read.extend_from_slice(&chunk.expect("the stream goes on"));
    }
    assert_eq!(end.send().await.unwrap().status().as_u16(), 204);
}

#[tokio::test]
async fn a_session_of_streamable_http_stays_there() {
    let server = Server::start_with(&["--demo"], ON).await;
    let opening = reqwest::Client::new()
        .post(&server.mcp)
        .header("accept", "application/json, text/event-stream")
        .json(&initialize(0, "2025-11-25"));
    let opened = opening.send().await.unwrap();
    let session = opened.headers()["mcp-session-id"].to_str().unwrap();
    let offered = format!("mcp.resume, mcp.session.{session}");
    let mut client = Client::connect(stream_to(&server, None).await, &offered)
        .await
        .unwrap();
    client.send(&initialized()).await;
    let job = json!({ "steps": 2, "interval_ms": 200 });
    client.send(&with_progress(call(1, "long_job", job))).await;
    assert_eq!(client.close_code().await, CloseCode::Policy);
}

#[tokio::test]
async fn a_node_that_goes_answers_first_and_sends_its_clients_away() {
    let mut server = Server::start_with(&["--demo"], ON).await;
    let mut resumable = Client::open(&server).await;
    let mut plain = Client::open_on(stream_to(&server, None).await, "mcp").await;
    let job = json!({ "steps": 4, "interval_ms": 200 });
    for client in [&mut resumable, &mut plain] {
        client.send(&call(1, "long_job", job.clone())).await;
    }
    server.wait_for_calls(2).await;
    server.signal(Signal::SIGTERM);
    for client in [&mut resumable, &mut plain] {
        let answer = client.message().await;
        assert!(answer.get("result").is_some(), "{answer}");
        assert_eq!(client.close_code().await, CloseCode::Away);
    }
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
}
