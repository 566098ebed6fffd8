use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use shoal_ports::{
    Answered, AskId, CallControl, CallEvent, CallEventKind, CallEvents, CallOutcome, RunningCall,
    StateRequest, WorkerId, answered,
};
use shoal_protocol::{Method, Outcome, RawJson};
use tokio::sync::watch;

pub(crate) struct Record(pub(crate) watch::Sender<State>);

#[derive(Default)]
pub(crate) struct State {
    events: Vec<CallEvent>,
    reader: u64,
    name: u64,
    read: u64,
    open: Vec<AskId>,
    answers: Vec<(AskId, String)>,
    cancelled: Vec<String>,
    let_go: bool,
    works_on: bool,
}

impl Record {
    pub(crate) fn read(self: &Arc<Self>, after: u64, worker: &WorkerId) -> RunningCall {
        let name = self.0.borrow().reader + 1;
        self.0.send_modify(|state| state.name = name);
        self.read_as(name, after, worker)
    }

    pub(crate) fn read_as(
        self: &Arc<Self>,
        name: u64,
        after: u64,
        worker: &WorkerId,
    ) -> RunningCall {
        let mut number = 0;
        self.0.send_modify(|state| {
            if state.name == name {
                state.reader += 1;
                number = state.reader;
            }
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
                name,
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

    pub(crate) fn progress(&self, number: usize) {
        self.notify(RawJson::of(&number));
    }

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

    pub(crate) fn ask(&self, ask: u64, params: RawJson) {
        let ask = AskId(ask);
        self.0.send_modify(|state| state.open.push(ask));
        self.push(CallEventKind::Ask {
            ask,
            method: Method::Elicit,
            params: Some(params),
        });
    }

    pub(crate) fn state(&self, ask: u64, request: StateRequest) {
        let ask = AskId(ask);
        self.0.send_modify(|state| state.open.push(ask));
        self.push(CallEventKind::State { ask, request });
    }

    pub(crate) fn finish(&self, outcome: CallOutcome) {
        self.push(CallEventKind::Finished(outcome));
    }

    pub(crate) fn result(&self, number: usize) {
        self.finish(CallOutcome::Result(RawJson::of(&number)));
    }

    pub(crate) fn works_on(&self, works_on: bool) {
        self.0.send_modify(|state| state.works_on = works_on);
    }

    pub(crate) fn let_go(&self) {
        self.0.send_modify(|state| state.let_go = true);
    }

    pub(crate) async fn answer(&self) -> (AskId, String) {
        let mut state = self.0.subscribe();
        let state = state.wait_for(|state| !state.answers.is_empty()).await;
        state.unwrap().answers[0].clone()
    }

    pub(crate) fn answers(&self) -> usize {
        self.0.borrow().answers.len()
    }

    pub(crate) async fn cancelled(&self) -> String {
        let mut state = self.0.subscribe();
        let state = state.wait_for(|state| !state.cancelled.is_empty()).await;
        state.unwrap().cancelled[0].clone()
    }

    pub(crate) fn cancels(&self) -> usize {
        self.0.borrow().cancelled.len()
    }

    pub(crate) fn last_read(&self) -> u64 {
        self.0.borrow().read
    }
}

struct Control {
    record: Arc<Record>,
    number: u64,
    name: u64,
}

impl CallControl for Control {
    fn answer(&self, ask: AskId, answer: Outcome) -> Answered {
        let mut open = false;
        self.record.0.send_modify(|state| {
            let reads = state.reader == self.number;
            let waits = reads && state.open.contains(&ask);
            open = waits || reads && state.answers.iter().any(|(known, _)| *known == ask);
            if waits {
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

    fn over(&self) -> Option<BoxFuture<'static, ()>> {
        let mut state = self.record.0.subscribe();
        let works_on = state.borrow().works_on;
        works_on.then(|| {
            Box::pin(async move { drop(state.wait_for(|state| !state.works_on).await) }) as _
        })
    }

    fn is_replaced(&self) -> bool {
        self.record.0.borrow().reader != self.number
    }

    fn reader(&self) -> Option<u64> {
        Some(self.name)
    }

    fn cancel(&self, reason: &str) {
        self.record.0.send_modify(|state| {
            if state.reader == self.number {
                state.cancelled.push(reason.to_owned());
            }
        });
    }
}
