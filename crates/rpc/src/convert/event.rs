use shoal_ports::{AskId, CallEvent, CallEventKind, StateRequest};
use shoal_protocol::{Method, RawJson};

use super::outcome::{outcome_in, outcome_out};
use super::{checked, duration, millis};
use crate::link::credit;
use crate::proto::types::v1::CallOutcome;
use crate::proto::types::v1::call_failure::Failure;
use crate::proto::types::v1::call_outcome::Outcome;
use crate::proto::worker::v1 as wire;
use crate::proto::worker::v1::event::{self, Kind, state};

pub(crate) fn event_out(flight: u64, event: CallEvent) -> wire::Event {
    let kind = match event.kind {
        CallEventKind::Notification { method, params } => Kind::Notification(event::Notification {
            method: method.as_str().to_owned(),
            params: params.map(RawJson::into_bytes),
        }),
        CallEventKind::Ask {
            ask,
            method,
            params,
        } => Kind::Ask(event::Ask {
            ask: ask.0,
            method: method.as_str().to_owned(),
            params: params.map(RawJson::into_bytes),
        }),
        CallEventKind::Withdrawn { ask } => Kind::Withdrawn(event::Withdrawn { ask: ask.0 }),
        CallEventKind::State { ask, request } => Kind::State(event::State {
            ask: ask.0,
            request: Some(state_out(request)),
        }),
        CallEventKind::CloseStream { retry } => Kind::CloseStream(event::CloseStream {
            retry_ms: millis(retry),
        }),
        CallEventKind::Finished(outcome) => Kind::Finished(outcome_out(outcome)),
    };
    wire::Event {
        flight,
        sequence: event.sequence,
        kind: Some(kind),
        reader: 0,
    }
}

/// `None` if the event only advances the sequence, or its parameters are not JSON.
pub(crate) fn event_in(event: wire::Event) -> Option<CallEvent> {
    let params = |params: Option<_>| params.map(|text| checked(text, "params")).transpose();
    let kind = match event.kind? {
        Kind::Notification(said) => CallEventKind::Notification {
            method: Method::from_name(&said.method),
            params: params(said.params).ok()?,
        },
        Kind::Ask(said) => CallEventKind::Ask {
            ask: AskId(said.ask),
            method: Method::from_name(&said.method),
            params: params(said.params).ok()?,
        },
        Kind::Withdrawn(said) => CallEventKind::Withdrawn {
            ask: AskId(said.ask),
        },
        Kind::State(said) => CallEventKind::State {
            ask: AskId(said.ask),
            request: state_in(said.request?)?,
        },
        Kind::CloseStream(said) => CallEventKind::CloseStream {
            retry: duration(said.retry_ms),
        },
        Kind::Finished(outcome) => CallEventKind::Finished(outcome_in(outcome)),
    };
    Some(CallEvent {
        sequence: event.sequence,
        kind,
    })
}

fn state_out(request: StateRequest) -> state::Request {
    match request {
        StateRequest::Get { key } => state::Request::Get(state::Get { key }),
        StateRequest::Set {
            key,
            value,
            writing,
        } => state::Request::Set(state::Set {
            key,
            value: value.map(RawJson::into_bytes),
            writing,
        }),
        StateRequest::Keys => state::Request::Keys(state::Keys {}),
    }
}

/// `None` if a value is not JSON.
fn state_in(request: state::Request) -> Option<StateRequest> {
    Some(match request {
        state::Request::Get(state::Get { key }) => StateRequest::Get { key },
        state::Request::Set(state::Set {
            key,
            value,
            writing,
        }) => StateRequest::Set {
            key,
            value: value
                .map(|value| checked(value, "value"))
                .transpose()
                .ok()?,
            writing,
        },
        state::Request::Keys(state::Keys {}) => StateRequest::Keys,
    })
}

pub(crate) fn is_end(event: &wire::Event) -> bool {
    matches!(event.kind, Some(Kind::Finished(_)))
}

pub(crate) fn is_stop(event: &wire::Event) -> bool {
    let Some(Kind::Finished(CallOutcome {
        outcome: Some(Outcome::Failure(failure)),
    })) = &event.kind
    else {
        return false;
    };
    matches!(
        failure.failure,
        Some(Failure::Cancelled(_) | Failure::DeadlineExceeded(_))
    )
}

pub(crate) fn event_cost(event: &wire::Event) -> u64 {
    let payload = match &event.kind {
        Some(Kind::Notification(said)) => said.params.as_ref().map_or(0, bytes::Bytes::len),
        Some(Kind::Ask(said)) => said.params.as_ref().map_or(0, bytes::Bytes::len),
        Some(Kind::State(said)) => match &said.request {
            Some(state::Request::Get(get)) => get.key.len(),
            Some(state::Request::Set(set)) => {
                set.key.len() + set.value.as_ref().map_or(0, bytes::Bytes::len)
            }
            Some(state::Request::Keys(_)) | None => 0,
        },
        Some(Kind::Finished(said)) => match &said.outcome {
            Some(Outcome::Result(result)) => result.len(),
            Some(Outcome::Error(error)) => {
                error.message.len() + error.data.as_ref().map_or(0, bytes::Bytes::len)
            }
            _ => 0,
        },
        Some(Kind::CloseStream(_) | Kind::Withdrawn(_)) | None => 0,
    };
    credit::cost(payload)
}
