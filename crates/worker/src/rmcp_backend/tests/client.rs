use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use rmcp::ServerHandler;
use serde_json::{Value, json};
use shoal_ports::{
    AskId, Call, CallEventKind, CallId, CallOutcome, Caller, ClientInfo, ForwardedHeaders,
    LogFilter, MayStart, PoolCatalog, Principal, Repeat, RunningCall, StateRequest, Worker,
    WorkerId,
};
use shoal_protocol::{LogLevel, Method, Outcome, RawJson, Revision};
use tokio::time::Instant;

use crate::rmcp_backend::RmcpBackend;
use crate::{PoolConfig, WorkerRuntime};

const EVERYTHING: &str = r#"{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}}"#;

pub(super) struct Client<H: ServerHandler> {
    pub(super) backend: Arc<RmcpBackend<H>>,
    pub(super) worker: Arc<WorkerRuntime>,
    capabilities: RawJson,
}

#[derive(Debug)]
pub(super) enum Said {
    Told(Method, Value),
    Asked(AskId, Method, Value),
    Kept(AskId, StateRequest),
    CloseStream(Duration),
    Ended(CallOutcome),
}

impl<H: ServerHandler> Client<H> {
    pub(super) async fn of(handler: H) -> Self {
        Self::of_pool(handler, PoolConfig::new("pool")).await
    }

    pub(super) async fn of_pool(handler: H, config: PoolConfig) -> Self {
        let backend = RmcpBackend::start(handler).await;
        let id = WorkerId::new("worker");
        Self {
            worker: WorkerRuntime::start(id, config, Arc::clone(&backend) as _).await,
            backend,
            capabilities: RawJson::from_static(EVERYTHING),
        }
    }

    pub(super) fn that_cannot_be_asked(mut self) -> Self {
        self.capabilities = RawJson::from_static("{}");
        self
    }

    pub(super) fn tool_for(&self, name: &str, change: impl FnOnce(&mut Caller)) -> Call {
        let mut call = self.tool(name, json!({}));
        change(Arc::get_mut(&mut call.caller).expect("nobody else has the caller yet"));
        call
    }

    pub(super) fn request(&self, method: Method, params: Value) -> Call {
        Call {
            id: CallId::generate(),
            method,
            params: Some(RawJson::of(&params)),
            caller: Arc::new(Caller {
                principal: Principal::new("somebody"),
                session: None,
                revision: Revision::V2025_11_25,
                client_info: Some(ClientInfo::new(RawJson::from_static(
                    r#"{"name":"tester","version":"7"}"#,
                ))),
                capabilities: self.capabilities.clone(),
                headers: ForwardedHeaders::default(),
                grant: None,
            }),
            progress_token: None,
            log: LogFilter::AtLeast(LogLevel::Debug),
            deadline: Instant::now() + Duration::from_secs(60),
            repeat: Repeat::Never,
            trace: None,
            binding: None,
            may_start: MayStart::Yes,
            epoch: None,
        }
    }

    pub(super) fn tool(&self, name: &str, arguments: Value) -> Call {
        let params =
            json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": "t" } });
        self.request(Method::ToolsCall, params)
    }

    pub(super) async fn start(&self, call: Call) -> RunningCall {
        self.worker
            .start(call, None)
            .await
            .expect("the worker takes the call")
    }

    pub(super) async fn call(&self, name: &str, arguments: Value) -> CallOutcome {
        ended(&mut self.start(self.tool(name, arguments)).await).await
    }

    pub(super) async fn text(&self, name: &str, arguments: Value) -> String {
        text(&self.call(name, arguments).await)
    }

    pub(super) fn catalog(&self) -> Arc<PoolCatalog> {
        let announcement = self.worker.announcement();
        let announced = announcement.borrow();
        Arc::clone(announced.catalog.as_ref().expect("the worker is ready"))
    }

    pub(super) async fn catalog_with(
        &self,
        mut condition: impl FnMut(&PoolCatalog) -> bool,
    ) -> Arc<PoolCatalog> {
        let mut announcement = self.worker.announcement();
        let announced = announcement
            .wait_for(|it| it.catalog.as_ref().is_some_and(|it| condition(it)))
            .await
            .expect("the worker is there");
        announced.catalog.clone().expect("as waited for")
    }
}

pub(super) async fn said(running: &mut RunningCall) -> Said {
    fn value(params: Option<RawJson>) -> Value {
        params.map_or(Value::Null, |params| params.read().expect("JSON"))
    }
    let mut kind = running.events.next().await.expect("the call goes on").kind;
    while matches!(kind, CallEventKind::Withdrawn { .. }) {
        kind = running.events.next().await.expect("the call goes on").kind;
    }
    match kind {
        CallEventKind::Notification { method, params } => Said::Told(method, value(params)),
        CallEventKind::Ask {
            ask,
            method,
            params,
        } => Said::Asked(ask, method, value(params)),
        CallEventKind::State { ask, request } => Said::Kept(ask, request),
        CallEventKind::Withdrawn { ask } => unreachable!("{ask:?}"),
        CallEventKind::CloseStream { retry } => Said::CloseStream(retry),
        CallEventKind::Finished(outcome) => Said::Ended(outcome),
    }
}

pub(super) async fn ended(running: &mut RunningCall) -> CallOutcome {
    loop {
        if let Said::Ended(outcome) = said(running).await {
            return outcome;
        }
    }
}

pub(super) fn answer(running: &RunningCall, ask: AskId, answer: &Value) {
    let answered = running
        .control
        .answer(ask, Outcome::Result(RawJson::of(answer)));
    let answered = answered.now_or_never();
    assert_eq!(answered, Some(true), "the question is open");
}

pub(super) fn result(outcome: &CallOutcome) -> Value {
    match outcome {
        CallOutcome::Result(result) => result.read().expect("JSON"),
        other => panic!("expected a result, got {other:?}"),
    }
}

pub(super) fn text(outcome: &CallOutcome) -> String {
    let result = result(outcome);
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text in {result}"))
        .to_owned()
}

pub(super) async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
