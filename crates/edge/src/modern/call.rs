use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::response::Response;
use bytes::Bytes;
use futures::Stream;
use futures::future::BoxFuture;
use http::StatusCode;
use shoal_ports::{AuthError, Call, CallId, Caller, LogFilter, MayStart, Repeat};
use shoal_protocol::{
    Method, Outcome, Request, RequestId, RequestMeta, RpcError, TraceContext, code, error_response,
    notification, response,
};
use shoal_telemetry::metrics::StreamKind;
use tokio::time::{Instant, timeout};

use super::become_task::Candidate;
use super::check::CheckedMeta;
use super::run::{CallEnding, CallRun, RunStep};
use crate::backlog::BacklogReader;
use crate::held_places::CallPlaces;
use crate::media::AnswerForm;
use crate::permit::RequestPermit;
use crate::recorder::RequestRecord;
use crate::refusal::{BacklogFull, Refusal};
use crate::refused::RefusedMessage;
use crate::visit::Visit;
use crate::{answer, sse};

pub(super) async fn serve(
    visit: &Visit<'_>,
    meta: RequestMeta,
    checked: CheckedMeta,
    caller: Caller,
    request: Request,
    form: AnswerForm,
    mut permit: RequestPermit,
) -> Response {
    let edge = visit.edge;
    let streams = &edge.config.streams;
    let may_be_task = checked.tasks
        && request.method == Method::ToolsCall
        && edge.dispatcher.may_be_task(request.params.as_ref());
    let (id, call) = call(visit, meta, caller, checked.log, request);
    let reader = visit.reader();
    let candidate = may_be_task.then(|| Candidate::of(visit, &id, &call));
    let places = CallPlaces::new(edge, std::mem::take(&mut permit.places[1]));
    let mut run = CallRun::new(Arc::clone(&edge.dispatcher), call, candidate, places);
    let first = match run.ended() {
        Some(ending) => Some(RunStep::Ended(ending)),
        None if form == AnswerForm::Json => tokio::select! {
            ending = run.ending() => Some(RunStep::Ended(ending)),
            why = visit.until_revoked() => {
                let error = cut_off(why, run.repeat());
                if let Some(record) = &permit.record {
                    record.ended(&Outcome::Error(error.clone()));
                }
                return answer::json(StatusCode::OK, error_response(&id, &error));
            }
        },
        None => {
            let step = std::future::poll_fn(|cx| run.poll_step(cx));
            timeout(streams.grace.get(), step).await.ok()
        }
    };
    let first = match first {
        Some(RunStep::Ended(ending)) => {
            if let Some(record) = &permit.record {
                record.ended(&ending.outcome);
            }
            drop(permit.room.take());
            return complete(&reader, run.repeat(), &id, &ending);
        }
        first => first,
    };
    let frames = CallFrames {
        id,
        reader,
        run,
        revoked: visit.until_revoked(),
        first,
        record: permit.record.clone(),
        ended: false,
    };
    let held = (permit, edge.load.open(StreamKind::Call));
    sse::response(frames, streams.keep_alive.get(), held)
}

pub(super) fn caller(visit: &Visit<'_>, meta: &RequestMeta, checked: &CheckedMeta) -> Caller {
    Caller {
        principal: visit.principal.clone(),
        session: None,
        revision: checked.revision,
        client_info: meta.client_info.as_ref().map(|info| visit.client(info)),
        capabilities: checked.capabilities.clone(),
        headers: visit.forwarded(),
        grant: visit.grant.clone(),
    }
}

fn call(
    visit: &Visit<'_>,
    meta: RequestMeta,
    caller: Caller,
    log: LogFilter,
    request: Request,
) -> (RequestId, Call) {
    let edge = visit.edge;
    let call = Call {
        id: CallId::generate(),
        method: request.method,
        params: request.params,
        caller: Arc::new(caller),
        progress_token: meta.progress_token,
        log,
        deadline: Instant::now() + edge.config.calls.timeout.get(),
        repeat: Repeat::Never,
        // Without its own traces, Shoal passes on the client's trace context.
        trace: visit.trace.clone().or_else(|| {
            let parent = meta.traceparent.as_deref()?;
            TraceContext::parse(parent, meta.tracestate.as_deref())
        }),
        binding: None,
        may_start: MayStart::Yes,
        epoch: None,
    };
    (request.id, call)
}

fn complete(
    reader: &BacklogReader,
    repeat: Repeat,
    id: &RequestId,
    ending: &CallEnding,
) -> Response {
    let text = match reader.keep(text_of(id, &ending.outcome)) {
        Ok(text) => text,
        Err(full) if repeat == Repeat::Safe => {
            return answer::refusal(&RefusedMessage::of(
                Some(id.clone()),
                Refusal::AnswerNotKept(full),
            ));
        }
        Err(full) => {
            let text = error_response(id, &not_kept(full, repeat));
            return answer::json(StatusCode::OK, text);
        }
    };
    let mut response = answer::json(ending.status, text);
    if let Some(wait) = ending.retry_after {
        answer::retry_after(&mut response, wait);
    }
    response
}

fn text_of(id: &RequestId, outcome: &Outcome) -> Bytes {
    match outcome {
        Outcome::Result(result) => response(id, result),
        Outcome::Error(error) => error_response(id, error),
    }
}

fn not_kept(full: BacklogFull, repeat: Repeat) -> RpcError {
    match repeat {
        Repeat::Safe => Refusal::AnswerNotKept(full).error(),
        Repeat::Never => full.after_effect(),
    }
}

/// If the call runs once, the error says that the call may have had effects.
fn cut_off(why: AuthError, repeat: Repeat) -> RpcError {
    match repeat {
        Repeat::Safe => Refusal::Unauthenticated(why).error(),
        Repeat::Never => RpcError::new(
            code::OUTCOME_UNKNOWN,
            format!("the call was cancelled: {why}; check before you repeat it"),
        ),
    }
}

/// Dropping the frames cancels the call. Frames have no event ids.
struct CallFrames {
    id: RequestId,
    reader: BacklogReader,
    run: CallRun,
    first: Option<RunStep>,
    revoked: BoxFuture<'static, AuthError>,
    record: Option<RequestRecord>,
    ended: bool,
}

impl CallFrames {
    fn end(&mut self, outcome: &Outcome) -> Poll<Option<Bytes>> {
        self.ended = true;
        if let Some(record) = &self.record {
            record.ended(outcome);
        }
        let frame = sse::message(&text_of(&self.id, outcome));
        let frame = self.reader.keep(frame).unwrap_or_else(|full| {
            let error = not_kept(full, self.run.repeat());
            sse::message(&error_response(&self.id, &error))
        });
        Poll::Ready(Some(frame))
    }
}

impl Stream for CallFrames {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(why) = self.revoked.as_mut().poll(cx) {
            let error = cut_off(why, self.run.repeat());
            return self.end(&Outcome::Error(error));
        }
        let step = match self.first.take() {
            Some(first) => first,
            None => ready!(self.run.poll_step(cx)),
        };
        match step {
            RunStep::Notification { method, params } => {
                let text = notification(method.as_str(), params.as_ref());
                // Without backlog room, Shoal drops the notification and sends a comment.
                let frame = self.reader.keep(sse::message(&text));
                Poll::Ready(Some(frame.unwrap_or(sse::COMMENT)))
            }
            RunStep::Ended(ending) => self.end(&ending.outcome),
        }
    }
}
