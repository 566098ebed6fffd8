use std::time::Duration;

use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::callers::Caller;

const PATIENCE: Duration = Duration::from_secs(20);
const LARGE: usize = 64 << 10;

pub(crate) struct Honest {
    http: Client,
    url: String,
    caller: Caller,
}

#[derive(Default)]
pub(crate) struct Worked {
    pub(crate) calls: usize,
    pub(crate) failed: Vec<String>,
    pub(crate) p99: Duration,
}

impl Honest {
    pub(crate) fn new(url: &str, caller: &Caller) -> Self {
        let http = Client::builder().no_proxy().timeout(PATIENCE);
        Self {
            http: http.build().unwrap(),
            url: url.to_owned(),
            caller: caller.clone(),
        }
    }

    /// Waits, because workers join one after the other.
    pub(crate) async fn ready(&self) {
        let until = Instant::now() + PATIENCE;
        while let Err(why) = self.alone().await.and(self.legacy().await) {
            assert!(Instant::now() < until, "not ready: {why}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn work(&self, time: Duration) -> Worked {
        let mut worked = Worked::default();
        let mut times = Vec::new();
        let until = Instant::now() + time;
        while worked.calls == 0 || Instant::now() < until {
            for attempt in [
                self.modern("hello").await,
                self.modern(&"x".repeat(LARGE)).await,
                self.alone().await,
                self.legacy().await,
            ] {
                worked.calls += 1;
                match attempt {
                    Ok(taken) => times.push(taken),
                    Err(why) => worked.failed.push(why),
                }
            }
        }
        times.sort_unstable();
        worked.p99 = times
            .get(times.len() * 99 / 100)
            .copied()
            .unwrap_or_default();
        worked
    }

    pub(crate) async fn is_answered(&self, tool: &str, arguments: &Value) -> Result<(), String> {
        let request = modern_call(
            &self.http,
            &self.url,
            &self.caller,
            tool,
            arguments,
            &json!({}),
        );
        let said = answer(request).await?;
        match said["result"]["content"].is_array() {
            true => Ok(()),
            false => Err(format!("{said}")),
        }
    }

    async fn modern(&self, text: &str) -> Result<Duration, String> {
        let began = Instant::now();
        let request = modern_call(
            &self.http,
            &self.url,
            &self.caller,
            "echo",
            &json!({"text": text}),
            &json!({}),
        );
        let said = answer(request).await?;
        match said["result"]["content"][0]["text"] == text {
            true => Ok(began.elapsed()),
            false => Err(format!("modern: {said}")),
        }
    }

    /// Makes a call that may ask its user, and therefore has a server process of its own.
    async fn alone(&self) -> Result<Duration, String> {
        let began = Instant::now();
        let request = modern_call(
            &self.http,
            &self.url,
            &self.caller,
            "evaluate",
            &json!({"expression": {"value": 1}}),
            &json!({"elicitation": {"form": {}}}),
        );
        let said = answer(request).await?;
        match said["result"]["content"][0]["text"] == "0" {
            true => Ok(began.elapsed()),
            false => Err(format!("alone: {said}")),
        }
    }

    async fn legacy(&self) -> Result<Duration, String> {
        let began = Instant::now();
        let post = |session: Option<&str>, body: Value| {
            let request = self.caller.show("POST", self.http.post(&self.url));
            let mut request = request
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream");
            if let Some(session) = session {
                request = request.header("mcp-session-id", session);
            }
            request.body(body.to_string())
        };
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "honest", "version": "1"}}});
        let opened = post(None, initialize).send().await;
        let opened = opened.map_err(|error| error.to_string())?;
        let session = opened.headers().get("mcp-session-id").cloned();
        let said = opened.text().await.map_err(|error| error.to_string())?;
        let session = session.ok_or(said)?;
        let session = session.to_str().unwrap();
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "echo_once", "arguments": {"text": "once"}}});
        let said = post(Some(session), call).send().await;
        let said = said.map_err(|error| error.to_string())?;
        let (status, text) = (said.status(), said.text().await.unwrap_or_default());
        let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": {"name": "own_evaluate", "arguments": {"expression": {"value": 1}}}});
        let own = post(Some(session), call).send().await;
        let own = own.map_err(|error| error.to_string())?.text().await;
        let own = own.unwrap_or_default();
        let delete = self.caller.show("DELETE", self.http.delete(&self.url));
        let closed = delete.header("mcp-session-id", session).send().await;
        let is_well = text.contains("once") && own.contains("content");
        match is_well && closed.is_ok_and(|closed| closed.status().is_success()) {
            true => Ok(began.elapsed()),
            false => Err(format!("legacy: {status} {text} {own}")),
        }
    }
}

async fn answer(request: RequestBuilder) -> Result<Value, String> {
    let answer = request.send().await.map_err(|error| error.to_string())?;
    let status = answer.status();
    let text = answer.text().await.map_err(|error| error.to_string())?;
    let json = text.lines().find_map(|line| line.strip_prefix("data: "));
    let said = serde_json::from_str(json.unwrap_or(&text));
    match (status, said) {
        (StatusCode::OK, Ok(said)) => Ok(said),
        _ => Err(format!("{status} {text:.300}")),
    }
}

pub(crate) fn modern_call(
    http: &Client,
    url: &str,
    caller: &Caller,
    tool: &str,
    arguments: &Value,
    capabilities: &Value,
) -> RequestBuilder {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    caller
        .show("POST", http.post(url))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .body(body.to_string())
}
