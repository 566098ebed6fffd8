//! A worker whose calls do what the test says.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::{
    Announcement, Answered, AskId, BusEvent, Call, CallControl, CallEvent, CallEventKind,
    CallEvents, CallFailure, CallId, CallOutcome, PoolCatalog, RunningCall, SessionId, Worker,
    WorkerId, WorkerLoad, answered,
};
use shoal_protocol::{Method, Outcome, RawJson, RpcError};
use tokio::sync::{broadcast, watch};

/// What a call's name makes of it.
type Script = dyn Fn(&Call) -> Plan + Send + Sync;

/// What becomes of a call that is started.
pub(crate) enum Plan {
    /// It runs until the test ends it.
    Run,
    /// It ends at once.
    End(CallOutcome),
    /// It is refused.
    Refuse(CallFailure),
    /// `start` returns only when the test lets it.
    Stall,
    /// The same, and then it is refused.
    StallAndRefuse,
}

pub(crate) struct ScriptedWorker {
    pub(crate) id: WorkerId,
    pub(crate) announcement: watch::Sender<Announcement>,
    pub(crate) news: broadcast::Sender<BusEvent>,
    pub(crate) load: Mutex<WorkerLoad>,
    calls: watch::Sender<HashMap<CallId, Arc<Record>>>,
    pub(crate) started: Mutex<Vec<Call>>,
    pub(crate) attached: Mutex<Vec<(CallId, u64)>>,
    pub(crate) log: watch::Sender<Vec<String>>,
    pub(crate) let_start: watch::Sender<bool>,
    script: Box<Script>,
}

/// A call that runs.
pub(crate) struct Record(watch::Sender<State>);

#[derive(Default)]
struct State {
    events: Vec<CallEvent>,
    reader: u64,
    read: u64,
    open: Vec<AskId>,
    answers: Vec<(AskId, String)>,
    cancelled: Vec<String>,
    let_go: bool,
}

impl ScriptedWorker {
    pub(crate) fn new(
        id: &str,
        script: impl Fn(&Call) -> Plan + Send + Sync + 'static,
    ) -> Arc<Self> {
        let id = WorkerId::new(id);
        Arc::new(Self {
            announcement: watch::Sender::new(Announcement {
                worker: id.clone(),
                pool: "tools".into(),
                catalog: Some(Arc::new(PoolCatalog::default())),
                detail: None,
            }),
            id,
            news: broadcast::Sender::new(16),
            load: Mutex::new(WorkerLoad {
                running: 0,
                queued: 0,
                capacity: 8,
            }),
            calls: watch::Sender::default(),
            started: Mutex::default(),
            attached: Mutex::default(),
            log: watch::Sender::default(),
            let_start: watch::Sender::new(false),
            script: Box::new(script),
        })
    }

    /// One whose calls run until the test ends them.
    pub(crate) fn running(id: &str) -> Arc<Self> {
        Self::new(id, |_| Plan::Run)
    }

    /// One whose calls answer with their parameters.
    pub(crate) fn echoing(id: &str) -> Arc<Self> {
        Self::new(id, |call| {
            let params = call.params.clone();
            Plan::End(CallOutcome::Result(
                params.unwrap_or(RawJson::from_static("null")),
            ))
        })
    }

    /// A call, once it has been started.
    pub(crate) async fn call(&self, id: CallId) -> Arc<Record> {
        let mut calls = self.calls.subscribe();
        let calls = calls.wait_for(|calls| calls.contains_key(&id)).await;
        Arc::clone(&calls.unwrap()[&id])
    }

    /// How often a call has been started.
    pub(crate) fn starts(&self, id: CallId) -> usize {
        self.started
            .lock()
            .iter()
            .filter(|call| call.id == id)
            .count()
    }

    /// Waits until the log has a line.
    pub(crate) async fn logged(&self, line: &str) {
        let mut log = self.log.subscribe();
        log.wait_for(|log| log.iter().any(|known| known == line))
            .await
            .unwrap();
    }

    async fn stall(&self) {
        let mut let_start = self.let_start.subscribe();
        let _ = let_start.wait_for(|start| *start).await;
    }

    fn note(&self, line: String) {
        self.log.send_modify(|log| log.push(line));
    }
}

#[async_trait]
impl Worker for ScriptedWorker {
    fn announcement(&self) -> watch::Receiver<Announcement> {
        self.announcement.subscribe()
    }

    fn news(&self) -> broadcast::Receiver<BusEvent> {
        self.news.subscribe()
    }

    fn load(&self) -> WorkerLoad {
        *self.load.lock()
    }

    async fn start(&self, call: Call) -> Result<RunningCall, CallFailure> {
        let id = call.id;
        self.started.lock().push(call.clone());
        let known = self.calls.borrow().get(&id).map(Arc::clone);
        if let Some(record) = known {
            return Ok(record.read(0, &self.id));
        }
        let record = Arc::new(Record(watch::Sender::default()));
        match (self.script)(&call) {
            Plan::Refuse(failure) => return Err(failure),
            Plan::End(outcome) => record.finish(outcome),
            Plan::Stall => self.stall().await,
            Plan::StallAndRefuse => {
                self.stall().await;
                let reason = "on second thoughts".to_owned();
                return Err(CallFailure::NotExecuted { reason });
            }
            Plan::Run => {}
        }
        self.calls.send_modify(|calls| {
            calls.insert(id, Arc::clone(&record));
        });
        Ok(record.read(0, &self.id))
    }

    async fn attach(&self, call: CallId, after: u64) -> Result<RunningCall, CallFailure> {
        self.attached.lock().push((call, after));
        let known = self.calls.borrow().get(&call).map(Arc::clone);
        match known {
            Some(record) => Ok(record.read(after, &self.id)),
            None => Err(CallFailure::OutcomeUnknown {
                reason: "never heard of it".to_owned(),
            }),
        }
    }

    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        self.note(format!("subscribe {uri}"));
        if uri.starts_with("no:") {
            return Err(RpcError::invalid_params("no such resource"));
        }
        Ok(())
    }

    async fn unsubscribe(&self, uri: &str) {
        self.note(format!("unsubscribe {uri}"));
    }

    async fn end_session(&self, session: &SessionId) {
        self.note(format!("end {session}"));
    }
}

impl Record {
    fn read(self: &Arc<Self>, after: u64, worker: &WorkerId) -> RunningCall {
        let mut number = 0;
        self.0.send_modify(|state| {
            state.reader += 1;
            number = state.reader;
        });
        let changes = self.0.subscribe();
        let record = Arc::clone(self);
        let events = futures::stream::unfold((changes, after), move |(mut changes, after)| {
            let record = Arc::clone(&record);
            async move {
                let state = changes.wait_for(|state| {
                    let next = state.events.iter().any(|event| event.sequence > after);
                    next || state.reader != number || state.let_go
                });
                let state = state.await.ok()?;
                if state.reader != number || state.let_go {
                    return None;
                }
                let mut events = state.events.iter();
                let event = events.find(|event| event.sequence > after)?.clone();
                drop(state);
                record.0.send_modify(|state| state.read = event.sequence);
                let after = event.sequence;
                Some((event, (changes, after)))
            }
        });
        let ended = futures::StreamExt::scan(events, false, |over, event| {
            let done = std::mem::replace(over, matches!(event.kind, CallEventKind::Finished(_)));
            futures::future::ready((!done).then_some(event))
        });
        RunningCall {
            events: CallEvents::from_stream(ended),
            control: Arc::new(Control {
                record: Arc::clone(self),
                number,
            }),
            worker: Some(worker.clone()),
        }
    }

    fn push(&self, kind: CallEventKind) {
        self.0.send_modify(|state| {
            let sequence = state.events.len() as u64 + 1;
            state.events.push(CallEvent { sequence, kind });
        });
    }

    /// Sends `notifications/progress` with a number.
    pub(crate) fn progress(&self, number: usize) {
        self.notify(RawJson::of(&number));
    }

    /// Sends `notifications/progress`.
    pub(crate) fn notify(&self, params: RawJson) {
        self.push(CallEventKind::Notification {
            method: Method::Progress,
            params: Some(params),
        });
    }

    pub(crate) fn close_stream(&self) {
        self.push(CallEventKind::CloseStream {
            retry: Duration::from_millis(1500),
        });
    }

    /// Asks the client something.
    pub(crate) fn ask(&self, ask: u64, params: RawJson) {
        let ask = AskId(ask);
        self.0.send_modify(|state| state.open.push(ask));
        self.push(CallEventKind::Ask {
            ask,
            method: Method::Elicit,
            params: Some(params),
        });
    }

    /// Ends the call.
    pub(crate) fn finish(&self, outcome: CallOutcome) {
        self.push(CallEventKind::Finished(outcome));
    }

    /// Ends the call with a number.
    pub(crate) fn result(&self, number: usize) {
        self.finish(CallOutcome::Result(RawJson::of(&number)));
    }

    /// Lets a slow reader go.
    pub(crate) fn let_go(&self) {
        self.0.send_modify(|state| state.let_go = true);
    }

    /// The first answer that came, once there is one.
    pub(crate) async fn answer(&self) -> (AskId, String) {
        let mut state = self.0.subscribe();
        let state = state.wait_for(|state| !state.answers.is_empty()).await;
        state.unwrap().answers[0].clone()
    }

    /// How many answers were taken.
    pub(crate) fn answers(&self) -> usize {
        self.0.borrow().answers.len()
    }

    /// Why the call was cancelled, once it was.
    pub(crate) async fn cancelled(&self) -> String {
        let mut state = self.0.subscribe();
        let state = state.wait_for(|state| !state.cancelled.is_empty()).await;
        state.unwrap().cancelled[0].clone()
    }

    /// The number of the last event that was read.
    pub(crate) fn last_read(&self) -> u64 {
        self.0.borrow().read
    }
}

struct Control {
    record: Arc<Record>,
    number: u64,
}

impl CallControl for Control {
    fn answer(&self, ask: AskId, answer: Outcome) -> Answered {
        let mut open = false;
        self.record.0.send_modify(|state| {
            open = state.reader == self.number && state.open.contains(&ask);
            if open {
                state.open.retain(|known| *known != ask);
                let text = match answer {
                    Outcome::Result(result) => result.as_str().to_owned(),
                    Outcome::Error(error) => error.message,
                };
                state.answers.push((ask, text));
            }
        });
        answered(open)
    }

    fn is_replaced(&self) -> bool {
        self.record.0.borrow().reader != self.number
    }

    fn cancel(&self, reason: &str) {
        self.record.0.send_modify(|state| {
            if state.reader == self.number {
                state.cancelled.push(reason.to_owned());
            }
        });
    }
}
