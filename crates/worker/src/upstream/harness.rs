use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use shoal_ports::{
    Call, CallFailure, CallId, CallOutcome, Caller, ClientInfo, ForwardedHeaders, LogFilter,
    MayStart, PoolCatalog, Principal, Repeat, SessionId, StateDoor, StateRequest, no_session,
};
use shoal_protocol::{LogLevel, Method, Outcome, RawJson, Revision, RpcError};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::backend::{BackendPatience, CallLine};
use crate::{Backend, BackendState, CallContext, Isolation, StdioBackend, StdioConfig};

const PATIENCE: Duration = Duration::from_secs(20);
/// Longer than a call takes to reach its process.
pub(crate) const SOON: Duration = Duration::from_millis(100);
const WAIT: Duration = Duration::from_secs(5);

pub(crate) fn fixture(script: &str, flags: &[&str]) -> StdioConfig {
    let mut config = StdioConfig::new("python3");
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/");
    config.args = vec!["-u".to_owned(), format!("{directory}{script}")];
    config
        .args
        .extend(flags.iter().map(|&flag| flag.to_owned()));
    config.isolation = Isolation::Shared;
    config.probe_timeout = Duration::from_millis(1500).into();
    config.shutdown_grace = Duration::from_millis(500).into();
    config.restart_delay = Duration::from_millis(20).into();
    config
}

pub(crate) async fn served(script: &str, flags: &[&str]) -> (Child, String) {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/");
    let mut child = Command::new("python3")
        .arg("-u")
        .arg(format!("{directory}{script}"))
        .args(flags)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap().expect("it starts");
    (child, url)
}

/// Removed on drop.
pub(crate) struct Scratch(PathBuf);

pub(crate) fn scratch(name: &str) -> Scratch {
    let unique = uuid::Uuid::new_v4().simple().to_string();
    Scratch(std::env::temp_dir().join(format!("shoal-stdio-{name}-{unique}")))
}

impl std::ops::Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The path is a file, a directory or missing.
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct TestBackend(pub(crate) Arc<dyn Backend>);

impl TestBackend {
    pub(crate) async fn start(config: StdioConfig) -> Self {
        Self::of(StdioBackend::start(config)).await
    }

    pub(crate) async fn of(backend: impl Backend) -> Self {
        let running = Self(Arc::new(backend));
        running.catalog_where(|_| true).await;
        running
    }

    pub(crate) async fn start_slowly(config: StdioConfig) -> Self {
        let running = Self(Arc::new(StdioBackend::start(config)));
        let mut state = running.0.state();
        let ready = state.wait_for(|state| state.catalog.is_some());
        let ready = tokio::time::timeout(6 * PATIENCE, ready).await;
        drop(ready.expect("ready in time").unwrap());
        running
    }

    pub(crate) async fn state_where(
        &self,
        mut wanted: impl FnMut(&BackendState) -> bool,
    ) -> BackendState {
        let mut state = self.0.state();
        let found = tokio::time::timeout(PATIENCE, state.wait_for(|state| wanted(state))).await;
        match found {
            Ok(state) => state.unwrap().clone(),
            Err(_) => panic!("still {:?}", self.0.state().borrow()),
        }
    }

    pub(crate) async fn catalog_where(
        &self,
        mut wanted: impl FnMut(&PoolCatalog) -> bool,
    ) -> Arc<PoolCatalog> {
        let state = self.state_where(|state| state.catalog.as_ref().is_some_and(|c| wanted(c)));
        state.await.catalog.unwrap()
    }

    pub(crate) async fn call(&self, client: &Client, tool: &str, arguments: Value) -> CallOutcome {
        let call = client.call(json!({ "name": tool, "arguments": arguments }));
        self.run(client, &call).await
    }

    pub(crate) async fn run(&self, client: &Client, call: &Call) -> CallOutcome {
        let context = client.context();
        let run = self.0.run(call, &context);
        tokio::time::timeout(PATIENCE, run)
            .await
            .expect("the call hangs")
    }

    pub(crate) fn spawn(
        &self,
        client: &Client,
        tool: &str,
        arguments: Value,
    ) -> tokio::task::JoinHandle<CallOutcome> {
        let (running, client, tool) = (Self(self.0.clone()), client.clone(), tool.to_owned());
        tokio::spawn(async move { running.call(&client, &tool, arguments).await })
    }
}

pub(crate) fn text(outcome: &CallOutcome) -> Value {
    let CallOutcome::Result(result) = outcome else {
        panic!("{outcome:?}")
    };
    let result: Value = result.read().unwrap();
    let text = result["content"][0]["text"].as_str().expect("text");
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

pub(crate) fn failure(outcome: CallOutcome) -> CallFailure {
    match outcome {
        CallOutcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn error(outcome: CallOutcome) -> RpcError {
    match outcome {
        CallOutcome::Error(error) => error,
        other => panic!("{other:?}"),
    }
}

/// A zombie does not run.
pub(crate) fn is_running(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

pub(crate) fn signal(pid: &Value, signal: &str) {
    let sent = std::process::Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "not in time: {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) caller: Arc<Caller>,
    pub(crate) log: LogFilter,
    pub(crate) progress_token: Option<RawJson>,
    line: Arc<TestLine>,
}

pub(crate) struct TestLine {
    name: String,
    asked: Mutex<Vec<(Method, Option<RawJson>)>>,
    notes: Mutex<Vec<(Method, Value)>>,
    answers: Semaphore,
    waiting: AtomicUsize,
    cancelled: CancellationToken,
}

impl Client {
    pub(crate) fn named(name: &str) -> Self {
        Self::with(
            name,
            Revision::V2025_11_25,
            Some(SessionId::new(name)),
            "{}",
        )
    }

    pub(crate) fn askable(name: &str) -> Self {
        let capabilities = r#"{"elicitation":{},"sampling":{},"roots":{"listChanged":true}}"#;
        Self::with(
            name,
            Revision::V2025_11_25,
            Some(SessionId::new(name)),
            capabilities,
        )
    }

    pub(crate) fn of(mut self, principal: &str) -> Self {
        Arc::make_mut(&mut self.caller).principal = Principal::new(principal);
        self
    }

    pub(crate) fn bringing(mut self, headers: &[(&str, &str)]) -> Self {
        let headers = headers
            .iter()
            .map(|&(name, value)| (name.into(), value.to_owned().into()));
        Arc::make_mut(&mut self.caller).headers = ForwardedHeaders::new(headers);
        self
    }

    pub(crate) fn modern(name: &str, capabilities: &'static str) -> Self {
        Self::with(name, Revision::V2026_07_28, None, capabilities)
    }

    fn with(
        name: &str,
        revision: Revision,
        session: Option<SessionId>,
        capabilities: &'static str,
    ) -> Self {
        let caller = Caller {
            principal: Principal::new(name),
            session,
            revision,
            client_info: Some(ClientInfo::new(RawJson::of(
                &json!({ "name": name, "version": "1" }),
            ))),
            capabilities: RawJson::from_static(capabilities),
            headers: ForwardedHeaders::default(),
            grant: None,
        };
        Self {
            caller: Arc::new(caller),
            log: LogFilter::AtLeast(LogLevel::Debug),
            progress_token: None,
            line: Arc::new(TestLine {
                name: name.to_owned(),
                asked: Mutex::default(),
                notes: Mutex::default(),
                answers: Semaphore::new(Semaphore::MAX_PERMITS),
                waiting: AtomicUsize::new(0),
                cancelled: CancellationToken::new(),
            }),
        }
    }

    /// Delays answers until [`Client::answer_one`].
    pub(crate) fn hesitant(self) -> Self {
        self.line.answers.forget_permits(Semaphore::MAX_PERMITS);
        self
    }

    pub(crate) fn answer_one(&self) {
        self.line.answers.add_permits(1);
    }

    pub(crate) fn cancel(&self) {
        self.line.cancelled.cancel();
    }

    pub(crate) fn waits(&self) -> bool {
        self.line.waiting.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        let asked = self.line.asked.lock();
        asked
            .iter()
            .map(|(method, params)| match params {
                Some(params) => format!("{method} {}", params.as_str()),
                None => method.to_string(),
            })
            .collect()
    }

    pub(crate) fn notes(&self, method: &Method) -> Vec<Value> {
        let notes = self.line.notes.lock();
        let notes = notes.iter().filter(|(name, _)| name == method);
        notes.map(|(_, params)| params.clone()).collect()
    }

    pub(crate) fn call(&self, params: Value) -> Call {
        self.raw_call(RawJson::of(&params))
    }

    pub(crate) fn raw_call(&self, params: RawJson) -> Call {
        Call {
            id: CallId::generate(),
            method: Method::ToolsCall,
            params: Some(params),
            caller: self.caller.clone(),
            progress_token: self.progress_token.clone(),
            log: self.log,
            deadline: tokio::time::Instant::now() + PATIENCE,
            trace: None,
            binding: None,
            may_start: MayStart::Yes,
            epoch: None,
            repeat: Repeat::Never,
        }
    }

    fn context(&self) -> CallContext {
        CallContext::new(self.line.clone())
    }
}

#[async_trait]
impl CallLine for TestLine {
    fn notify_now(
        &self,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<(), (Method, Option<RawJson>)> {
        // Reports a full buffer, so that every notification goes through `notify`.
        Err((method, params))
    }

    async fn notify(&self, method: Method, params: Option<RawJson>) {
        let params = params.map(|params| params.read().unwrap());
        self.notes.lock().push((method, params.unwrap_or_default()));
    }

    async fn wait(
        &self,
        patience: BackendPatience<'_>,
        ready: BoxFuture<'_, Result<(), CallFailure>>,
    ) -> Result<(), CallFailure> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = match patience {
            BackendPatience::OfCall => ready.await,
            BackendPatience::OfPool(busy) => {
                let waited = tokio::time::timeout(WAIT, ready).await;
                waited.unwrap_or_else(|_| Err(CallFailure::overloaded(busy, WAIT)))
            }
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    async fn ask(&self, method: Method, params: Option<RawJson>) -> Outcome {
        self.asked.lock().push((method.clone(), params));
        match self.answers.acquire().await {
            Ok(permit) => permit.forget(),
            Err(_) => return Outcome::Error(RpcError::internal("closed")),
        }
        Outcome::Result(RawJson::of(&json!({
            "action": "accept",
            // This content serves as a form's and as a sampled message's.
            "content": {
                "answered_by": self.name,
                "type": "text",
                "text": format!("sampled for {}", self.name),
            },
            "role": "assistant",
            "model": self.name,
            "roots": [{ "uri": format!("file:///{}", self.name) }],
        })))
    }

    async fn close_stream(&self, _retry: Duration) {}

    fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }
}

#[async_trait]
impl StateDoor for TestLine {
    async fn request(&self, _request: StateRequest) -> Outcome {
        Outcome::Error(no_session())
    }
}
