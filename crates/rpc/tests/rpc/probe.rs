use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{
    AskId, Attach, Call, CallEvent, CallEventKind, CallFailure, CallId, CallOutcome, Caller,
    ForwardedHeaders, LogFilter, MayStart, Principal, Repeat, RunningCall, Worker,
};
use shoal_protocol::{Method, Outcome, RawJson, Revision};
use shoal_rpc::proto::types::v1 as wire;
use tokio::time::Instant;

use crate::setting::PATIENCE;

pub(crate) fn journaled() -> Call {
    call(Repeat::Never)
}

pub(crate) fn repeatable() -> Call {
    call(Repeat::Safe)
}

fn call(repeat: Repeat) -> Call {
    Call {
        id: CallId::generate(),
        method: Method::ToolsCall,
        params: Some(RawJson::from_static(r#"{"name":"probe"}"#)),
        caller: Arc::new(Caller {
            principal: Principal::new("alice"),
            session: None,
            revision: Revision::V2025_11_25,
            client_info: None,
            capabilities: RawJson::from_static("{}"),
            headers: ForwardedHeaders::default(),
            grant: None,
        }),
        progress_token: None,
        log: LogFilter::Off,
        deadline: Instant::now() + PATIENCE,
        repeat,
        trace: None,
        binding: None,
        may_start: MayStart::Yes,
        epoch: None,
    }
}

pub(crate) fn long(bytes: usize) -> RawJson {
    RawJson::of(&"x".repeat(bytes))
}

pub(crate) async fn next(running: &mut RunningCall) -> Option<(u64, String)> {
    let CallEvent { sequence, kind } = running.events.next().await?;
    let text = match kind {
        CallEventKind::Notification { params, .. } | CallEventKind::Ask { params, .. } => {
            params.map_or(String::new(), |params| params.as_str().to_owned())
        }
        CallEventKind::State { request, .. } => format!("{request:?}"),
        CallEventKind::Withdrawn { ask } => format!("withdrawn {}", ask.0),
        CallEventKind::CloseStream { retry } => format!("close {}", retry.as_millis()),
        CallEventKind::Finished(CallOutcome::Result(result)) => {
            format!("result {}", result.as_str())
        }
        CallEventKind::Finished(CallOutcome::Error(error) | CallOutcome::Refused(error)) => {
            format!("error {error}")
        }
        CallEventKind::Finished(CallOutcome::Failed(failure)) => format!("failed {failure}"),
    };
    Some((sequence, text))
}

pub(crate) async fn rest(running: &mut RunningCall) -> Vec<(u64, String)> {
    let mut events = Vec::new();
    while let Some(event) = next(running).await {
        events.push(event);
    }
    events
}

pub(crate) fn wire_call(call: &Call) -> wire::Call {
    wire::Call {
        id: bytes::Bytes::copy_from_slice(call.id.as_bytes()),
        method: call.method.as_str().to_owned(),
        params: call.params.as_ref().map(RawJson::to_bytes),
        caller: Some(wire::Caller {
            principal: call.caller.principal.as_str().to_owned(),
            revision: call.caller.revision.as_str().to_owned(),
            capabilities: call.caller.capabilities.to_bytes(),
            headers: Vec::new(),
            ..wire::Caller::default()
        }),
        timeout_ms: 60_000,
        ..wire::Call::default()
    }
}

/// Reads a call to its end despite broken links, and checks for gaps and duplicates.
pub(crate) struct Following {
    remote: Arc<dyn Worker>,
    call: Call,
    pub(crate) running: RunningCall,
    reader: Option<u64>,
    pub(crate) seen: u64,
    answer: Option<(AskId, Outcome)>,
}

impl Following {
    pub(crate) async fn start(remote: &Arc<dyn Worker>, call: Call) -> Self {
        let running = started(remote, &call).await;
        Self {
            remote: Arc::clone(remote),
            reader: running.control.reader(),
            running,
            call,
            seen: 0,
            answer: None,
        }
    }

    pub(crate) fn answer(&mut self, ask: AskId, answer: Outcome) {
        drop(self.running.control.answer(ask, answer.clone()));
        self.answer = Some((ask, answer));
    }

    pub(crate) async fn next(&mut self) -> Option<CallEvent> {
        loop {
            if let Some(event) = self.running.events.next().await {
                assert_eq!(event.sequence, self.seen + 1, "a gap, or twice");
                self.seen = event.sequence;
                self.answer = None;
                return Some(event);
            }
            if self.running.control.is_replaced() {
                return None;
            }
            let id = self.call.id;
            self.running = match (self.reader, self.seen) {
                (Some(reader), after) => {
                    let again = self
                        .remote
                        .attach(Attach {
                            reader: Some(reader),
                            ..Attach::new(id, after)
                        })
                        .await;
                    again.expect("its worker knows it")
                }
                (None, 0) => started(&self.remote, &self.call).await,
                (None, _) => panic!("the first word names the reader"),
            };
            self.reader = self.running.control.reader().or(self.reader);
            if let Some((ask, answer)) = self.answer.clone() {
                drop(self.running.control.answer(ask, answer));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn started(remote: &Arc<dyn Worker>, call: &Call) -> RunningCall {
    loop {
        match remote.start(call.clone(), None).await {
            Ok(running) => return running,
            Err(CallFailure::NotExecuted { reason } | CallFailure::WorkerAway { reason })
                if reason.contains("cannot be reached") =>
            {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Err(failure) => panic!("{failure}"),
        }
    }
}
