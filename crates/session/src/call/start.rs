//! What the journal keeps of a call so that a new owner of its session can start it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shoal_ports::{Call, CallId, Caller, Durability, LogFilter, WorkerId};
use shoal_protocol::{LogLevel, Method, RawJson, RequestMeta};
use shoal_telemetry::trace::TraceContext;
use tokio::time::Instant;

use crate::clock::{millis, unix_millis};

/// The least time that a call taken over is given: its result may be waiting already.
const LEAST_TIME: Duration = Duration::from_secs(10);

#[derive(Serialize, Deserialize)]
struct Start {
    method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    params: Option<RawJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<LogLevel>,
    /// Milliseconds since 1970. Another node's clock may differ; the deadline moves by as much.
    deadline: u64,
    #[serde(default)]
    repeatable: bool,
    /// The span of whoever brought the call, so that its trace goes on at a new owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

/// What to journal.
pub(super) fn of(call: &Call, trace: Option<&TraceContext>) -> RawJson {
    let left = call.deadline.saturating_duration_since(Instant::now());
    RawJson::of(&Start {
        method: call.method.as_str().to_owned(),
        params: call.params.clone(),
        log: match call.log {
            LogFilter::Off => None,
            LogFilter::AtLeast(level) => Some(level),
        },
        deadline: unix_millis().saturating_add(millis(left)),
        repeatable: call.durability == Durability::Repeatable,
        traceparent: trace.map(TraceContext::to_traceparent),
        tracestate: trace.and_then(TraceContext::tracestate).map(str::to_owned),
    })
}

/// The call again.
///
/// # Errors
/// When the entry was written by an incompatible version.
pub(super) fn read(
    start: &RawJson,
    id: CallId,
    caller: Arc<Caller>,
    worker: Option<WorkerId>,
) -> Result<Call, serde_json::Error> {
    let start: Start = start.read()?;
    let left = Duration::from_millis(start.deadline.saturating_sub(unix_millis()));
    let meta = RequestMeta::of(start.params.as_ref());
    let trace = start.brought();
    Ok(Call {
        id,
        method: Method::from_name(&start.method),
        params: start.params,
        caller,
        progress_token: meta.progress_token,
        log: start.log.map_or(LogFilter::Off, LogFilter::AtLeast),
        deadline: Instant::now() + left.max(LEAST_TIME),
        durability: if start.repeatable {
            Durability::Repeatable
        } else {
            Durability::Journaled
        },
        trace,
        worker,
    })
}

/// The span of whoever brought a journaled call.
pub(crate) fn brought_by(start: &RawJson) -> Option<TraceContext> {
    start.read::<Start>().ok()?.brought()
}

impl Start {
    fn brought(&self) -> Option<TraceContext> {
        let parent = self.traceparent.as_deref()?;
        TraceContext::parse_trusted(parent, self.tracestate.as_deref())
    }
}
