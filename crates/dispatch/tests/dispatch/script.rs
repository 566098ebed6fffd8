use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{AskId, CallEvent, CallEventKind, CallOutcome, StateRequest};
use shoal_protocol::{Method, Outcome, RawJson};
use tokio::sync::{mpsc, watch};

pub(crate) struct Script {
    pub(super) events: mpsc::Sender<CallEvent>,
    pub(super) sequence: u64,
    pub(super) answers: mpsc::UnboundedReceiver<(AskId, Outcome)>,
    pub(super) open: Arc<Mutex<HashSet<AskId>>>,
    pub(super) cancelled: watch::Receiver<Option<String>>,
}

impl Script {
    async fn send(&mut self, kind: CallEventKind) {
        self.sequence += 1;
        let sequence = self.sequence;
        let _ = self.events.send(CallEvent { sequence, kind }).await;
    }

    pub(crate) async fn result(&mut self, result: &str) {
        let result = RawJson::parse_text(result.to_owned().into()).unwrap();
        self.send(CallEventKind::Finished(CallOutcome::Result(result)))
            .await;
    }

    pub(crate) async fn say(&mut self, said: &str) {
        let result = format!(r#"{{"content":[],"structuredContent":{said}}}"#);
        self.result(&result).await;
    }

    pub(crate) async fn outcome(&mut self, outcome: CallOutcome) {
        self.send(CallEventKind::Finished(outcome)).await;
    }

    pub(crate) async fn notify(&mut self, method: Method, params: &'static str) {
        let params = Some(RawJson::from_static(params));
        self.send(CallEventKind::Notification { method, params })
            .await;
    }

    pub(crate) async fn put(&mut self, ask: u64, method: Method, params: &'static str) {
        let params = Some(RawJson::from_static(params));
        let ask = AskId(ask);
        self.open.lock().insert(ask);
        self.send(CallEventKind::Ask {
            ask,
            method,
            params,
        })
        .await;
    }

    pub(crate) async fn withdraw(&mut self, ask: u64) {
        let ask = AskId(ask);
        self.open.lock().remove(&ask);
        self.send(CallEventKind::Withdrawn { ask }).await;
    }

    pub(crate) async fn elicit(&mut self, ask: u64) -> String {
        self.put(ask, Method::Elicit, r#"{"message":"?"}"#).await;
        self.answer().await.1
    }

    pub(crate) async fn ask_session(&mut self, ask: u64, request: StateRequest) {
        let ask = AskId(ask);
        self.open.lock().insert(ask);
        self.send(CallEventKind::State { ask, request }).await;
    }

    pub(crate) async fn keep(&mut self, ask: u64, request: StateRequest) -> String {
        self.ask_session(ask, request).await;
        self.answer().await.1
    }

    pub(crate) async fn answer(&mut self) -> (AskId, String) {
        let (ask, answer) = self.answers.recv().await.unwrap();
        match answer {
            Outcome::Result(result) => (ask, result.as_str().to_owned()),
            Outcome::Error(error) => (ask, error.to_string()),
        }
    }

    pub(crate) async fn close_stream(&mut self) {
        let retry = Duration::from_millis(100);
        self.send(CallEventKind::CloseStream { retry }).await;
    }

    pub(crate) async fn cancelled(&mut self) -> String {
        let reason = self.cancelled.wait_for(Option::is_some).await.unwrap();
        reason.clone().unwrap()
    }
}
