//! A small MCP client on top of the bridge, for commands that ask a server something and end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use shoal_protocol::{Era, Revision, RpcError, code};
use tokio::sync::mpsc;

use super::bridge::Bridge;
use super::console::Outbox;
use super::exchange::{Exchange, Prompt, Remote};
use crate::exit::Failure;

/// How deep an answer may be nested.
const NESTING: usize = 128;
/// How long the server may take to hear that the client is gone.
const GOODBYE: Duration = Duration::from_secs(2);

/// A client of one server, in the era that both speak.
pub(crate) struct Client {
    bridge: Bridge,
    lines: mpsc::Receiver<Bytes>,
    modern: bool,
    last_id: u64,
}

impl Client {
    /// A client of the server at a URL, in the given era or in the newest that the server speaks.
    ///
    /// # Errors
    /// A URL or token that cannot be used, a server that cannot be reached or speaks another era.
    pub(crate) async fn connect(
        url: &str,
        token: Option<&str>,
        era: Option<Era>,
    ) -> Result<Self, Failure> {
        let remote = Remote::new(url, token);
        let remote = remote.map_err(|error| Failure::usage(format!("{error:#}")))?;
        let client = Self::over(Arc::new(Prompt::new(Arc::new(remote))), era).await;
        client.map_err(|error| Failure::from(anyhow::anyhow!("{url}: {}", error.message)))
    }

    /// The same over any way to a server.
    pub(super) async fn over(
        exchange: Arc<dyn Exchange>,
        era: Option<Era>,
    ) -> Result<Self, RpcError> {
        let (outbox, lines) = Outbox::new();
        let mut client = Self {
            bridge: Bridge::new(exchange, outbox, NESTING),
            lines,
            modern: true,
            last_id: 0,
        };
        if era != Some(Era::Legacy) {
            match client.request("server/discover", Map::new()).await {
                Ok(_) => return Ok(client),
                Err(error) if era.is_some() || !may_be_legacy(&error) => return Err(error),
                Err(_) => {}
            }
        }
        client.modern = false;
        client.initialize().await?;
        Ok(client)
    }

    async fn initialize(&mut self) -> Result<(), RpcError> {
        let opening = json!({
            "protocolVersion": Revision::LATEST_LEGACY.as_str(),
            "capabilities": {},
            "clientInfo": about(),
        });
        self.request("initialize", object(opening)).await?;
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        Ok(())
    }

    /// Sends a request and waits for its result. What the server asks meanwhile is declined, what it tells is
    /// left aside.
    ///
    /// # Errors
    /// The server's own, or what the bridge says of a server that did not answer.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        mut params: Map<String, Value>,
    ) -> Result<Value, RpcError> {
        self.last_id += 1;
        let id = self.last_id;
        if self.modern {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": Revision::LATEST.as_str(),
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": about(),
            });
            params.insert("_meta".to_owned(), meta);
        }
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        while let Some(line) = self.lines.recv().await {
            let Ok(mut message) = serde_json::from_slice::<Value>(&line) else {
                continue;
            };
            if message["method"].is_string() {
                if !message["id"].is_null() {
                    self.decline(&message).await;
                }
            } else if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(as_error(error)),
                    None => Ok(message["result"].take()),
                };
            }
        }
        Err(RpcError::internal("the bridge has ended"))
    }

    /// Ends the session, where there is one.
    pub(crate) async fn finish(self) {
        self.bridge.finish(GOODBYE).await;
    }

    async fn decline(&self, request: &Value) {
        let mut answer = json!({ "jsonrpc": "2.0", "id": request["id"] });
        if request["method"] == "ping" {
            answer["result"] = json!({});
        } else {
            let message = format!("this client has no {}", request["method"]);
            answer["error"] = json!({ "code": code::METHOD_NOT_FOUND, "message": message });
        }
        self.send(answer).await;
    }

    async fn send(&self, message: Value) {
        self.bridge.take(message.to_string().into()).await;
    }
}

/// Whether a server that does not know 2026-07-28 could have answered like this. One that was not reached, or
/// that asks to come back later, did not look at the request.
fn may_be_legacy(error: &RpcError) -> bool {
    ![code::NOT_EXECUTED, code::OUTCOME_UNKNOWN, code::OVERLOADED].contains(&error.code)
}

fn about() -> Value {
    json!({ "name": "shoal", "version": env!("CARGO_PKG_VERSION") })
}

fn as_error(error: &Value) -> RpcError {
    let message = error["message"].as_str().unwrap_or("no reason given");
    RpcError::new(error["code"].as_i64().unwrap_or_default(), message)
}

/// The members of a JSON object; none of anything else.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
