#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "shared by test binaries that each use a part; a failed step is the report"
)]

pub mod counted;
mod fate;
pub mod flaky;
pub mod over;
pub mod unsteady;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dashmap::DashMap;
use futures::FutureExt as _;
use shoal_ports::memory::MemoryStore;
use shoal_ports::{
    AdoptCall, Answered, AskId, Binding, Call, CallControl, CallEvent, CallEventKind, CallFailure,
    CallId, CallOutcome, CallPlan, Caller, Delivered, Dispatcher, Epoch, EventStream, MayStart,
    NodeId, OpenSession, OwnLists, Planning, Post, Principal, Repeat, ResourceUpdated, Route,
    RunningCall, ServerFacts, SessionGateway, SessionId, SessionRef, SessionTransport,
    SettledFacts, Starting, StreamItem, StreamSettings, TaskClient, WorkerId, answered, at_once,
    later,
};
use shoal_protocol::{
    Body, EventId, Message, Method, Outcome, RawJson, RawObject, Request, RequestId, RpcError,
};
use shoal_session::{SessionConfig, Sessions};
use tokio::sync::{broadcast, mpsc, watch};

pub use fate::{Fate, Fated};
use over::Over;

/// A dispatcher that tests control. They drive calls of tools named `stream-…`.
pub struct Script {
    pub facts: watch::Sender<Arc<ServerFacts>>,
    pub not_ready: parking_lot::Mutex<Option<CallFailure>>,
    pub lacks: parking_lot::Mutex<Option<CallFailure>>,
    pub updates: broadcast::Sender<ResourceUpdated>,
    pub calls: DashMap<String, Arc<Driven>>,
    arrived: watch::Sender<usize>,
    pub begins_anew: std::sync::atomic::AtomicBool,
    pub started: std::sync::atomic::AtomicUsize,
    pub starts: DashMap<String, usize>,
    pub planned: std::sync::atomic::AtomicUsize,
    /// If set, every plan ends in this answer.
    pub denies: parking_lot::Mutex<Option<CallOutcome>>,
    pub workers: watch::Sender<bool>,
    pub left: parking_lot::Mutex<Option<WorkerId>>,
    pub refuses: parking_lot::Mutex<Option<WorkerId>>,
    pub heard: parking_lot::Mutex<Option<Epoch>>,
    pub forgotten: parking_lot::Mutex<Vec<CallId>>,
    pub alone: parking_lot::Mutex<Option<WorkerId>>,
    pub replans: std::sync::atomic::AtomicBool,
    pub offered: parking_lot::Mutex<Vec<Option<WorkerId>>>,
    pub starts_unknown: std::sync::atomic::AtomicBool,
    /// Delays the worker's confirmation of a start.
    pub late: watch::Sender<bool>,
    pub acknowledged: parking_lot::Mutex<Vec<(WorkerId, CallId)>>,
    pub subscribed: DashMap<String, i64>,
    pub asked: parking_lot::Mutex<Vec<String>>,
    pub holds: watch::Sender<bool>,
    /// How many refusals of subscriptions are left, and how many were made.
    pub refusals: watch::Sender<(usize, usize)>,
}

pub struct Driven {
    id: CallId,
    events: parking_lot::Mutex<Option<mpsc::Sender<CallEvent>>>,
    sent: parking_lot::Mutex<Vec<CallEvent>>,
    pub answers: parking_lot::Mutex<Vec<(AskId, Outcome)>>,
    /// Delays the confirmation of an answer.
    pub late_word: watch::Sender<bool>,
    pub cancelled: watch::Sender<Option<String>>,
    readers: std::sync::atomic::AtomicU64,
}

struct Steer {
    driven: Arc<Driven>,
    number: u64,
}

impl CallControl for Steer {
    fn answer(&self, ask: AskId, answer: Outcome) -> Answered {
        self.driven.answer(ask, answer)
    }

    fn cancel(&self, reason: &str) {
        self.driven.cancel(reason);
    }

    fn is_replaced(&self) -> bool {
        self.driven.readers.load(SeqCst) != self.number
    }
}

impl Driven {
    pub async fn send(&self, kind: CallEventKind) {
        let event = {
            let mut sent = self.sent.lock();
            let sequence = sent.len() as u64 + 1;
            sent.push(CallEvent { sequence, kind });
            sent[sent.len() - 1].clone()
        };
        let sender = self.events.lock().clone().expect("the call runs");
        let _ = sender.send(event).await;
    }

    pub async fn attach(self: &Arc<Self>, after: u64) -> RunningCall {
        let number = self.readers.fetch_add(1, SeqCst) + 1;
        let (sender, events) = mpsc::channel(64);
        let missed: Vec<_> = self
            .sent
            .lock()
            .iter()
            .skip(after as usize)
            .cloned()
            .collect();
        let mut open = true;
        for event in missed {
            open &= !matches!(event.kind, CallEventKind::Finished(_));
            sender.send(event).await.expect("there is room");
        }
        *self.events.lock() = open.then_some(sender);
        RunningCall {
            events: events.into(),
            control: Arc::new(Steer {
                driven: self.clone(),
                number,
            }),
            worker: Some(WorkerId::new("w")),
        }
    }

    pub async fn answer_to(&self, ask: AskId) -> Outcome {
        let answered = async {
            loop {
                let known = |(known, _): &&(AskId, Outcome)| *known == ask;
                let answer = self.answers.lock().iter().find(known).cloned();
                match answer {
                    Some((_, answer)) => return answer,
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
        };
        within(answered).await
    }

    pub async fn progress(&self, n: u64) {
        let params = Some(RawJson::from_valid(format!(r#"{{"progress":{n}}}"#).into()));
        self.send(CallEventKind::Notification {
            method: Method::Progress,
            params,
        })
        .await;
    }

    pub async fn finish(&self, result: &'static str) {
        let outcome = CallOutcome::Result(RawJson::from_static(result));
        self.send(CallEventKind::Finished(outcome)).await;
        self.events.lock().take();
    }

    pub fn runs(&self) -> bool {
        self.events.lock().is_some()
    }

    pub fn reads(&self) -> u64 {
        self.readers.load(SeqCst)
    }

    pub fn break_off(&self) {
        self.events.lock().take();
    }
}

impl CallControl for Driven {
    fn answer(&self, ask: AskId, answer: Outcome) -> Answered {
        let mut answers = self.answers.lock();
        let open = answers.iter().all(|(known, _)| *known != ask);
        if open {
            answers.push((ask, answer));
        }
        let mut late = self.late_word.subscribe();
        if !*late.borrow_and_update() {
            return answered(open);
        }
        Box::pin(async move { late.wait_for(|late| !*late).await.is_ok() && open })
    }
    fn cancel(&self, reason: &str) {
        self.cancelled.send_replace(Some(reason.to_owned()));
    }
}

impl Script {
    pub fn new() -> Arc<Self> {
        let facts = ServerFacts {
            server_info: RawJson::from_static(r#"{"name":"test","version":"1"}"#),
            capabilities: RawJson::from_static(r#"{"tools":{},"resources":{},"logging":{}}"#),
            instructions: None,
            versions: [1; 3],
            headers: Arc::default(),
            own: OwnLists::default(),
        };
        Arc::new(Self {
            facts: watch::Sender::new(Arc::new(facts)),
            not_ready: parking_lot::Mutex::default(),
            lacks: parking_lot::Mutex::default(),
            updates: broadcast::Sender::new(16),
            calls: DashMap::new(),
            arrived: watch::Sender::new(0),
            begins_anew: false.into(),
            started: 0.into(),
            starts: DashMap::new(),
            planned: 0.into(),
            denies: parking_lot::Mutex::default(),
            workers: watch::Sender::new(false),
            left: parking_lot::Mutex::default(),
            refuses: parking_lot::Mutex::default(),
            heard: parking_lot::Mutex::default(),
            forgotten: parking_lot::Mutex::default(),
            alone: parking_lot::Mutex::default(),
            replans: false.into(),
            offered: parking_lot::Mutex::default(),
            starts_unknown: false.into(),
            late: watch::Sender::new(false),
            acknowledged: parking_lot::Mutex::default(),
            subscribed: DashMap::new(),
            asked: parking_lot::Mutex::default(),
            holds: watch::Sender::new(false),
            refusals: watch::Sender::default(),
        })
    }

    pub async fn call(&self, tool: &str) -> Arc<Driven> {
        let mut arrived = self.arrived.subscribe();
        loop {
            arrived.mark_unchanged();
            if let Some(call) = self.calls.get(tool) {
                return call.value().clone();
            }
            within(arrived.changed()).await.unwrap();
        }
    }

    fn hear(&self, call: &Call) -> Result<(), CallFailure> {
        let mut heard = self.heard.lock();
        match *heard {
            Some(epoch) if call.epoch < Some(epoch) => Err(CallFailure::Superseded { epoch }),
            Some(_) => {
                *heard = call.epoch;
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn begin(&self, call: Call) -> Result<RunningCall, CallFailure> {
        self.hear(&call)?;
        let name = tool(call.params.as_ref());
        let worker = call.binding.as_ref().map(|to| to.worker.clone());
        self.offered.lock().push(worker.clone());
        if name == "full" {
            return Err(full());
        }
        if worker.is_some() && worker == *self.left.lock() {
            return Err(CallFailure::WorkerAway {
                reason: "its worker is not connected".into(),
            });
        }
        if worker.is_some() && worker == *self.refuses.lock() {
            return Err(refused());
        }
        if self.forgotten.lock().contains(&call.id) {
            return Err(forgotten());
        }
        let known = self.calls.get(&name).map(|known| known.value().clone());
        if let Some(driven) = known.filter(|driven| driven.id == call.id) {
            return Ok(driven.attach(0).await);
        }
        let driven = Arc::new(Driven {
            id: call.id,
            events: parking_lot::Mutex::default(),
            sent: parking_lot::Mutex::default(),
            answers: parking_lot::Mutex::default(),
            late_word: watch::Sender::new(false),
            cancelled: watch::Sender::new(None),
            readers: 0.into(),
        });
        *self.starts.entry(name.clone()).or_default() += 1;
        let running = driven.attach(0).await;
        if name == "echo" {
            driven.finish(r#"{"content":[],"n":1.0}"#).await;
        } else {
            self.started.fetch_add(1, SeqCst);
            self.calls.insert(name, driven.clone());
            self.arrived.send_modify(|arrived| *arrived += 1);
        }
        Ok(running)
    }

    pub fn forget_capabilities(&self) {
        self.facts.send_modify(|facts| {
            let mut changed = ServerFacts::clone(facts);
            changed.capabilities = RawJson::from_static("{}");
            *facts = Arc::new(changed);
        });
        *self.lacks.lock() = Some(just_started());
    }

    pub fn change_lists(&self) {
        self.facts.send_modify(|facts| {
            let mut changed = (**facts).clone();
            changed.versions[0] += 1;
            *facts = Arc::new(changed);
        });
    }
}

fn full() -> CallFailure {
    CallFailure::Overloaded {
        reason: "the pool is full".to_owned(),
        retry_after: Duration::from_secs(1),
    }
}

fn refused() -> CallFailure {
    CallFailure::NotExecuted {
        reason: "it refuses".into(),
    }
}

fn forgotten() -> CallFailure {
    CallFailure::OutcomeUnknown {
        reason: "its worker may have run it before, and its result is gone".into(),
    }
}

pub fn unknown_tool() -> CallOutcome {
    CallOutcome::Refused(RpcError::invalid_params("unknown tool"))
}

fn tool(params: Option<&RawJson>) -> String {
    let params = params.and_then(RawObject::of).unwrap_or_default();
    params
        .get("name")
        .and_then(|name| name.string())
        .unwrap_or_default()
}

#[async_trait]
impl Dispatcher for Script {
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
        _: Option<&RawJson>,
        _: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<(), RpcError> {
        Ok(())
    }

    fn requires_task(&self, _: &Caller, params: Option<&RawJson>) -> bool {
        tool(params) == "stream-only"
    }

    fn says_may_be_task(&self, _: &Caller, params: Option<&RawJson>) -> bool {
        tool(params) != "stream-never"
    }

    fn plan(&self, mut call: Call) -> Planning {
        let name = tool(call.params.as_ref());
        self.planned.fetch_add(1, SeqCst);
        if let Some(answer) = self.denies.lock().clone() {
            return at_once(Err(answer));
        }
        let is_bound = call.binding.is_some();
        call.repeat = match is_bound || name.starts_with("stream") {
            true => Repeat::Never,
            false => Repeat::Safe,
        };
        match name.as_str() {
            "stream-unknown" => return at_once(Err(unknown_tool())),
            "stream-full" => return at_once(Err(CallOutcome::Failed(full()))),
            _ => {}
        }
        let plan = CallPlan {
            call,
            route: None,
            worker: (!is_bound).then(|| Binding {
                worker: WorkerId::new("w"),
                ledger: None,
            }),
        };
        if !name.starts_with("stream-late") {
            return at_once(Ok(plan));
        }
        let mut workers = self.workers.subscribe();
        later(async move {
            let there = workers.wait_for(|there| *there).await;
            there.map_err(|_| CallOutcome::Failed(full()))?;
            Ok(plan)
        })
    }

    fn takes(&self, worker: &WorkerId, _: &CallPlan) -> bool {
        *self.alone.lock() != Some(worker.clone())
    }

    fn replan(&self, _: &CallPlan, tried: &[WorkerId]) -> Option<Binding> {
        let next = ["w", "w2"].map(WorkerId::new);
        let worker = next.into_iter().find(|worker| !tried.contains(worker))?;
        let ledger = None;
        self.replans
            .load(SeqCst)
            .then_some(Binding { worker, ledger })
    }

    fn start(&self, plan: &CallPlan) -> Starting {
        let begun = self
            .begin(plan.call.clone())
            .now_or_never()
            .expect("at once");
        let mut late = self.late.subscribe();
        if !*late.borrow_and_update() {
            return at_once(begun);
        }
        later(async move {
            late.wait_for(|late| !*late)
                .await
                .expect("the test lets it arrive");
            begun
        })
    }

    async fn resume(&self, call: Call, after: u64) -> Result<RunningCall, CallFailure> {
        self.hear(&call)?;
        let worker = call.binding.as_ref().map(|to| to.worker.clone());
        if worker.is_some() && worker == *self.refuses.lock() {
            return Err(refused());
        }
        if self.forgotten.lock().contains(&call.id) {
            return Err(forgotten());
        }
        if self.begins_anew.load(SeqCst) {
            self.calls.remove(&tool(call.params.as_ref()));
            return self.begin(call).await;
        }
        let known = self.calls.get(&tool(call.params.as_ref()));
        match known.map(|known| known.value().clone()) {
            Some(driven) if driven.id == call.id => Ok(driven.attach(after).await),
            _ if call.may_start == MayStart::No => Err(CallFailure::Cancelled),
            _ if self.starts_unknown.load(SeqCst) => self.begin(call).await,
            _ => Err(CallFailure::OutcomeUnknown {
                reason: "its worker is gone".into(),
            }),
        }
    }

    fn acknowledge(&self, worker: &WorkerId, call: CallId) {
        self.acknowledged.lock().push((worker.clone(), call));
    }

    async fn subscribe(&self, _: Option<&Caller>, uri: &str) -> Result<(), RpcError> {
        self.asked.lock().push(uri.to_owned());
        assert!(!uri.starts_with("panic"), "this panic is part of the test");
        tokio::task::yield_now().await;
        let mut holds = self.holds.subscribe();
        holds.wait_for(|holds| !*holds).await.unwrap();
        if uri.starts_with("bad") {
            return Err(RpcError::invalid_params("no such resource"));
        }
        let refused = self.refusals.send_if_modified(|(left, refused)| {
            let refuses = *left > 0;
            (*left, *refused) = (left.saturating_sub(1), *refused + usize::from(refuses));
            refuses
        });
        if refused {
            return Err(RpcError::new(50_301, "the pool is not there yet"));
        }
        *self.subscribed.entry(uri.to_owned()).or_default() += 1;
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn unsubscribe(&self, uri: &str) {
        tokio::task::yield_now().await;
        *self.subscribed.entry(uri.to_owned()).or_default() -= 1;
        tokio::task::yield_now().await;
    }

    async fn end_session(&self, _: &SessionId) {}
}

pub struct Bench {
    pub script: Arc<Script>,
    pub sessions: Sessions,
    pub store: shoal_ports::Store,
}

impl Bench {
    pub fn new(config: SessionConfig) -> Self {
        let store = MemoryStore::new(StreamSettings::default()).into_store();
        Self::on(store, config)
    }

    pub fn with_fate(config: SessionConfig) -> (Self, Arc<parking_lot::Mutex<Fate>>) {
        let mut store = MemoryStore::new(StreamSettings::default()).into_store();
        let saves = Arc::new(parking_lot::Mutex::new(Fate::Works));
        store.directory = Arc::new(Over(Arc::new(Fated {
            inner: store.directory.clone(),
            saves: saves.clone(),
        })));
        (Self::on(store, config), saves)
    }

    pub fn on(store: shoal_ports::Store, config: SessionConfig) -> Self {
        let script = Script::new();
        let node = NodeId::new("test");
        let sessions = Sessions::start(config, store.clone(), script.clone(), node);
        Self {
            script,
            sessions,
            store,
        }
    }

    pub fn another_node(&self, name: &str) -> Sessions {
        let config = SessionConfig::default();
        let (store, script) = (self.store.clone(), self.script.clone());
        Sessions::start(config, store, script, NodeId::new(name))
    }

    pub async fn open(&self, principal: &str, version: &str) -> SessionRef {
        let open = initialize(principal, version);
        let principal = open.principal.clone();
        let opened = self.sessions.open(open).await.unwrap();
        SessionRef::new(opened.session, principal)
    }
    pub async fn post(&self, to: &SessionRef, json: &str) -> Delivered {
        self.sessions.deliver(to, post(json)).await.unwrap()
    }

    pub async fn call(&self, to: &SessionRef, id: u64, tool: &str) -> Delivered {
        self.post(to, &call(id, tool)).await
    }

    pub async fn stream(&self, to: &SessionRef, id: u64, tool: &str) -> EventStream {
        match self.call(to, id, tool).await {
            Delivered::Stream(stream) => stream,
            other => panic!("expected a stream, got {other:?}"),
        }
    }

    pub async fn json(&self, to: &SessionRef, json: &str) -> String {
        match self.post(to, json).await {
            Delivered::Json(text) => String::from_utf8(text.to_vec()).unwrap(),
            other => panic!("expected JSON, got {other:?}"),
        }
    }
}

pub fn just_started() -> CallFailure {
    CallFailure::NotReady {
        reason: "this node has just started".to_owned(),
        retry_after: Duration::from_millis(2500),
    }
}

pub fn initialize(principal: &str, version: &str) -> OpenSession {
    let Message::Request(initialize) = Message::parse(&text(&format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{"roots":{{}}}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    )))
    .unwrap() else {
        panic!()
    };
    OpenSession {
        principal: Principal::new(principal),
        transport: SessionTransport::Streamable,
        initialize: Some(initialize),
        trace: None,
    }
}

pub fn call(id: u64, tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
}

pub fn post(json: &str) -> Post {
    Post::new(Body::parse(&text(json), 64).unwrap())
}

pub fn bound(id: u64, tool: &str) -> Post {
    let binding = Binding {
        worker: WorkerId::new("w"),
        ledger: None,
    };
    Post {
        binding: Some(binding),
        ..post(&call(id, tool))
    }
}

pub fn adopted(tool: &str) -> AdoptCall {
    AdoptCall {
        call: CallId::generate(),
        request: Request {
            id: RequestId::from_string("seven"),
            method: Method::ToolsCall,
            params: Some(RawJson::of(&serde_json::json!({"name": tool}))),
        },
        repeat: Repeat::Never,
        route: Route {
            pool: "p".into(),
            tool: Some(tool.into()),
            params: None,
            hold: None,
            rule: None,
        },
        binding: Binding {
            worker: WorkerId::new("w"),
            ledger: None,
        },
        client: TaskClient {
            client_info: None,
            capabilities: RawJson::from_static("{}"),
        },
        repeated: false,
    }
}

pub fn again(post: &Post) -> Post {
    Post {
        repeated: true,
        ..post.clone()
    }
}

fn text(json: &str) -> Bytes {
    Bytes::copy_from_slice(json.as_bytes())
}

pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("in time")
}

#[derive(Debug, Default)]
pub struct Read {
    pub primed: Option<EventId>,
    pub events: Vec<(EventId, String)>,
    pub passing: Vec<String>,
    pub texts: Vec<String>,
    pub retry: Option<Duration>,
    pub moved: bool,
}

impl Read {
    pub fn cursor(&self) -> EventId {
        self.events
            .last()
            .map(|(id, _)| *id)
            .or(self.primed)
            .expect("an id was seen")
    }
}

pub async fn read(stream: &mut EventStream, count: usize) -> Read {
    let mut read = Read::default();
    while read.texts.len() < count {
        match within(stream.items.recv()).await {
            Some(StreamItem::Event { id, data }) => {
                let text = String::from_utf8(data.to_vec()).unwrap();
                read.texts.push(text.clone());
                read.events.push((id, text));
            }
            Some(StreamItem::Passing { data }) => {
                let text = String::from_utf8(data.to_vec()).unwrap();
                read.texts.push(text.clone());
                read.passing.push(text);
            }
            Some(StreamItem::Prime { id, .. }) => read.primed = Some(id),
            Some(StreamItem::Retry(retry)) => read.retry = Some(retry),
            Some(StreamItem::Moved) => read.moved = true,
            None => break,
        }
    }
    read
}

pub async fn read_all(stream: &mut EventStream) -> Read {
    read(stream, usize::MAX).await
}
