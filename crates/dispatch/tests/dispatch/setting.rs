use std::sync::Arc;
use std::time::Duration;

use futures::future::Either;
use serde_json::{Value, json};
use shoal_dispatch::{Config, Dispatch};
use shoal_ports::{
    Binding, Call, CallEventKind, CallFailure, CallId, CallOutcome, CallPlan, Caller,
    Dispatcher as _, ForwardedHeaders, LogFilter, MayStart, Planned, PoolCatalog, Principal,
    RawObjectOrEmpty, Repeat, RunningCall, SessionId, Started, WorkerId,
};
use shoal_protocol::{
    KeyRing, LogLevel, Method, RawJson, RequestMeta, Revision, RpcError, SealKey,
};
use tokio::time::Instant;

use crate::fake_worker::FakeWorker;

pub(crate) const ALL_CAPABILITIES: &str = r#"{"elicitation":{},"sampling":{},"roots":{}}"#;

pub(crate) struct Setting {
    pub(crate) dispatch: Dispatch,
}

pub(crate) fn setting() -> Setting {
    configured(Config::default())
}

pub(crate) fn configured(config: Config) -> Setting {
    let keys = KeyRing::new(vec![SealKey::from_secret(b"the secret of every test")]);
    Setting {
        dispatch: Dispatch::new(config, keys),
    }
}

impl Setting {
    pub(crate) fn add(&self, worker: FakeWorker) -> Arc<FakeWorker> {
        let worker = Arc::new(worker);
        self.dispatch.add_worker(worker.clone());
        worker
    }

    pub(crate) async fn start(&self, call: Call) -> Started {
        start(&self.dispatch, call).await
    }

    pub(crate) fn start_now(&self, call: &Call) -> Option<Started> {
        let planned = match self.dispatch.plan(call.clone()) {
            Either::Left(planned) => planned.into_inner(),
            Either::Right(_) => return None,
        };
        let plan = match as_asked(planned, call.repeat) {
            Ok(plan) => plan,
            Err(answered) => return Some(answered),
        };
        match self.dispatch.start(&plan) {
            Either::Left(started) => Some(started.into_inner()),
            Either::Right(_) => None,
        }
    }

    pub(crate) async fn plan(&self, call: Call) -> CallPlan {
        self.dispatch.plan(call).await.expect("it is planned")
    }

    pub(crate) async fn outcome(&self, call: Call) -> CallOutcome {
        match self.start(call).await {
            Ok(mut running) => finish(&mut running).await.1,
            Err(failure) => CallOutcome::Failed(failure),
        }
    }

    pub(crate) async fn result(&self, call: Call) -> Value {
        result(self.outcome(call).await)
    }

    pub(crate) async fn error(&self, call: Call) -> RpcError {
        match self.outcome(call).await {
            CallOutcome::Error(error) | CallOutcome::Refused(error) => error,
            other => panic!("no error: {other:?}"),
        }
    }

    pub(crate) async fn failure(&self, call: Call) -> CallFailure {
        match self.outcome(call).await {
            CallOutcome::Failed(failure) => failure,
            other => panic!("no failure: {other:?}"),
        }
    }

    pub(crate) async fn until(&self, holds: impl Fn(&Dispatch) -> bool) {
        tokio::time::timeout(Duration::from_secs(60), async {
            while !holds(&self.dispatch) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await
        .expect("the state is reached");
    }
}

pub(crate) async fn start(dispatch: &Dispatch, call: Call) -> Started {
    let repeat = call.repeat;
    match as_asked(dispatch.plan(call).await, repeat) {
        Ok(plan) => dispatch.start(&plan).await,
        Err(answered) => answered,
    }
}

fn as_asked(planned: Planned, repeat: Repeat) -> Result<CallPlan, Started> {
    match planned {
        Ok(mut plan) => {
            plan.call.repeat = repeat;
            Ok(plan)
        }
        Err(CallOutcome::Failed(failure)) => Err(Err(failure)),
        Err(outcome) => Err(Ok(RunningCall::ended(outcome, None))),
    }
}

pub(crate) fn result(outcome: CallOutcome) -> Value {
    match outcome {
        CallOutcome::Result(result) => result.read().unwrap(),
        other => panic!("no result: {other:?}"),
    }
}

pub(crate) async fn finish(running: &mut RunningCall) -> (Vec<CallEventKind>, CallOutcome) {
    let mut before = Vec::new();
    let mut sequence = None;
    loop {
        let event = running
            .events
            .next()
            .await
            .expect("a call ends in Finished");
        assert!(sequence.is_none_or(|last: u64| event.sequence >= last));
        sequence = Some(event.sequence);
        match event.kind {
            CallEventKind::Finished(outcome) => {
                assert!(running.events.next().await.is_none());
                return (before, outcome);
            }
            other => before.push(other),
        }
    }
}

pub(crate) fn legacy(tool: &str, arguments: Value) -> Call {
    let params = json!({"name":tool,"arguments":arguments});
    call(Revision::V2025_11_25, Method::ToolsCall, params)
}

pub(crate) fn modern(tool: &str, arguments: Value) -> Call {
    let params = json!({"name":tool,"arguments":arguments});
    call(Revision::V2026_07_28, Method::ToolsCall, params)
}

pub(crate) fn call(revision: Revision, method: Method, params: Value) -> Call {
    let params = RawJson::of(&params);
    let caller = Caller {
        principal: Principal::new("alice"),
        session: (revision < Revision::V2026_07_28).then(SessionId::random),
        revision,
        client_info: None,
        capabilities: RawJson::from_static(ALL_CAPABILITIES),
        headers: ForwardedHeaders::default(),
        grant: None,
    };
    Call {
        id: CallId::generate(),
        method,
        progress_token: RequestMeta::of(Some(&params)).progress_token,
        params: Some(params),
        caller: Arc::new(caller),
        log: LogFilter::AtLeast(LogLevel::Debug),
        deadline: Instant::now() + Duration::from_secs(60),
        repeat: Repeat::Never,
        trace: None,
        binding: None,
        may_start: MayStart::Yes,
        epoch: None,
    }
}

pub(crate) trait CallExt: Sized {
    fn repeatable(self) -> Self;
    fn from(self, principal: &str) -> Self;
    fn able(self, capabilities: &'static str) -> Self;
    fn at(self, worker: &str) -> Self;
    fn with(self, name: &str, value: Value) -> Self;
}

impl CallExt for Call {
    fn repeatable(mut self) -> Self {
        self.repeat = Repeat::Safe;
        self
    }

    fn from(mut self, principal: &str) -> Self {
        Arc::make_mut(&mut self.caller).principal = Principal::new(principal);
        self
    }

    fn able(mut self, capabilities: &'static str) -> Self {
        Arc::make_mut(&mut self.caller).capabilities = RawJson::from_static(capabilities);
        self
    }

    fn at(mut self, worker: &str) -> Self {
        self.binding = Some(Binding {
            worker: WorkerId::new(worker),
            ledger: None,
        });
        self
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        let mut params: Value = self.params.as_ref().unwrap().read().unwrap();
        params[name] = value;
        self.params = Some(RawJson::of(&params));
        self.progress_token = RequestMeta::of(self.params.as_ref()).progress_token;
        self
    }
}

pub(crate) fn tools(names: &[&str]) -> PoolCatalog {
    let tools = names
        .iter()
        .map(|name| RawJson::of(&json!({"name":name,"inputSchema":{"type":"object"}})));
    PoolCatalog {
        server_info: Some(RawJson::from_static(r#"{"name":"fake","version":"1"}"#)),
        capabilities: RawObjectOrEmpty(RawJson::from_static(
            r#"{"tools":{},"resources":{},"prompts":{},"completions":{}}"#,
        )),
        tools: tools.collect(),
        ..PoolCatalog::default()
    }
}

pub(crate) fn items(items: Value) -> Vec<RawJson> {
    items.as_array().unwrap().iter().map(RawJson::of).collect()
}
