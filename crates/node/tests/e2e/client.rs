//! A minimal client of both eras over HTTP.

use futures::StreamExt as _;
use futures::stream::BoxStream;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::process::SOON;

pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(crate) fn call(id: u64, tool: &str, arguments: Value) -> Value {
    request(
        id,
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    )
}

pub(crate) fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = meta();
    request(id, method, params)
}

pub(crate) fn modern_call(id: u64, tool: &str, arguments: Value) -> Value {
    modern(
        id,
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    )
}

pub(crate) fn initialize(id: u64, version: &str) -> Value {
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": info });
    request(id, "initialize", params)
}

pub(crate) fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

pub(crate) fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{response}"))
}

pub(crate) fn post(url: &str, message: &Value) -> RequestBuilder {
    Client::new()
        .post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(message.to_string())
}

pub(crate) fn post_modern(url: &str, message: &Value) -> RequestBuilder {
    let method = message["method"].as_str().unwrap();
    let post = post(url, message)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    match message["params"]["name"].as_str() {
        Some(name) => post.header("mcp-name", name),
        None => post,
    }
}

#[derive(Clone)]
pub(crate) struct Session {
    url: String,
    pub(crate) id: String,
    token: Option<String>,
}

impl Session {
    pub(crate) async fn open(url: &str) -> Self {
        Self::open_as(url, None).await
    }

    pub(crate) async fn open_as(url: &str, token: Option<&str>) -> Self {
        Self::begin(url, token, &initialize(0, "2025-11-25")).await
    }

    pub(crate) async fn open_with(url: &str, capabilities: Value) -> Self {
        let mut opening = initialize(0, "2025-11-25");
        opening["params"]["capabilities"] = capabilities;
        Self::begin(url, None, &opening).await
    }

    async fn begin(url: &str, token: Option<&str>, initialize: &Value) -> Self {
        let mut opening = post(url, initialize);
        if let Some(token) = token {
            opening = opening.bearer_auth(token);
        }
        let answer = opening.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let id = answer.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let session = Self {
            url: url.to_owned(),
            id,
            token: token.map(str::to_owned),
        };
        let ready = session.post(&initialized()).send().await.unwrap();
        assert_eq!(ready.status(), 202);
        session
    }

    fn named(&self, request: RequestBuilder) -> RequestBuilder {
        let request = request
            .header("mcp-session-id", &self.id)
            .header("mcp-protocol-version", "2025-11-25");
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) fn post(&self, message: &Value) -> RequestBuilder {
        self.named(post(&self.url, message))
    }

    pub(crate) async fn ask(&self, message: &Value) -> Value {
        response(self.post(message).send().await.unwrap()).await
    }

    pub(crate) async fn end(&self) {
        let ended = self.named(Client::new().delete(&self.url)).send().await;
        assert!(ended.unwrap().status().is_success());
    }

    pub(crate) async fn listen(&self) -> Events {
        let get = Client::new()
            .get(&self.url)
            .header("accept", "text/event-stream");
        Events::of(self.named(get).send().await.unwrap())
    }
}

pub(crate) async fn response(answer: Response) -> Value {
    let kind = answer.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    if kind.starts_with("application/json") {
        return answer.json().await.unwrap();
    }
    let mut events = Events::of(answer);
    let mut last = None;
    while let Some(event) = events.next().await {
        last = event.lines().find_map(|line| {
            let data = line.strip_prefix("data:")?.trim();
            serde_json::from_str(data).ok()
        });
    }
    last.expect("a stream ends with the response")
}

pub(crate) struct Events {
    body: BoxStream<'static, String>,
    rest: String,
}

impl Events {
    pub(crate) fn of(answer: Response) -> Self {
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        let body = answer.bytes_stream();
        let body = body.map(|bytes| String::from_utf8(bytes.unwrap().to_vec()).unwrap());
        Self {
            body: body.boxed(),
            rest: String::new(),
        }
    }

    /// Skips comments. `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            while let Some((event, rest)) = self.rest.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.rest = rest;
                if !event.starts_with(':') {
                    return Some(event);
                }
            }
            let more = timeout(SOON, self.body.next()).await.unwrap()?;
            self.rest.push_str(&more);
        }
    }

    pub(crate) async fn message(&mut self) -> Value {
        loop {
            let event = self.next().await.expect("the stream goes on");
            let data = event.lines().find_map(|line| line.strip_prefix("data: {"));
            if let Some(data) = data {
                return serde_json::from_str(&format!("{{{data}")).unwrap();
            }
        }
    }
}
