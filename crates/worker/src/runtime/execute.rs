use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use shoal_ports::{Call, CallFailure, CallOutcome};
use shoal_protocol::{Method, RpcError};
use shoal_telemetry::metrics::Failure;
use shoal_telemetry::trace::{self, InSpan as _, Span, attributes as key, names};
use tokio::time::{Instant, sleep_until, timeout};

use super::measure::Measure;
use super::overload::waited;
use super::record::CallRecord;
use crate::backend::{Backend, CallContext};

/// Runs a call to its end, or until `grace` after its stop signal. The client learns of a deadline
/// or cancellation at once.
pub(super) async fn execute(
    call: &Call,
    record: &Arc<CallRecord>,
    backend: &dyn Backend,
    grace: Duration,
    measure: &Measure<'_>,
) {
    let context = CallContext::new(Arc::clone(record) as _);
    let mut span = asks(call);
    let traced = span.is_recording().then(|| Call {
        trace: span.context().cloned(),
        ..call.clone()
    });
    let call = traced.as_ref().unwrap_or(call);
    let run = AssertUnwindSafe(backend.run(call, &context)).catch_unwind();
    let run = run.in_span(&span);
    tokio::pin!(run);
    tokio::select! {
        // A call that does not wait needs no timer.
        biased;
        ended = &mut run => {
            if let Ok(outcome) = &ended {
                describe(&mut span, outcome);
            }
            let outcome = ended.unwrap_or_else(|panic| panicked(record, &panic));
            measure.end(&outcome);
            record.finish(outcome);
            return;
        }
        () = record.cancelled.cancelled() => {
            measure.end(&CallOutcome::Failed(CallFailure::Cancelled));
        }
        () = sleep_until(call.deadline) => {
            let failure = match record.waits() {
                true => waited("its deadline"),
                false => CallFailure::DeadlineExceeded { limit: limit(call, record) },
            };
            measure.end(&CallOutcome::Failed(failure.clone()));
            record.stop(failure);
        }
    }
    match timeout(grace, run).await {
        Ok(Ok(_)) => {}
        Ok(Err(panic)) => drop(panicked(record, &panic)),
        Err(_) => {
            tracing::warn!(
                call = %record.id,
                method = %record.method,
                "a call did not stop within {} s of being told to, and was dropped",
                grace.as_secs_f32(),
            );
        }
    }
}

fn asks(call: &Call) -> Span {
    let target = || call.params.as_ref()?.member("name")?.string();
    let tool = || target().filter(|_| call.method == Method::ToolsCall);
    trace::client(|| names::mcp_name(call.method.as_str(), target().as_deref()))
        .parent(call.trace.as_ref())
        .start_with(|set| {
            set.set(key::MCP_METHOD_NAME, call.method.as_str())
                .set_some(key::GEN_AI_TOOL_NAME, tool().as_deref());
        })
}

fn describe(span: &mut Span, outcome: &CallOutcome) {
    match outcome {
        CallOutcome::Result(_) => {}
        CallOutcome::Error(error) | CallOutcome::Refused(error) => {
            let failure = Failure::Code(error.code);
            span.set(key::RPC_RESPONSE_STATUS_CODE, &error.code.to_string());
            span.record_error(failure.error_type());
        }
        CallOutcome::Failed(failure) => {
            let code = failure.to_rpc().code;
            span.record_error(Failure::Code(code).error_type());
        }
    }
}

fn limit(call: &Call, record: &CallRecord) -> Duration {
    call.deadline.saturating_duration_since(record.admitted)
}

pub(super) fn is_late(call: &Call) -> bool {
    call.deadline <= Instant::now()
}

fn panicked(record: &CallRecord, panic: &(dyn Any + Send)) -> CallOutcome {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    tracing::error!(call = %record.id, method = %record.method, "a call panicked: {message}");
    // The panic is the tool's error. A failure would count against the worker, so that one client's arguments
    // could block others. Only the log gets the panic's text.
    CallOutcome::Error(RpcError::internal(
        "the tool panicked, and may have done a part of its work; check before you repeat it",
    ))
}
