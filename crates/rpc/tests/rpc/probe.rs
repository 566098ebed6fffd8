//! Calls as the tests make them, and events as they compare them.

use std::sync::Arc;

use shoal_ports::{
    Call, CallEvent, CallEventKind, CallId, CallOutcome, Caller, Durability, LogFilter, Principal,
    RunningCall,
};
use shoal_protocol::{Method, RawJson, Revision};
use shoal_rpc::proto::types::v1 as wire;
use tokio::time::Instant;

use crate::setting::PATIENCE;

/// A call that must not be repeated.
pub(crate) fn journaled() -> Call {
    call(Durability::Journaled)
}

/// A call that may be.
pub(crate) fn repeatable() -> Call {
    call(Durability::Repeatable)
}

fn call(durability: Durability) -> Call {
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
        }),
        progress_token: None,
        log: LogFilter::Off,
        deadline: Instant::now() + PATIENCE,
        durability,
        trace: None,
        worker: None,
        ledger: None,
    }
}

/// JSON text of so many bytes.
pub(crate) fn long(bytes: usize) -> RawJson {
    RawJson::of(&"x".repeat(bytes))
}

/// The next event's number and its text: parameters, result, or failure.
pub(crate) async fn next(running: &mut RunningCall) -> Option<(u64, String)> {
    let CallEvent { sequence, kind } = running.events.next().await?;
    let text = match kind {
        CallEventKind::Notification { params, .. } | CallEventKind::Ask { params, .. } => {
            params.map_or(String::new(), |params| params.as_str().to_owned())
        }
        CallEventKind::State { request, .. } => format!("{request:?}"),
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

/// Every event that is left.
pub(crate) async fn rest(running: &mut RunningCall) -> Vec<(u64, String)> {
    let mut events = Vec::new();
    while let Some(event) = next(running).await {
        events.push(event);
    }
    events
}

/// A call as a node writes it.
pub(crate) fn wire_call(call: &Call) -> wire::Call {
    wire::Call {
        id: bytes::Bytes::copy_from_slice(call.id.as_bytes()),
        method: call.method.as_str().to_owned(),
        params: call.params.as_ref().map(RawJson::to_bytes),
        caller: Some(wire::Caller {
            principal: call.caller.principal.as_str().to_owned(),
            revision: call.caller.revision.as_str().to_owned(),
            capabilities: call.caller.capabilities.to_bytes(),
            ..wire::Caller::default()
        }),
        timeout_ms: 60_000,
        ..wire::Call::default()
    }
}
