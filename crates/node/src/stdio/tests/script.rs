use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderMap, Method, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use shoal_protocol::Ends;
use tokio::sync::mpsc;

use super::super::bridge::StdioBridge;
use super::super::console::ConsoleOutbox;
use super::super::exchange::{BodyError, ExchangeReply, Outgoing, SendError, ServerExchange};

pub(super) enum Act {
    Refuse,
    Break,
    Json(u16, &'static [(&'static str, &'static str)], Value),
    Stream(Vec<&'static str>, End),
}

#[derive(Clone, Copy)]
pub(super) enum End {
    Clean,
    Broken,
    Open,
}

#[derive(Default)]
struct Script {
    posts: Mutex<VecDeque<Act>>,
    gets: Mutex<VecDeque<Act>>,
    seen: Mutex<Vec<Outgoing>>,
}

#[async_trait]
impl ServerExchange for Arc<Script> {
    async fn send(&self, request: Outgoing) -> Result<ExchangeReply, SendError> {
        let acts = match request.method {
            Method::GET => &self.gets,
            Method::POST => &self.posts,
            _ => {
                self.seen.lock().push(request);
                return Ok(reply(204, &[], Vec::new(), End::Clean));
            }
        };
        let act = acts.lock().pop_front();
        let standalone = request.method == Method::GET && act.is_none();
        self.seen.lock().push(request);
        match act {
            None if standalone => Ok(stream(Vec::new(), End::Open)),
            None => Ok(reply(202, &[], Vec::new(), End::Clean)),
            Some(Act::Refuse) => Err(SendError::NotSent("refused".to_owned())),
            Some(Act::Break) => Err(SendError::Lost("reset".to_owned())),
            Some(Act::Json(status, headers, body)) => {
                let body = Bytes::from(body.to_string());
                Ok(reply(status, headers, vec![body], End::Clean))
            }
            Some(Act::Stream(frames, end)) => Ok(stream(frames, end)),
        }
    }
}

fn stream(frames: Vec<&'static str>, end: End) -> ExchangeReply {
    let frames = frames
        .into_iter()
        .map(|frame| Bytes::from(format!("{frame}\n\n")));
    let kind = [("content-type", "text/event-stream")];
    reply(200, &kind, frames.collect(), end)
}

fn reply(
    status: u16,
    headers: &[(&'static str, &'static str)],
    body: Vec<Bytes>,
    end: End,
) -> ExchangeReply {
    let frames = futures::stream::iter(body.into_iter().map(Ok));
    let body = match end {
        End::Clean => frames.boxed(),
        End::Broken => {
            let broken = futures::stream::iter([Err(BodyError("reset".to_owned()))]);
            frames.chain(broken).boxed()
        }
        End::Open => frames.chain(futures::stream::pending()).boxed(),
    };
    let mut reply = Response::new(body);
    *reply.status_mut() = http::StatusCode::from_u16(status).unwrap();
    for (name, value) in headers {
        reply.headers_mut().insert(*name, value.parse().unwrap());
    }
    reply
}

pub(super) struct Server(Arc<Script>);

pub(super) fn server(posts: impl IntoIterator<Item = Act>) -> Server {
    let script = Arc::new(Script::default());
    script.posts.lock().extend(posts);
    Server(script)
}

impl Server {
    pub(super) fn refusing_gets(self, gets: impl IntoIterator<Item = Act>) -> Self {
        self.0.gets.lock().extend(gets);
        self
    }

    pub(super) fn exchange(&self) -> Arc<dyn ServerExchange> {
        Arc::new(Arc::clone(&self.0))
    }

    pub(super) fn posted(&self) -> Vec<Value> {
        self.0.posted()
    }
}

impl Script {
    fn posted(&self) -> Vec<Value> {
        let seen = self.seen.lock();
        seen.iter()
            .filter(|request| request.method == Method::POST)
            .map(|request| serde_json::from_slice(&request.body).unwrap())
            .collect()
    }
}

pub(super) struct Client {
    script: Arc<Script>,
    bridge: StdioBridge,
    lines: mpsc::Receiver<Bytes>,
}

impl Client {
    pub(super) fn with(posts: impl IntoIterator<Item = Act>) -> Self {
        let script = Arc::new(Script::default());
        script.posts.lock().extend(posts);
        let (outbox, lines) = ConsoleOutbox::new();
        Self {
            bridge: StdioBridge::new(Arc::new(Arc::clone(&script)), outbox, 64),
            script,
            lines,
        }
    }

    pub(super) async fn opened(posts: impl IntoIterator<Item = Act>) -> Self {
        let opening = [welcome("first"), accepted()];
        let mut client = Self::with(opening.into_iter().chain(posts));
        client.send(initialize()).await;
        assert_eq!(client.next().await["id"], 0);
        client
            .send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        client
    }

    pub(super) fn on_get(&self, acts: impl IntoIterator<Item = Act>) {
        self.script.gets.lock().extend(acts);
    }

    pub(super) async fn send(&self, message: Value) {
        self.bridge.take(message.to_string().into()).await;
    }

    pub(super) async fn send_too_long(&self, message: &Value, limit: usize) {
        let ends = Ends::of(message.to_string().as_bytes());
        self.bridge.too_long(&ends, limit).await;
    }

    pub(super) async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(3600), self.lines.recv()).await;
        let line = line.expect("a message within the hour").unwrap();
        serde_json::from_slice(&line).unwrap()
    }

    pub(super) async fn hears_nothing(&mut self) -> bool {
        let hour = Duration::from_secs(3600);
        tokio::time::timeout(hour, self.lines.recv()).await.is_err()
    }

    pub(super) fn sent(&self, method: Method) -> Vec<HeaderMap> {
        let seen = self.script.seen.lock();
        let seen = seen.iter().filter(|request| request.method == method);
        seen.map(|request| request.headers.clone()).collect()
    }

    pub(super) fn posted(&self) -> Vec<Value> {
        self.script.posted()
    }

    pub(super) async fn finish(&self) {
        self.bridge.finish(Duration::from_secs(1)).await;
    }
}

pub(super) fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} })
}

/// Answers `initialize`.
pub(super) fn welcome(session: &'static str) -> Act {
    let headers: &'static [_] = match session {
        "first" => &[("mcp-session-id", "first")],
        _ => &[("mcp-session-id", "second")],
    };
    let result = json!({ "protocolVersion": "2025-11-25" });
    Act::Json(
        200,
        headers,
        json!({ "jsonrpc": "2.0", "id": 0, "result": result }),
    )
}

pub(super) fn accepted() -> Act {
    Act::Json(202, &[], Value::Null)
}

pub(super) fn answered(id: u64, result: Value) -> Act {
    Act::Json(
        200,
        &[],
        json!({ "jsonrpc": "2.0", "id": id, "result": result }),
    )
}

pub(super) fn refused(status: u16, code: i64) -> Act {
    let error = json!({ "code": code, "message": "no" });
    Act::Json(status, &[], json!({ "jsonrpc": "2.0", "error": error }))
}
