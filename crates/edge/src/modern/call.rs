//! Calls: answered as JSON when the answer is the first thing to come, else as a stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures::Stream;
use http::StatusCode;
use shoal_ports::{Call, CallId, Caller};
use shoal_protocol::{
    Outcome, Request, RequestId, RequestMeta, code, error_response, notification, response,
};
use shoal_telemetry::metrics::StreamKind;
use shoal_telemetry::trace::TraceContext;
use tokio::time::{Instant, timeout};

use super::check::Checked;
use super::run::{CallRun, Ending, Step};
use crate::edge::EdgeState;
use crate::front::Visit;
use crate::load::RequestPermit;
use crate::recorder::RequestRecord;
use crate::refusal::status_of_outcome;
use crate::room::Held;
use crate::{answer, sse};

/// When to come back after an overload that did not say.
const SOON: Duration = Duration::from_secs(1);

/// Runs a call and answers.
pub(super) async fn serve(
    visit: &Visit<'_>,
    meta: RequestMeta,
    checked: Checked,
    request: Request,
    mut permit: RequestPermit,
) -> Response {
    let edge = visit.edge;
    let timing = &edge.config.timing;
    let (id, call) = call(visit, meta, checked, request);
    let mut run = CallRun::new(Arc::clone(&edge.dispatcher), call);
    let first = match run.ended() {
        Some(ending) => Some(Step::Ended(ending)),
        None => {
            let step = std::future::poll_fn(|cx| run.poll_step(cx));
            timeout(timing.stream_after, step).await.ok()
        }
    };
    let first = match first {
        Some(Step::Ended(ending)) => {
            if let Some(record) = &permit.record {
                record.ended(&ending.outcome);
            }
            return complete(edge, &id, &ending, permit.room.take());
        }
        first => first,
    };
    let frames = CallFrames {
        id,
        run,
        first,
        record: permit.record.clone(),
        ended: false,
    };
    let held = (permit, edge.load.open(StreamKind::Call));
    sse::response(frames, timing.keep_alive, held)
}

fn call(
    visit: &Visit<'_>,
    meta: RequestMeta,
    checked: Checked,
    request: Request,
) -> (RequestId, Call) {
    let edge = visit.edge;
    let caller = Caller {
        principal: visit.principal.clone(),
        session: None,
        revision: checked.revision,
        client_info: meta.client_info,
        capabilities: checked.capabilities,
    };
    let durability = edge
        .dispatcher
        .durability(&request.method, request.params.as_ref());
    let call = Call {
        id: CallId::generate(),
        method: request.method,
        params: request.params,
        caller: Arc::new(caller),
        progress_token: meta.progress_token,
        log: checked.log,
        deadline: Instant::now() + edge.config.timing.call_deadline,
        durability,
        // Without traces, what the client says is passed on as it came.
        trace: visit.trace.clone().or_else(|| {
            let parent = meta.traceparent.as_deref()?;
            TraceContext::parse(parent, meta.tracestate.as_deref())
        }),
        worker: None,
        ledger: None,
    };
    (request.id, call)
}

fn complete(edge: &EdgeState, id: &RequestId, ending: &Ending, room: Option<Held>) -> Response {
    let text = edge.room.carry(room, text_of(id, &ending.outcome));
    let Outcome::Error(error) = &ending.outcome else {
        return answer::json(StatusCode::OK, text);
    };
    let mut response = answer::json(status_of_outcome(error.code), text);
    if error.code == code::OVERLOADED {
        answer::retry_after(&mut response, ending.retry_after.unwrap_or(SOON));
    }
    response
}

fn text_of(id: &RequestId, outcome: &Outcome) -> Bytes {
    match outcome {
        Outcome::Result(result) => response(id, result),
        Outcome::Error(error) => error_response(id, error),
    }
}

/// A call's stream: no event ids, since a modern stream cannot be resumed. Dropping it cancels the call.
struct CallFrames {
    id: RequestId,
    run: CallRun,
    first: Option<Step>,
    record: Option<RequestRecord>,
    ended: bool,
}

impl Stream for CallFrames {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let step = match self.first.take() {
            Some(first) => first,
            None => ready!(self.run.poll_step(cx)),
        };
        let text = match step {
            Step::Notification { method, params } => notification(method.as_str(), params.as_ref()),
            Step::Ended(ending) => {
                self.ended = true;
                if let Some(record) = &self.record {
                    record.ended(&ending.outcome);
                }
                text_of(&self.id, &ending.outcome)
            }
        };
        Poll::Ready(Some(sse::message(&text)))
    }
}
