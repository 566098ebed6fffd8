use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use shoal_ports::{
    Answered, AskId, Binding, Bound, Call, CallControl, CallEvent, CallEventKind, CallEvents,
    CallFailure, CallId, CallOutcome, CallPlan, Caller, Dispatcher, Drawn, LedgerNumber, OwnLists,
    Planning, Repeat, ResourceUpdated, Route, RunningCall, ServerFacts, SessionId, SessionRef,
    SettledFacts, Starting, WorkerId, answered, at_once, later,
};
use shoal_protocol::{
    HeaderMismatch, Method, Outcome, RawJson, RawObject, Request, RpcError, code,
};
use tokio::sync::{broadcast, mpsc, watch};

pub(crate) const UPDATES: usize = 16;
pub(crate) const LARGE: usize = 32 << 20;

pub(crate) struct FakeDispatcher {
    pub(crate) facts: watch::Sender<Arc<ServerFacts>>,
    pub(crate) not_ready: Mutex<Option<CallFailure>>,
    pub(crate) lacks: Mutex<Option<CallFailure>>,
    pub(crate) updates: broadcast::Sender<ResourceUpdated>,
    pub(crate) subscriptions: watch::Sender<HashMap<String, usize>>,
    pub(crate) calls: Mutex<Vec<Call>>,
    pub(crate) acknowledged: Mutex<Vec<(WorkerId, CallId)>>,
    pub(crate) cancelled: watch::Sender<Vec<String>>,
    pub(crate) under_way: watch::Sender<bool>,
    running: mpsc::UnboundedSender<RunningFake>,
    started: tokio::sync::Mutex<mpsc::UnboundedReceiver<RunningFake>>,
    pub(crate) gate: Arc<tokio::sync::Semaphore>,
}

pub(crate) struct RunningFake {
    events: mpsc::Sender<CallEvent>,
    sequence: u64,
}

impl RunningFake {
    pub(crate) async fn send(&mut self, kind: CallEventKind) {
        self.sequence += 1;
        let sequence = self.sequence;
        self.events
            .send(CallEvent { sequence, kind })
            .await
            .unwrap();
    }

    pub(crate) async fn log(&mut self, params: &'static str) {
        let params = Some(RawJson::from_static(params));
        let method = Method::LogMessage;
        self.send(CallEventKind::Notification { method, params })
            .await;
    }

    pub(crate) async fn finish(&mut self, result: &'static str) {
        let result = CallOutcome::Result(RawJson::from_static(result));
        self.send(CallEventKind::Finished(result)).await;
    }
}

struct FakeControl {
    cancelled: watch::Sender<Vec<String>>,
    under_way: watch::Sender<bool>,
}

impl CallControl for FakeControl {
    fn answer(&self, _ask: AskId, _answer: Outcome) -> Answered {
        answered(false)
    }

    fn bound(&self) -> BoxFuture<'static, Option<Bound>> {
        let bound = Bound {
            call: CallId::generate(),
            pool: "p".into(),
            worker: Binding {
                worker: WorkerId::new("w"),
                ledger: Some(LedgerNumber {
                    incarnation: 1,
                    number: 1,
                }),
            },
        };
        let mut under_way = self.under_way.subscribe();
        Box::pin(async move {
            under_way.wait_for(|under_way| !under_way).await.ok()?;
            Some(bound)
        })
    }

    fn cancel(&self, reason: &str) {
        self.cancelled
            .send_modify(|cancelled| cancelled.push(reason.to_owned()));
    }
}

impl FakeDispatcher {
    pub(crate) fn new() -> Arc<Self> {
        let capabilities =
            r#"{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}}"#;
        let facts = ServerFacts {
            server_info: RawJson::from_static(r#"{"name":"fake","version":"1"}"#),
            capabilities: RawJson::from_static(capabilities),
            instructions: Some("be kind".into()),
            versions: [1, 1, 1],
            headers: Arc::default(),
            own: OwnLists::default(),
        };
        let (running, started) = mpsc::unbounded_channel();
        Arc::new(Self {
            facts: watch::Sender::new(Arc::new(facts)),
            not_ready: Mutex::default(),
            lacks: Mutex::default(),
            updates: broadcast::Sender::new(UPDATES),
            subscriptions: watch::Sender::default(),
            calls: Mutex::default(),
            acknowledged: Mutex::default(),
            cancelled: watch::Sender::default(),
            under_way: watch::Sender::default(),
            running,
            started: tokio::sync::Mutex::new(started),
            gate: Arc::new(tokio::sync::Semaphore::new(0)),
        })
    }

    pub(crate) async fn call(&self) -> RunningFake {
        self.started.lock().await.recv().await.unwrap()
    }

    pub(crate) async fn was_cancelled(&self) -> String {
        let mut cancelled = self.cancelled.subscribe();
        let cancelled = cancelled.wait_for(|reasons| !reasons.is_empty()).await;
        cancelled.unwrap()[0].clone()
    }

    pub(crate) fn change(&self, versions: [u64; 3]) {
        self.facts.send_modify(|facts| {
            let mut changed = ServerFacts::clone(facts);
            changed.versions = versions;
            *facts = Arc::new(changed);
        });
    }

    pub(crate) async fn subscribed_to(&self, uris: &[&str]) {
        let mut subscriptions = self.subscriptions.subscribe();
        let same = |now: &HashMap<String, usize>| {
            now.len() == uris.len() && uris.iter().all(|uri| now.contains_key(*uri))
        };
        subscriptions.wait_for(same).await.unwrap();
    }
}

pub(crate) fn just_started() -> CallFailure {
    CallFailure::NotReady {
        reason: "this node has just started".to_owned(),
        retry_after: Duration::from_millis(2500),
    }
}

fn tool(params: Option<&RawJson>) -> String {
    params
        .and_then(RawObject::of)
        .and_then(|params| params.get("name")?.string())
        .unwrap_or_default()
}

fn begin(
    tool: &str,
    started: &mpsc::UnboundedSender<RunningFake>,
    control: FakeControl,
) -> Result<RunningCall, CallFailure> {
    let retry_after = Duration::from_millis(2500);
    let reason = "the queue is full".to_owned();
    match tool {
        "overloaded" => {
            return Err(CallFailure::Overloaded {
                reason,
                retry_after,
            });
        }
        "not-executed" => return Err(CallFailure::NotExecuted { reason }),
        "not-ready" => return Err(just_started()),
        _ => {}
    }
    let error = |code| CallOutcome::Error(RpcError::new(code, "as the tool says"));
    let limit = Duration::from_secs(300);
    let outcome = match tool {
        "" | "echo" | "write" | "regional" => Some(CallOutcome::Result(RawJson::from_static(
            r#"{"resultType":"complete","content":[]}"#,
        ))),
        "large" | "large-write" => {
            let result = format!(
                r#"{{"resultType":"complete","pad":"{}"}}"#,
                "x".repeat(LARGE)
            );
            Some(CallOutcome::Result(RawJson::from_valid(result.into())))
        }
        "unknown" => Some(CallOutcome::Refused(RpcError::invalid_params(
            "unknown tool",
        ))),
        "no-method" => Some(CallOutcome::Refused(RpcError::method_not_found(
            "prompts/get",
        ))),
        "no-capability" => Some(error(code::MISSING_CLIENT_CAPABILITY)),
        "backend-no-method" => Some(error(code::METHOD_NOT_FOUND)),
        "backend-overloaded" => Some(error(code::OVERLOADED)),
        "backend-not-executed" => Some(error(code::NOT_EXECUTED)),
        "deadline" => Some(CallOutcome::Failed(CallFailure::DeadlineExceeded { limit })),
        _ => None,
    };
    let events = match outcome {
        Some(outcome) => CallEvents::finished(outcome),
        None => {
            let (events, receiver) = mpsc::channel(2);
            started
                .send(RunningFake {
                    events,
                    sequence: 0,
                })
                .unwrap();
            receiver.into()
        }
    };
    Ok(RunningCall {
        events,
        control: Arc::new(control),
        worker: None,
    })
}

#[async_trait]
impl Dispatcher for FakeDispatcher {
    fn facts(&self) -> watch::Receiver<Arc<ServerFacts>> {
        self.facts.subscribe()
    }

    async fn settled_facts(&self) -> Result<SettledFacts, CallFailure> {
        if let Some(why) = self.not_ready.lock().clone() {
            return Err(why);
        }
        Ok(SettledFacts {
            facts: self.facts.borrow().clone(),
            lacks: self.lacks.lock().clone(),
        })
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    fn check_param_headers(
        &self,
        _: &Caller,
        params: Option<&RawJson>,
        header: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<(), RpcError> {
        if tool(params) == "regional" && header("region").as_deref() != Some(b"eu") {
            let text = "the header Mcp-Param-region is missing".to_owned();
            return Err(HeaderMismatch(text).into());
        }
        Ok(())
    }

    fn requires_task(&self, _: &Caller, params: Option<&RawJson>) -> bool {
        tool(params) == "only-task"
    }

    fn may_be_task(&self, params: Option<&RawJson>) -> bool {
        tool(params) != "never-task"
    }

    fn plan(&self, mut call: Call) -> Planning {
        call.repeat = match tool(call.params.as_ref()).as_str() {
            "write" | "large-write" | "long-write" => Repeat::Never,
            _ => Repeat::Safe,
        };
        let name = tool(call.params.as_ref());
        let session = call.caller.session.is_some();
        let plan = CallPlan {
            route: session.then(|| Route {
                pool: "p".into(),
                tool: Some(name.as_str().into()),
                params: call.params.clone(),
                hold: None,
                rule: None,
            }),
            worker: session.then(|| Binding {
                worker: WorkerId::new("w"),
                ledger: Some(LedgerNumber {
                    incarnation: 1,
                    number: 1,
                }),
            }),
            call,
        };
        match name.as_str() {
            _ if plan.call.method.may_be_of_extension() => {
                let unknown = RpcError::method_not_found(plan.call.method.as_str());
                at_once(Err(CallOutcome::Refused(unknown)))
            }
            "late" => later(async { Ok(plan) }),
            "absent" => at_once(Err(CallOutcome::Refused(RpcError::invalid_params(
                "absent",
            )))),
            "nobody" => at_once(Err(CallOutcome::Failed(CallFailure::NotExecuted {
                reason: "nobody is there".to_owned(),
            }))),
            _ => at_once(Ok(plan)),
        }
    }

    fn draw(&self, _: &SessionRef, request: &Request, tried: &[WorkerId]) -> Drawn {
        match (&request.method, tool(request.params.as_ref()).as_str()) {
            (method, _) if !method.runs_on_backend() => return Drawn::Repeatable,
            (_, "nobody") => return Drawn::Nothing,
            (_, "write" | "large-write" | "long-write") => {}
            _ => return Drawn::Repeatable,
        }
        let mut next = ["w", "w2"].map(WorkerId::new).into_iter();
        let Some(worker) = next.find(|worker| !tried.contains(worker)) else {
            return Drawn::Nothing;
        };
        Drawn::Bound(Binding {
            worker,
            ledger: Some(LedgerNumber {
                incarnation: 1,
                number: 1,
            }),
        })
    }

    fn replan(&self, _: &CallPlan, _: &[WorkerId]) -> Option<Binding> {
        unreachable!("an edge plans no call of a session")
    }

    fn start(&self, plan: &CallPlan) -> Starting {
        let tool = tool(plan.call.params.as_ref());
        self.calls.lock().push(plan.call.clone());
        let running = self.running.clone();
        let control = FakeControl {
            cancelled: self.cancelled.clone(),
            under_way: self.under_way.clone(),
        };
        if tool != "slow-start" {
            return at_once(begin(&tool, &running, control));
        }
        let gate = self.gate.clone();
        later(async move {
            gate.acquire().await.unwrap().forget();
            begin(&tool, &running, control)
        })
    }

    async fn resume(&self, _call: Call, _after: u64) -> Result<RunningCall, CallFailure> {
        unreachable!("an edge resumes nothing")
    }

    fn acknowledge(&self, worker: &WorkerId, call: CallId) {
        self.acknowledged.lock().push((worker.clone(), call));
    }

    async fn subscribe(&self, _: Option<&Caller>, uri: &str) -> Result<(), RpcError> {
        if uri.starts_with("never") {
            std::future::pending::<()>().await;
        }
        if uri.starts_with("unknown:") {
            return Err(RpcError::invalid_params("no such resource"));
        }
        self.subscriptions
            .send_modify(|uris| *uris.entry(uri.to_owned()).or_default() += 1);
        Ok(())
    }

    async fn unsubscribe(&self, uri: &str) {
        self.subscriptions.send_modify(|uris| {
            let count = uris.get_mut(uri).unwrap();
            *count -= 1;
            if *count == 0 {
                uris.remove(uri);
            }
        });
    }

    async fn end_session(&self, _session: &SessionId) {}
}
