//! A small MCP client on the bridge, for commands.

mod tasks;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use shoal_protocol::task::TASKS;
use shoal_protocol::{Era, RequestId, Revision, RpcError, code};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::bridge::StdioBridge;
use super::console::ConsoleOutbox;
use super::exchange::{Prompt, RemoteExchange, ServerExchange};
use crate::exit::{Code, Failure};
use crate::print::plain;

const NESTING: usize = 128;
/// How long to wait for the server to end a session or task.
const GOODBYE: Duration = Duration::from_secs(2);
/// Maximum times that the server may answer one request with questions.
const MOST_ROUNDS: usize = 100;

pub(crate) use tasks::FollowedTask;

#[async_trait]
pub(crate) trait ClientHandler: Send {
    fn capabilities(&self) -> Value;

    fn wants_progress(&self) -> bool;

    fn progress(&mut self, params: &Value);

    fn tell(&mut self, _line: &str) {}

    /// `None` if the handler cannot answer.
    async fn answer(&mut self, method: &str, params: &Value) -> Option<Value>;
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("{0}")]
    Refused(RpcError),
    #[error("the server did not answer in time")]
    TimedOut,
    /// No new connection was possible in time.
    #[error("the connection was lost: {reason}{}", advice(*.may_have_run))]
    Lost {
        reason: String,
        /// The server had accepted the call.
        may_have_run: bool,
    },
}

fn advice(may_have_run: bool) -> &'static str {
    match may_have_run {
        true => "; the tool may have run, so check before you call it again",
        false => "",
    }
}

/// A client in the era that both sides support.
pub(crate) struct BridgeClient {
    bridge: StdioBridge,
    lines: mpsc::Receiver<Bytes>,
    handler: Box<dyn ClientHandler>,
    /// The time in which the user answers questions extends the deadline.
    deadline: Instant,
    modern: bool,
    last_id: u64,
    limit: Duration,
    tasks: tasks::ClientTasks,
}

impl BridgeClient {
    /// Connects in the given era or the server's newest. All requests together must finish within `limit`. Requests
    /// about tasks have this time each.
    ///
    /// # Errors
    /// If the URL or token is invalid, or the server cannot be reached or supports only another era.
    pub(crate) async fn connect(
        url: &str,
        token: Option<&str>,
        era: Option<Era>,
        handler: Box<dyn ClientHandler>,
        limit: Duration,
    ) -> Result<Self, Failure> {
        let remote = RemoteExchange::new(url, token);
        let remote = remote.map_err(|error| Failure::usage(format!("{error:#}")))?;
        let prompt = Arc::new(Prompt::new(Arc::new(remote)));
        let client = Self::over(prompt.clone(), era, handler, limit).await;
        client.map_err(|error| match error {
            ClientError::Refused(error) if !prompt.may_come_up() => Failure::new(
                Code::Unreachable,
                format!(
                    "{url}: {}; is a server running there? Start one with `shoal serve`, or name another with --url",
                    error.message
                ),
            ),
            error => failed(url, &error),
        })
    }

    pub(super) async fn over(
        exchange: Arc<dyn ServerExchange>,
        era: Option<Era>,
        handler: Box<dyn ClientHandler>,
        limit: Duration,
    ) -> Result<Self, ClientError> {
        let (outbox, lines) = ConsoleOutbox::new();
        let mut client = Self {
            bridge: StdioBridge::new(exchange, outbox, NESTING),
            lines,
            handler,
            deadline: Instant::now() + limit,
            modern: true,
            last_id: 0,
            limit,
            tasks: tasks::ClientTasks::default(),
        };
        if era != Some(Era::Legacy) {
            match client.request("server/discover", Map::new()).await {
                Ok(found) => {
                    client.tasks.are_offered =
                        found["capabilities"]["extensions"][TASKS].is_object();
                    return Ok(client);
                }
                Err(error) if era.is_some() || !may_be_legacy(&error) => return Err(error),
                Err(_) => {}
            }
        }
        client.modern = false;
        client.initialize().await?;
        Ok(client)
    }

    async fn initialize(&mut self) -> Result<(), ClientError> {
        let opening = json!({
            "protocolVersion": Revision::LATEST_LEGACY.as_str(),
            "capabilities": self.handler.capabilities(),
            "clientInfo": about(),
        });
        self.request("initialize", object(opening)).await?;
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await
    }

    /// Sends a request. The handler answers the server's questions. If the handler cannot answer one, or after
    /// [`MOST_ROUNDS`], returns the result with the questions.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        mut params: Map<String, Value>,
    ) -> Result<Value, ClientError> {
        let mut rounds = 0;
        loop {
            let mut result = self.round(method, params.clone()).await?;
            rounds += 1;
            if result["resultType"] != "input_required" || rounds > MOST_ROUNDS {
                return Ok(result);
            }
            let Some(responses) = self.responses(&result["inputRequests"]).await else {
                return Ok(result);
            };
            params.insert("inputResponses".to_owned(), responses.into());
            match result["requestState"].take() {
                Value::Null => params.remove("requestState"),
                state => params.insert("requestState".to_owned(), state),
            };
        }
    }

    pub(crate) fn tell(&mut self, line: &str) {
        self.handler.tell(line);
    }

    /// Cancels the last request, even if its future was dropped.
    pub(crate) async fn cancel(&mut self, reason: &str) {
        self.deadline = Instant::now() + GOODBYE;
        let params = json!({ "requestId": self.last_id, "reason": reason });
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        let _ = self.send(cancelled).await;
    }

    pub(crate) async fn finish(self) {
        self.bridge.finish(GOODBYE).await;
    }

    async fn round(
        &mut self,
        method: &str,
        mut params: Map<String, Value>,
    ) -> Result<Value, ClientError> {
        self.last_id += 1;
        let id = self.last_id;
        let mut meta = self.meta();
        if method == "tools/call" && self.handler.wants_progress() {
            meta.insert("progressToken".to_owned(), id.into());
        }
        if !meta.is_empty() {
            params.insert("_meta".to_owned(), meta.into());
        }
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut answered = self.exchange(id, request).await;
        if let Err(ClientError::Lost { may_have_run, .. }) = &mut answered {
            *may_have_run &= method == "tools/call";
        }
        if let Err(ClientError::TimedOut | ClientError::Lost { .. }) = answered {
            self.cancel("it took too long").await;
        }
        answered
    }

    /// Empty in the legacy era.
    fn meta(&self) -> Map<String, Value> {
        if !self.modern {
            return Map::new();
        }
        let mut capabilities = self.handler.capabilities();
        if self.tasks.are_declared {
            capabilities["extensions"] = json!({ (TASKS): {} });
        }
        object(json!({
            "io.modelcontextprotocol/protocolVersion": Revision::LATEST.as_str(),
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": about(),
        }))
    }

    async fn exchange(&mut self, id: u64, request: Value) -> Result<Value, ClientError> {
        self.send(request).await?;
        loop {
            let mut message = self.receive_in_time().await?;
            if message["method"].is_null() && message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(ClientError::Refused(as_error(error))),
                    None => Ok(message["result"].take()),
                };
            }
            self.take_aside(message).await?;
        }
    }

    async fn receive_in_time(&mut self) -> Result<Value, ClientError> {
        let deadline = self.deadline;
        let received = timeout_at(deadline, self.receive()).await;
        received.map_err(|_| self.too_late())?
    }

    fn too_late(&self) -> ClientError {
        let id = RequestId::from_number(self.last_id);
        match self.bridge.unreached(&id) {
            Some(unreached) => ClientError::Lost {
                reason: unreached.error.to_string(),
                may_have_run: unreached.was_sent,
            },
            None => ClientError::TimedOut,
        }
    }

    /// Returns the next message. Cancellation safe.
    async fn receive(&mut self) -> Result<Value, ClientError> {
        loop {
            let Some(line) = self.lines.recv().await else {
                let ended = RpcError::internal("the bridge has ended");
                return Err(ClientError::Refused(ended));
            };
            if let Ok(message) = serde_json::from_slice::<Value>(&line) {
                return Ok(message);
            }
        }
    }

    async fn take_aside(&mut self, mut message: Value) -> Result<(), ClientError> {
        match message["method"].as_str() {
            Some("notifications/progress") => self.handler.progress(&message["params"]),
            Some("notifications/tasks") => self.tasks.told = Some(message["params"].take()),
            Some(_) if message["id"].is_null() => {}
            Some(_) => self.reply(&message).await?,
            None => self.tasks.response(&message["id"]),
        }
        Ok(())
    }

    async fn reply(&mut self, request: &Value) -> Result<(), ClientError> {
        let mut reply = json!({ "jsonrpc": "2.0", "id": request["id"] });
        let method = request["method"].as_str().unwrap_or_default();
        match self.answer(method, &request["params"]).await {
            Some(result) => reply["result"] = result,
            None => {
                let message = format!("this client has no {method}");
                reply["error"] = json!({ "code": code::METHOD_NOT_FOUND, "message": message });
            }
        }
        self.send(reply).await
    }

    /// `None` if the handler cannot answer one of them.
    async fn responses(&mut self, requests: &Value) -> Option<Map<String, Value>> {
        let mut responses = Map::new();
        for (key, request) in requests.as_object().into_iter().flatten() {
            let method = request["method"].as_str()?;
            let response = self.answer(method, &request["params"]).await?;
            responses.insert(key.clone(), response);
        }
        Some(responses)
    }

    async fn answer(&mut self, method: &str, params: &Value) -> Option<Value> {
        if method == "ping" {
            return Some(json!({}));
        }
        let began = Instant::now();
        let answer = self.handler.answer(method, params).await;
        self.deadline += began.elapsed();
        answer
    }

    async fn send(&self, message: Value) -> Result<(), ClientError> {
        let taken = self.bridge.take(message.to_string().into());
        let taken = timeout_at(self.deadline, taken).await;
        taken.map_err(|_| self.too_late())
    }
}

pub(crate) fn failed(url: &str, error: &ClientError) -> Failure {
    match error {
        ClientError::Refused(error) => {
            let (code, advice) = match error.code {
                code::MISSING_CLIENT_CAPABILITY => (
                    Code::Tool,
                    "; it asks for something that cannot be answered here: run this in a terminal, or use --answer NAME=VALUE",
                ),
                _ => (Code::Refused, ""),
            };
            let error = plain(&error.to_string());
            Failure::new(code, format!("{url}: {error}{advice}"))
        }
        ClientError::TimedOut => {
            let advice = "give it longer with --timeout";
            Failure::new(Code::TimedOut, format!("{url}: {error}; {advice}"))
        }
        ClientError::Lost { .. } => Failure::new(Code::Unreachable, format!("{url}: {error}")),
    }
}

/// Whether a legacy server could answer like this. The errors of an unreachable or overloaded server say nothing about
/// its era.
fn may_be_legacy(error: &ClientError) -> bool {
    let unread = [code::NOT_EXECUTED, code::OUTCOME_UNKNOWN, code::OVERLOADED];
    matches!(error, ClientError::Refused(error) if !unread.contains(&error.code))
}

fn about() -> Value {
    json!({ "name": "shoal", "version": env!("CARGO_PKG_VERSION") })
}

pub(crate) fn as_error(error: &Value) -> RpcError {
    let message = error["message"].as_str().unwrap_or("no reason given");
    RpcError::new(error["code"].as_i64().unwrap_or_default(), message)
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
