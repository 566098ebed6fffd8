use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use shoal_ports::{
    Announcement, Answered, AskId, Attach, Call, CallControl, CallFailure, CallId, CallOutcome,
    LedgerNumber, OwnLists, PoolCatalog, ResourceUpdated, RunningCall, SessionId, Worker,
    WorkerHere, WorkerId, WorkerLoad, answered,
};
use shoal_protocol::{Outcome, RpcError};
use tokio::sync::{broadcast, mpsc, watch};

pub(crate) use crate::script::Script;

type Tool = Arc<dyn Fn(Call, Script) -> BoxFuture<'static, ()> + Send + Sync>;
type Attached = Arc<dyn Fn(CallId, u64, Script) -> BoxFuture<'static, bool> + Send + Sync>;
type Here = Arc<dyn Fn(&Call) -> Option<CallOutcome> + Send + Sync>;

const OF_ANY_METHOD: &str =
    r#"{"content":[],"contents":[],"messages":[],"completion":{"values":[]}}"#;

pub(crate) const UPDATES: usize = 16;

pub(crate) struct FakeWorker {
    pub(crate) announcement: watch::Sender<Announcement>,
    updates: broadcast::Sender<ResourceUpdated>,
    pub(crate) own_lists: watch::Sender<OwnLists>,
    tool: Tool,
    here: Option<Here>,
    attach: Option<Attached>,
    forgetful: bool,
    still_open: Option<AskId>,
    refusals: Mutex<VecDeque<CallFailure>>,
    losses: AtomicUsize,
    pub(crate) replaced: Arc<AtomicBool>,
    readers: Arc<Mutex<HashMap<CallId, u64>>>,
    pub(crate) load: Mutex<WorkerLoad>,
    pub(crate) ledger: Mutex<Option<LedgerNumber>>,
    pub(crate) started: Mutex<Vec<Call>>,
    /// The ledger number of each start.
    pub(crate) ledgers: Mutex<Vec<Option<LedgerNumber>>>,
    pub(crate) attached: AtomicUsize,
    pub(crate) attachments: Mutex<Vec<(CallId, u64)>>,
    pub(crate) subscribed: Mutex<Vec<String>>,
    pub(crate) unsubscribed: Mutex<Vec<String>>,
    pub(crate) refuses_subscriptions: bool,
    pub(crate) acknowledges: Arc<watch::Sender<bool>>,
    /// A test holds this lock to make subscription requests wait.
    pub(crate) subscribing: tokio::sync::Mutex<()>,
    pub(crate) ended: Mutex<Vec<SessionId>>,
}

struct Control {
    open: Arc<Mutex<HashSet<AskId>>>,
    answers: mpsc::UnboundedSender<(AskId, Outcome)>,
    cancelled: watch::Sender<Option<String>>,
    replaced: Arc<AtomicBool>,
    acknowledges: Arc<watch::Sender<bool>>,
    call: CallId,
    name: u64,
    readers: Arc<Mutex<HashMap<CallId, u64>>>,
}

impl FakeWorker {
    pub(crate) fn new(id: &str, pool: &str, catalog: PoolCatalog) -> Self {
        let announcement = Announcement {
            worker: WorkerId::new(id),
            pool: pool.into(),
            catalog: Some(Arc::new(catalog)),
            detail: None,
        };
        Self {
            announcement: watch::Sender::new(announcement),
            updates: broadcast::Sender::new(UPDATES),
            own_lists: watch::Sender::default(),
            tool: Arc::new(|_, mut script| {
                Box::pin(async move { script.result(OF_ANY_METHOD).await })
            }),
            here: None,
            attach: None,
            forgetful: false,
            still_open: None,
            refusals: Mutex::default(),
            losses: AtomicUsize::new(0),
            replaced: Arc::default(),
            readers: Arc::default(),
            load: Mutex::new(WorkerLoad {
                running: 0,
                queued: 0,
                capacity: 8,
            }),
            ledger: Mutex::default(),
            started: Mutex::default(),
            ledgers: Mutex::default(),
            attached: AtomicUsize::new(0),
            attachments: Mutex::default(),
            subscribed: Mutex::default(),
            unsubscribed: Mutex::default(),
            refuses_subscriptions: false,
            acknowledges: Arc::new(watch::Sender::new(true)),
            subscribing: tokio::sync::Mutex::default(),
            ended: Mutex::default(),
        }
    }

    pub(crate) fn on_call<F>(
        mut self,
        tool: impl Fn(Call, Script) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tool = Arc::new(move |call, script| Box::pin(tool(call, script)));
        self
    }

    /// Runs the worker in this process. A call that starts without waiting ends with the outcome of
    /// `ends`, or runs its tool for `None`.
    pub(crate) fn here(
        mut self,
        ends: impl Fn(&Call) -> Option<CallOutcome> + Send + Sync + 'static,
    ) -> Self {
        self.here = Some(Arc::new(ends));
        self
    }

    /// Sets what the worker does when a reader attaches. `false` means "unknown call".
    pub(crate) fn on_attach<F>(
        mut self,
        attach: impl Fn(CallId, u64, Script) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        self.attach = Some(Arc::new(move |call, after, script| {
            Box::pin(attach(call, after, script))
        }));
        self
    }

    pub(crate) fn forgetful(mut self) -> Self {
        self.forgetful = true;
        self
    }

    pub(crate) fn still_open(mut self, ask: u64) -> Self {
        self.still_open = Some(AskId(ask));
        self
    }

    pub(crate) fn refusing(self, failure: CallFailure) -> Self {
        self.refuse(failure);
        self
    }

    pub(crate) fn refuse(&self, failure: CallFailure) {
        self.refusals.lock().push_back(failure);
    }

    pub(crate) fn lose(&self) {
        self.losses.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) async fn refuse_later(&self, failure: CallFailure) {
        let before = self.calls();
        while self.losses.load(Ordering::SeqCst) > 0 && self.calls() == before {
            tokio::task::yield_now().await;
        }
        self.refuse(failure);
    }

    pub(crate) fn connect(&self, connected: bool) {
        self.load.lock().capacity = if connected { 8 } else { 0 };
        self.announcement.send_modify(|_| ());
    }

    pub(crate) fn announce(&self, catalog: Option<PoolCatalog>, detail: Option<&str>) {
        self.announcement.send_modify(|said| {
            said.catalog = catalog.map(Arc::new);
            said.detail = detail.map(str::to_owned);
        });
    }

    pub(crate) fn report(&self, event: ResourceUpdated) {
        self.updates.send(event).unwrap();
    }

    pub(crate) fn calls(&self) -> usize {
        self.started.lock().len()
    }

    pub(crate) fn last_params(&self) -> serde_json::Value {
        let started = self.started.lock();
        let params = started.last().unwrap().params.as_ref();
        params.unwrap().read().unwrap()
    }

    fn id(&self) -> WorkerId {
        self.announcement.borrow().worker.clone()
    }

    fn take(&self, call: &Call) -> Result<(), CallFailure> {
        self.started.lock().push(call.clone());
        self.refusals.lock().pop_front().map_or(Ok(()), Err)
    }

    fn run(&self, call: Call) -> RunningCall {
        let (running, script) = self.running(call.id, self.takes_over(call.id), 0);
        tokio::spawn((self.tool)(call, script));
        running
    }

    fn takes_over(&self, call: CallId) -> u64 {
        let mut readers = self.readers.lock();
        let name = readers.values().max().unwrap_or(&0) + 1;
        readers.insert(call, name);
        name
    }

    fn running(&self, call: CallId, name: u64, after: u64) -> (RunningCall, Script) {
        let (events, receiver) = mpsc::channel(16);
        let (answers, answered) = mpsc::unbounded_channel();
        let cancelled = watch::Sender::new(None);
        let open: Arc<Mutex<HashSet<AskId>>> = Arc::default();
        let script = Script {
            events,
            sequence: after,
            answers: answered,
            open: open.clone(),
            cancelled: cancelled.subscribe(),
        };
        let running = RunningCall {
            events: receiver.into(),
            control: Arc::new(Control {
                open,
                answers,
                cancelled,
                replaced: self.replaced.clone(),
                acknowledges: self.acknowledges.clone(),
                call,
                name,
                readers: self.readers.clone(),
            }),
            worker: Some(self.id()),
        };
        (running, script)
    }
}

#[async_trait]
impl Worker for FakeWorker {
    fn announcement(&self) -> watch::Receiver<Announcement> {
        self.announcement.subscribe()
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    fn own_lists(&self) -> watch::Receiver<OwnLists> {
        self.own_lists.subscribe()
    }

    fn load(&self) -> WorkerLoad {
        *self.load.lock()
    }

    fn ledger(&self) -> Option<LedgerNumber> {
        *self.ledger.lock()
    }

    async fn start(
        &self,
        call: Call,
        ledger: Option<LedgerNumber>,
    ) -> Result<RunningCall, CallFailure> {
        self.ledgers.lock().push(ledger);
        self.take(&call)?;
        let lost = |left: usize| left.checked_sub(1);
        let order = Ordering::SeqCst;
        if self.losses.fetch_update(order, order, lost).is_ok() {
            return Ok(RunningCall::lost(self.id()));
        }
        Ok(self.run(call))
    }

    fn here(&self) -> Option<&dyn WorkerHere> {
        self.here.as_ref().map(|_| self as _)
    }

    async fn attach(&self, attach: Attach) -> Result<RunningCall, CallFailure> {
        let Attach { call, after, .. } = attach;
        let reader = match attach.reader {
            Some(reader) => reader,
            None => self.takes_over(call),
        };
        self.attached.fetch_add(1, Ordering::SeqCst);
        self.attachments.lock().push((call, after));
        let unknown = CallFailure::OutcomeUnknown {
            reason: "unknown call".into(),
        };
        let known = !self.forgetful || self.calls() > 0;
        let attach = self.attach.clone().filter(|_| known).ok_or(unknown)?;
        self.readers.lock().entry(call).or_insert(reader);
        let (running, script) = self.running(call, reader, after);
        if !running.control.is_replaced() {
            script.open.lock().extend(self.still_open);
            tokio::spawn(attach(call, after, script));
        }
        Ok(running)
    }

    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        self.subscribed.lock().push(uri.to_owned());
        let _answering = self.subscribing.lock().await;
        match self.refuses_subscriptions {
            true => Err(RpcError::invalid_params("no")),
            false => Ok(()),
        }
    }

    async fn unsubscribe(&self, uri: &str) {
        self.unsubscribed.lock().push(uri.to_owned());
        let _answering = self.subscribing.lock().await;
    }

    async fn end_session(&self, session: &SessionId) {
        self.ended.lock().push(session.clone());
    }
}

impl WorkerHere for FakeWorker {
    fn start_now(
        &self,
        call: Call,
        ledger: Option<LedgerNumber>,
    ) -> Result<RunningCall, CallFailure> {
        self.ledgers.lock().push(ledger);
        self.take(&call)?;
        Ok(match self.here.as_ref().and_then(|ends| ends(&call)) {
            Some(outcome) => RunningCall::ended(outcome, Some(self.id())),
            None => self.run(call),
        })
    }
}

impl CallControl for Control {
    fn answer(&self, ask: AskId, answer: Outcome) -> Answered {
        if !self.open.lock().remove(&ask) {
            return answered(false);
        }
        match self.answers.send((ask, answer)) {
            Ok(()) if *self.acknowledges.borrow() => answered(true),
            Ok(()) => {
                let mut acknowledges = self.acknowledges.subscribe();
                Box::pin(async move { acknowledges.wait_for(|says| *says).await.is_ok() })
            }
            Err(_) => Box::pin(std::future::pending()),
        }
    }

    fn reader(&self) -> Option<u64> {
        Some(self.name)
    }

    fn cancel(&self, reason: &str) {
        self.cancelled.send_replace(Some(reason.to_owned()));
    }

    fn is_replaced(&self) -> bool {
        let latest = self.readers.lock().get(&self.call) == Some(&self.name);
        !latest || self.replaced.load(Ordering::SeqCst)
    }
}
