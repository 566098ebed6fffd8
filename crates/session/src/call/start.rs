//! The part of a journal entry from which a new owner can start the call.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shoal_ports::{Call, CallId, Caller, LogFilter, MayStart, Repeat};
use shoal_protocol::{LogLevel, Method, RawJson, RequestMeta, TraceContext};
use tokio::time::Instant;

use crate::clock::{millis, unix_millis};

/// The least time that a resumed call gets, because its result may be waiting.
const LEAST_TIME: Duration = Duration::from_secs(10);

#[derive(Serialize, Deserialize)]
struct Start {
    method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    params: Option<RawJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<LogLevel>,
    /// The call's remaining time, in milliseconds. It runs anew at a new owner, because clocks cannot be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    /// The call's deadline in milliseconds since 1970, which older releases require. Omitted if a person must agree
    /// first, because older releases would skip that question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<u64>,
    #[serde(default)]
    repeatable: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    asks_first: bool,
    /// Whether the next owner may only attach to the call, because the owner's plan refused a repeated delivery of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    attach_only: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

pub(super) fn of(call: &Call, trace: Option<&TraceContext>) -> RawJson {
    let left = call.deadline.saturating_duration_since(Instant::now());
    RawJson::of(&Start {
        method: call.method.as_str().to_owned(),
        params: call.params.clone(),
        log: match call.log {
            LogFilter::Off => None,
            LogFilter::AtLeast(level) => Some(level),
        },
        timeout: Some(millis(left)),
        deadline: (call.may_start != MayStart::IfApproved)
            .then(|| unix_millis().saturating_add(millis(left))),
        repeatable: call.repeat == Repeat::Safe,
        asks_first: call.may_start == MayStart::IfApproved,
        attach_only: call.may_start == MayStart::No,
        traceparent: trace.map(TraceContext::to_traceparent),
        tracestate: trace.and_then(TraceContext::tracestate).map(str::to_owned),
    })
}

/// Restores the call without a worker, and with at most the time `longest`. Fails if an
/// incompatible version wrote the entry.
pub(super) fn read(
    start: &RawJson,
    id: CallId,
    caller: Arc<Caller>,
    longest: Duration,
) -> Result<Call, serde_json::Error> {
    let start: Start = start.read()?;
    let timeout = match start.timeout {
        Some(timeout) => Duration::from_millis(timeout).min(longest),
        None => longest,
    };
    let meta = RequestMeta::of(start.params.as_ref());
    let trace = start.brought();
    Ok(Call {
        id,
        method: Method::from_name(&start.method),
        params: start.params,
        caller,
        progress_token: meta.progress_token,
        log: start.log.map_or(LogFilter::Off, LogFilter::AtLeast),
        deadline: Instant::now() + timeout.max(LEAST_TIME),
        repeat: if start.repeatable {
            Repeat::Safe
        } else {
            Repeat::Never
        },
        trace,
        binding: None,
        may_start: match (start.attach_only, start.asks_first) {
            (true, _) => MayStart::No,
            (false, true) => MayStart::IfApproved,
            (false, false) => MayStart::Yes,
        },
        epoch: None,
    })
}

pub(crate) fn brought_by(start: &RawJson) -> Option<TraceContext> {
    start.read::<Start>().ok()?.brought()
}

impl Start {
    fn brought(&self) -> Option<TraceContext> {
        let parent = self.traceparent.as_deref()?;
        TraceContext::parse_trusted(parent, self.tracestate.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use shoal_ports::{CallId, Caller, ForwardedHeaders, MayStart, Principal};
    use shoal_protocol::{RawJson, Revision};

    use super::{of, read};

    /// Otherwise the next owner would start what a person must approve, or what the rules have refused.
    #[test]
    fn a_call_keeps_what_stops_it_from_starting() {
        let caller = Arc::new(Caller {
            principal: Principal::new("alice"),
            session: None,
            revision: Revision::LATEST_LEGACY,
            client_info: None,
            capabilities: RawJson::from_static("{}"),
            headers: ForwardedHeaders::default(),
            grant: None,
        });
        let time = Duration::from_secs(60);
        let again = |start: &RawJson| read(start, CallId::generate(), caller.clone(), time);
        let plain = again(&RawJson::from_static(r#"{"method":"tools/call"}"#)).unwrap();
        for may_start in [MayStart::Yes, MayStart::IfApproved, MayStart::No] {
            let mut call = plain.clone();
            call.may_start = may_start;
            assert_eq!(again(&of(&call, None)).unwrap().may_start, may_start);
        }
    }
}
