use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::sleep;

use crate::callers::{Caller, INVENTED};
use crate::honest::modern_call;

const AT_ONCE: usize = 150;
const AT_A_TIME: u32 = 4;
/// Length of an oversized text that still fits into a message, in bytes.
const LONG: usize = 3 << 20;
/// The pause leaves CPU time to the server, so that the server's bounds limit the attack.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub(crate) struct Hostile {
    http: Client,
    url: String,
    caller: Caller,
    pub(crate) stopped: Arc<AtomicUsize>,
}

impl Hostile {
    pub(crate) fn new(url: &str, caller: &Caller) -> Self {
        Self {
            http: Client::builder().no_proxy().build().unwrap(),
            url: url.to_owned(),
            caller: caller.clone(),
            stopped: Arc::default(),
        }
    }

    pub(crate) async fn schema_bombs(self) {
        let mut tree = json!({"value": "no number"});
        for _ in 0..12 {
            tree = json!({"left": tree.clone(), "right": 1});
        }
        let arguments = json!({"expression": tree});
        self.repeat(4, async |hostile| {
            let _ = hostile.call("evaluate", &arguments, &json!({})).await;
        })
        .await;
    }

    /// The look-aheads of the tool's patterns (`schema.py`) search the rest of these texts anew
    /// from every character.
    pub(crate) async fn pattern_bombs(self) {
        let text = "a".repeat(LONG / 10);
        let texts = vec!["a".repeat(1000); LONG / 10_000];
        self.repeat(4, async |hostile| {
            for arguments in [
                json!({"password": text}),
                json!({text.as_str(): "x"}),
                json!({"hints": texts}),
            ] {
                let _ = hostile.call("sign_up", &arguments, &json!({})).await;
            }
        })
        .await;
    }

    pub(crate) async fn unanswered_questions(self) {
        let arguments = json!({"restaurant": "nowhere"});
        let capabilities = json!({"elicitation": {"form": {}}});
        self.repeat(AT_ONCE, async |hostile| {
            let _ = hostile.call("book_table", &arguments, &capabilities).await;
        })
        .await;
    }

    /// Leaves questions unanswered, each of which holds a server process of its own.
    pub(crate) async fn unanswered_processes(self) {
        let capabilities = json!({"elicitation": {"form": {}}});
        self.repeat(AT_ONCE, async |hostile| {
            let _ = hostile.call("confirm", &json!({}), &capabilities).await;
        })
        .await;
    }

    pub(crate) async fn idle_processes(self) {
        let info = json!({"name": "hostile", "version": "1"});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "own_evaluate", "arguments": {"expression": {"value": 1}}}});
        self.repeat(4, async |hostile| {
            let session = hostile.open(&info).await;
            let _ = hostile.post(session.as_deref(), call.to_string()).await;
        })
        .await;
    }

    pub(crate) async fn crashes(self) {
        self.repeat(4, async |hostile| {
            for tool in ["crash", "own_crash"] {
                let _ = hostile.call(tool, &json!({}), &json!({})).await;
            }
        })
        .await;
    }

    pub(crate) async fn call_again(&self, tool: &str, arguments: &Value, pause: Duration) {
        let one = async |turn: u32| {
            sleep(pause * turn / AT_A_TIME).await;
            loop {
                let _ = self.call(tool, arguments, &json!({})).await;
                sleep(pause).await;
            }
        };
        join_all((0..AT_A_TIME).map(one)).await;
    }

    pub(crate) async fn long_strings(self) {
        let long = "x".repeat(LONG);
        let info = json!({"name": long, "version": "1"});
        let initialize = |info: &Value, capabilities: &Value| json!({"protocolVersion": "2025-11-25", "clientInfo": info, "capabilities": capabilities});
        let small = json!({"name": "hostile", "version": "1"});
        let messages = [
            ("initialize", initialize(&info, &json!({}))),
            ("initialize", initialize(&small, &json!({"experimental": {"x": long}}))),
            ("resources/subscribe", json!({"uri": long})),
            ("tools/call", json!({"name": long, "arguments": {}})),
            ("tools/list", json!({"cursor": long})),
            (
                "tools/call",
                json!({"name": "long_job", "arguments": {"steps": 100, "interval_ms": 1}, "_meta": {"progressToken": long}}),
            ),
            (&long, json!({})),
        ]
        .map(|(method, params)| {
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
        });
        let session = self.open(&small).await;
        self.repeat(4, async |hostile| {
            for message in &messages {
                let _ = hostile.post(session.as_deref(), message.clone()).await;
            }
        })
        .await;
    }

    pub(crate) async fn stored_bytes(self) {
        let info = json!({"name": "x".repeat(4000), "version": "1"});
        self.repeat(8, async |hostile| {
            let session = hostile.open(&info).await;
            for at in 0..20 {
                let uri = format!("demo://{at}/{}", "x".repeat(8000));
                let params = json!({"uri": uri});
                let message = json!({"jsonrpc": "2.0", "id": at, "method": "resources/subscribe", "params": params});
                let _ = hostile.post(session.as_deref(), message.to_string()).await;
            }
        })
        .await;
    }

    pub(crate) async fn unread_answers(self) {
        let request = self.raw_call("echo", &json!({"text": "x".repeat(LONG)}));
        self.repeat(AT_ONCE, async |hostile| hostile.unread(&request).await)
            .await;
    }

    pub(crate) async fn unread_streams(self) {
        let arguments = json!({"steps": 1000, "interval_ms": 1});
        let request = self.raw_call("long_job", &arguments);
        self.repeat(AT_ONCE / 3, async |hostile| hostile.unread(&request).await)
            .await;
    }

    pub(crate) async fn request_permits(self) {
        let head = self.head("echo", 100);
        self.repeat(4 * AT_ONCE, async |hostile| {
            let mut socket = hostile.connect().await;
            let _ = socket.write_all(head.as_bytes()).await;
            sleep(Duration::from_secs(5)).await;
        })
        .await;
    }

    pub(crate) async fn body_bytes(self) {
        let head = self.head("echo", LONG) + "{";
        self.repeat(AT_ONCE, async |hostile| {
            let mut socket = hostile.connect().await;
            let _ = socket.write_all(head.as_bytes()).await;
            sleep(Duration::from_secs(5)).await;
        })
        .await;
    }

    /// Sends proofs of possession, each of which the server must remember.
    pub(crate) async fn proofs(self) {
        let request = async |hostile: &Self| {
            let request = hostile.caller.show("GET", hostile.http.get(&hostile.url));
            hostile.ask(request, StatusCode::TOO_MANY_REQUESTS).await;
        };
        join_all((0..8).map(|_| async {
            loop {
                request(&self).await;
            }
        }))
        .await;
    }

    pub(crate) async fn invented_tokens(self) {
        self.repeat(AT_ONCE, async |hostile| {
            let token = format!("{INVENTED}{:x}", rand::random::<u128>());
            let request = hostile.http.get(&hostile.url).bearer_auth(token);
            hostile.ask(request, StatusCode::SERVICE_UNAVAILABLE).await;
        })
        .await;
    }

    async fn ask(&self, request: RequestBuilder, no_more: StatusCode) {
        if let Ok(answer) = request.send().await {
            let stopped = answer.status() == no_more;
            self.stopped.fetch_add(stopped.into(), Ordering::Relaxed);
        }
    }

    async fn repeat(&self, at_once: usize, deed: impl AsyncFn(&Self)) {
        let one = async || loop {
            deed(self).await;
            sleep(PAUSE).await;
        };
        join_all((0..at_once).map(|_| one())).await;
    }

    async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        capabilities: &Value,
    ) -> reqwest::Result<String> {
        let request = modern_call(
            &self.http,
            &self.url,
            &self.caller,
            tool,
            arguments,
            capabilities,
        );
        request.send().await?.text().await
    }

    async fn open(&self, info: &Value) -> Option<String> {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let opened = self.post(None, message.to_string()).await.ok()?;
        let session = opened.headers().get("mcp-session-id")?;
        Some(session.to_str().ok()?.to_owned())
    }

    async fn post(
        &self,
        session: Option<&str>,
        message: String,
    ) -> reqwest::Result<reqwest::Response> {
        let request = self.caller.show("POST", self.http.post(&self.url));
        let mut request = request
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        request.body(message).send().await
    }

    /// Leaves the answer unread for longer than the server waits.
    async fn unread(&self, request: &str) {
        let mut socket = self.connect().await;
        let _ = socket.write_all(request.as_bytes()).await;
        sleep(Duration::from_secs(2)).await;
    }

    async fn connect(&self) -> TcpStream {
        let url = self.url.strip_prefix("http://").unwrap();
        let address: SocketAddr = url.split('/').next().unwrap().parse().unwrap();
        loop {
            let socket = TcpSocket::new_v4().unwrap();
            let _ = socket.set_recv_buffer_size(4096);
            match socket.connect(address).await {
                Ok(connected) => return connected,
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    fn raw_call(&self, tool: &str, arguments: &Value) -> String {
        let caller = &self.caller;
        let request = modern_call(&self.http, &self.url, caller, tool, arguments, &json!({}));
        let request = request.build().unwrap();
        let body = request.body().unwrap().as_bytes().unwrap();
        let body = str::from_utf8(body).unwrap();
        let token = r#""_meta":{"#;
        let with_token = format!(r#"{token}"progressToken":1,"#);
        let body = body.replacen(token, &with_token, 1);
        self.head(tool, body.len()) + &body
    }

    fn head(&self, tool: &str, length: usize) -> String {
        let path = self.url.splitn(4, '/').nth(3).unwrap();
        let Caller::Bearer(token) = &self.caller else {
            panic!("a proof is for one request");
        };
        format!(
            "POST /{path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n\
             content-length: {length}\r\n\r\n"
        )
    }
}
