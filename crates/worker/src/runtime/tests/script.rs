use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use shoal_ports::{
    Call, CallEvent, CallEventKind, CallId, CallOutcome, Caller, ForwardedHeaders, LogFilter,
    MayStart, PoolCatalog, Principal, Repeat, ResourceUpdated, RunningCall, SessionId, WorkerId,
};
use shoal_protocol::{LogLevel, Method, RawJson, Revision, RpcError};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::{Backend, BackendState, CallContext, PoolConfig, WorkerRuntime};

type Act = Box<dyn Fn(Call, CallContext) -> BoxFuture<'static, CallOutcome> + Send + Sync>;

pub(super) struct Script {
    act: Act,
    pub(super) runs: AtomicUsize,
    pub(super) shut_down: AtomicUsize,
    pub(super) state: watch::Sender<BackendState>,
    pub(super) own: Mutex<Vec<SessionId>>,
    pub(super) subscribed: Mutex<Vec<String>>,
    updates: broadcast::Sender<ResourceUpdated>,
}

impl Script {
    pub(super) fn new<F, R>(act: F) -> Arc<Self>
    where
        F: Fn(CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = CallOutcome> + Send + 'static,
    {
        Self::by_call(move |_, context| act(context))
    }

    pub(super) fn by_call<F, R>(act: F) -> Arc<Self>
    where
        F: Fn(Call, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = CallOutcome> + Send + 'static,
    {
        Arc::new(Self {
            act: Box::new(move |call, context| act(call, context).boxed()),
            runs: AtomicUsize::new(0),
            shut_down: AtomicUsize::new(0),
            state: watch::Sender::new(ready()),
            own: Mutex::default(),
            subscribed: Mutex::default(),
            updates: broadcast::Sender::new(8),
        })
    }

    pub(super) fn quick() -> Arc<Self> {
        Self::new(|_| async { done() })
    }

    pub(super) fn obedient() -> Arc<Self> {
        Self::new(|context| async move {
            context.cancelled().cancelled().await;
            CallOutcome::Error(RpcError::internal("told to stop"))
        })
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    pub(super) async fn worker(self: &Arc<Self>, config: PoolConfig) -> Arc<WorkerRuntime> {
        WorkerRuntime::start(WorkerId::new("worker"), config, Arc::clone(self) as _).await
    }
}

#[async_trait]
impl Backend for Script {
    fn state(&self) -> watch::Receiver<BackendState> {
        self.state.subscribe()
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    async fn run(&self, call: &Call, context: &CallContext) -> CallOutcome {
        self.runs.fetch_add(1, Ordering::SeqCst);
        (self.act)(call.clone(), context.clone()).await
    }

    fn has_session(&self, session: &SessionId) -> bool {
        self.own.lock().contains(session)
    }

    fn sessions(&self) -> usize {
        self.own.lock().len()
    }

    async fn end_session(&self, session: &SessionId) {
        self.own.lock().retain(|own| own != session);
    }

    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        self.subscribed.lock().push(uri.to_owned());
        Ok(())
    }

    async fn unsubscribe(&self, _uri: &str) {}

    async fn shutdown(&self) {
        self.shut_down.fetch_add(1, Ordering::SeqCst);
    }
}

pub(super) fn ready() -> BackendState {
    BackendState {
        catalog: Some(Arc::new(PoolCatalog::default())),
        detail: None,
    }
}

pub(in crate::runtime) fn done() -> CallOutcome {
    CallOutcome::Result(RawJson::from_static(r#"{"done":true}"#))
}

pub(super) fn small() -> PoolConfig {
    PoolConfig {
        concurrency: 1,
        queue: 0,
        ..PoolConfig::new("pool")
    }
}

/// A journaled call, whose client can be asked everything.
pub(in crate::runtime) fn call() -> Call {
    Call {
        id: CallId::generate(),
        method: Method::ToolsCall,
        params: Some(RawJson::from_static(r#"{"name":"tool"}"#)),
        caller: Arc::new(Caller {
            principal: Principal::anonymous(),
            session: None,
            revision: Revision::V2025_11_25,
            client_info: None,
            capabilities: RawJson::from_static(r#"{"sampling":{},"elicitation":{},"roots":{}}"#),
            headers: ForwardedHeaders::default(),
            grant: None,
        }),
        progress_token: None,
        log: LogFilter::AtLeast(LogLevel::Warning),
        deadline: Instant::now() + Duration::from_secs(60),
        repeat: Repeat::Never,
        trace: None,
        binding: None,
        may_start: MayStart::Yes,
        epoch: None,
    }
}

pub(super) fn call_of(principal: &str, tool: &str) -> Call {
    let mut call = call();
    Arc::make_mut(&mut call.caller).principal = Principal::new(principal);
    call.params = Some(RawJson::of(&serde_json::json!({ "name": tool })));
    call
}

pub(super) fn tool(call: &Call) -> String {
    let name = call
        .params
        .as_ref()
        .and_then(|params| params.member("name")?.string());
    name.expect("a tool is named")
}

pub(in crate::runtime) fn repeatable() -> Call {
    Call {
        repeat: Repeat::Safe,
        ..call()
    }
}

pub(super) async fn event(running: &mut RunningCall) -> CallEvent {
    running.events.next().await.expect("the call goes on")
}

pub(super) async fn outcome(running: &mut RunningCall) -> CallOutcome {
    loop {
        if let CallEventKind::Finished(outcome) = event(running).await.kind {
            return outcome;
        }
    }
}

pub(super) fn is_done(outcome: &CallOutcome) -> bool {
    matches!(outcome, CallOutcome::Result(result) if result.as_str() == r#"{"done":true}"#)
}

pub(super) async fn progress(context: &CallContext, step: usize) {
    let params = RawJson::of(&serde_json::json!({ "progressToken": 1, "progress": step }));
    context.notify(Method::Progress, Some(params)).await;
}

pub(super) async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
