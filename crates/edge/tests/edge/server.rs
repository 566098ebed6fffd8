use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use shoal_auth::NoAuthentication;
use shoal_edge::{Edge, EdgeConfig, EdgeService, Load, Recorder};
use shoal_ports::Authenticator;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::dispatcher::FakeDispatcher;
use crate::gateway::{FakeGateway, LIVE};

pub(crate) struct Server {
    pub(crate) gateway: Arc<FakeGateway>,
    pub(crate) dispatcher: Arc<FakeDispatcher>,
    pub(crate) drain: CancellationToken,
    pub(crate) load: Load,
    pub(crate) recorder: Recorder,
    pub(crate) address: std::net::SocketAddr,
    client: reqwest::Client,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(set: impl FnOnce(&mut EdgeConfig)) -> Self {
        Self::with_authenticator(Arc::new(NoAuthentication), set).await
    }

    pub(crate) async fn with_authenticator(
        authenticator: Arc<dyn Authenticator>,
        set: impl FnOnce(&mut EdgeConfig),
    ) -> Self {
        Self::serving(authenticator, set, |listener, service| {
            let answer = async move |request: Request| service.answer(request).await;
            let router = axum::Router::new().fallback(answer);
            tokio::spawn(async move { axum::serve(listener, router).await.unwrap() })
        })
        .await
    }

    pub(crate) async fn serving(
        authenticator: Arc<dyn Authenticator>,
        set: impl FnOnce(&mut EdgeConfig),
        serve: impl FnOnce(TcpListener, EdgeService) -> JoinHandle<()>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = EdgeConfig::for_address(address);
        config.streams.grace = Duration::from_millis(100).into();
        set(&mut config);
        let (gateway, dispatcher) = (FakeGateway::new(), FakeDispatcher::new());
        let edge = Edge {
            gateway: gateway.clone(),
            dispatcher: dispatcher.clone(),
            authenticator,
            config,
            drain: CancellationToken::new(),
            load: Load::default(),
            recorder: Recorder::default(),
        };
        let (drain, load) = (edge.drain.clone(), edge.load.clone());
        let recorder = edge.recorder.clone();
        let task = serve(listener, edge.service());
        Self {
            gateway,
            dispatcher,
            drain,
            load,
            recorder,
            address,
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            task,
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://{}{path}", self.address);
        self.client.request(method, url)
    }

    pub(crate) fn post(&self, body: impl Into<String>) -> RequestBuilder {
        self.request(Method::POST, "/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body.into())
    }

    pub(crate) fn legacy(&self, body: &Value) -> RequestBuilder {
        self.post(body.to_string())
            .header("mcp-session-id", LIVE)
            .header("mcp-protocol-version", "2025-11-25")
    }

    pub(crate) fn modern(&self, method: &str, params: Value) -> RequestBuilder {
        let params = with_meta(params, json!({}));
        self.post(rpc(method, &params).to_string())
            .headers(modern_headers(method, &params))
    }

    pub(crate) fn tool(&self, name: &str) -> RequestBuilder {
        self.modern("tools/call", json!({"name": name, "arguments": {}}))
    }

    pub(crate) async fn unread(&self, tool: &str, bearer: Option<&str>) -> TcpStream {
        let params = with_meta(json!({"name": tool, "arguments": {}}), json!({}));
        let body = rpc("tools/call", &params).to_string();
        let mut request = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n\
             content-length: {}\r\n",
            body.len()
        );
        for (name, value) in &modern_headers("tools/call", &params) {
            request.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
        }
        if let Some(bearer) = bearer {
            request.push_str(&format!("authorization: Bearer {bearer}\r\n"));
        }
        request.push_str(&format!("\r\n{body}"));
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        socket
    }

    pub(crate) fn listen(&self) -> RequestBuilder {
        self.request(Method::GET, "/mcp")
            .header("accept", "text/event-stream")
            .header("mcp-session-id", LIVE)
    }
}

pub(crate) fn rpc(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

pub(crate) fn with_meta(mut params: Value, more: Value) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (key, value) in more.as_object().unwrap() {
        meta[key] = value.clone();
    }
    params["_meta"] = meta;
    params
}

pub(crate) fn modern_headers(method: &str, params: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut set = |name: &'static str, value: &str| {
        let value = HeaderValue::from_str(value).unwrap();
        headers.insert(HeaderName::from_static(name), value);
    };
    set("mcp-protocol-version", "2026-07-28");
    set("mcp-method", method);
    let named = match method {
        "resources/read" => &params["uri"],
        "tools/call" | "prompts/get" => &params["name"],
        "tasks/get" | "tasks/update" | "tasks/cancel" => &params["taskId"],
        _ => &Value::Null,
    };
    if let Some(name) = named.as_str() {
        set("mcp-name", name);
    }
    headers
}

pub(crate) fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    let value = response.headers().get(name);
    value.map_or("", |value| value.to_str().unwrap())
}
