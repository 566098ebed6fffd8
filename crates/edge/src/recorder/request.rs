use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::{Instant, SystemTime};

use http::request::Parts;
use memchr::memmem::Finder;
use parking_lot::Mutex;
use shoal_ports::{ErrorReport, SessionId, shown};
use shoal_protocol::{
    Body, Message, Method, Outcome, RawJson, RawObject, Request, RequestMeta, Revision, RpcError,
    TraceContext,
};
use shoal_telemetry::metrics::Failure;

use super::arrival::MessageArrival;
use super::operation::{Operation, WhyUnanswered};
use super::said::{Said, said};
use super::{MessageOutcome, Recorder};
use crate::refusal::Refusal;

const LONGEST_MESSAGE: usize = 400;
const IS_ERROR: &str = "isError";
const UNSAID: &str = "the tool did not say why";
const LONGEST_TARGET: usize = 160;

/// Counts the request as cancelled if the record is dropped before its end.
#[derive(Clone)]
pub(crate) struct RequestRecord(Arc<PendingMessage>);

struct PendingMessage {
    recorder: Recorder,
    began: Instant,
    subject: RecordedSubject,
    operation: Mutex<Option<Operation>>,
}

/// A batch has its first request's subject.
struct RecordedSubject {
    method: Method,
    params: Option<RawJson>,
    session: Option<SessionId>,
}

impl RequestRecord {
    pub(crate) fn of(
        recorder: &Recorder,
        began: Instant,
        head: &Parts,
        body: &Body,
        session: Option<&SessionId>,
    ) -> Option<Self> {
        let asked = match body {
            Body::Single(message) => request(message)?,
            Body::Batch(members) => members.iter().flatten().find_map(request)?,
        };
        let operation = Operation::begin(&MessageArrival {
            began,
            head,
            method: &asked.method,
            params: asked.params.as_ref(),
            id: Some(&asked.id),
            session,
        });
        Some(Self(Arc::new(PendingMessage {
            recorder: recorder.clone(),
            began,
            operation: Mutex::new(Some(operation)),
            subject: RecordedSubject {
                method: asked.method.clone(),
                params: asked.params.clone(),
                session: session.cloned(),
            },
        })))
    }

    pub(crate) fn trace(&self) -> Option<TraceContext> {
        let operation = self.0.operation.lock();
        operation.as_ref().and_then(Operation::context).cloned()
    }

    pub(crate) fn opened(&self, session: &SessionId, revision: Option<Revision>) {
        if let Some(operation) = &mut *self.0.operation.lock() {
            operation.opened(session, revision);
        }
    }

    pub(crate) fn expect_none(&self, why: WhyUnanswered) {
        if let Some(operation) = &mut *self.0.operation.lock() {
            operation.expect_none(why);
        }
    }

    pub(crate) fn wrote(&self, text: &[u8]) {
        match said(text) {
            Said::Result => self.0.ended_with_result(text),
            Said::Error => {
                let error = RawJson::parse_text(text.to_vec().into()).ok();
                let error = error.as_ref().and_then(RawObject::of);
                let error = error.and_then(|text| text.get("error"));
                self.0.ended_with(&error.map_or_else(
                    || RpcError::internal("an unreadable error"),
                    |error| RpcError::from_json(&error),
                ));
            }
            Said::Other => {}
        }
    }

    pub(crate) fn answered(&self, text: &[u8]) {
        self.wrote(text);
        self.0.settle(MessageOutcome::Ok, None, None);
    }

    pub(crate) fn ended(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Result(result) => {
                self.0.ended_with_result(result.as_bytes());
            }
            Outcome::Error(error) => self.0.ended_with(error),
        }
    }

    pub(crate) fn refused(&self, why: &Refusal) {
        self.0.ended_with(&why.error());
    }
}

impl PendingMessage {
    fn ended_with(&self, error: &RpcError) {
        self.settle(MessageOutcome::of_code(error.code), Some(error), None);
    }

    fn ended_with_result(&self, text: &[u8]) {
        match self.failure(text) {
            Some(said) => self.settle(MessageOutcome::Rejected, None, Some(said)),
            None => self.settle(MessageOutcome::Ok, None, None),
        }
    }

    /// Only the first end counts. `failure` is a failed tool's text.
    fn settle(&self, ended: MessageOutcome, error: Option<&RpcError>, failure: Option<String>) {
        let Some(operation) = self.operation.lock().take() else {
            return;
        };
        let took = self.began.elapsed();
        self.recorder.count(ended, took);
        if self.subject.method == Method::ToolsCall {
            let read = || self.subject.target();
            let tool = operation.tool().map(Cow::Borrowed);
            if let Some(tool) = tool.or_else(|| read().map(Cow::Owned)) {
                self.recorder.count_call(&tool, ended, took);
            }
        }
        let own = || {
            let trace = operation.context().filter(|trace| trace.is_sampled());
            trace.map(TraceContext::trace_id)
        };
        let kept = &self.recorder.0;
        if let Some(error) = error.filter(|_| ended != MessageOutcome::Cancelled) {
            kept.errors.push(self.subject.report(unread(error), own()));
        }
        let failed = failure.map(|said| {
            kept.failures
                .push(self.subject.report(tool_failure(&said), own()));
            Failure::Tool
        });
        match error {
            Some(error) => operation.end(took, Some(Failure::Code(error.code))),
            None if ended == MessageOutcome::Cancelled => operation.leave(took),
            None => operation.end(took, failed),
        }
    }

    fn failure(&self, text: &[u8]) -> Option<String> {
        if self.subject.method != Method::ToolsCall || !may_say_failed(text) {
            return None;
        }
        let whole = RawJson::parse_text(text.to_vec().into()).ok()?;
        let result = whole.member("result").unwrap_or(whole);
        let failed = result.member(IS_ERROR)?.as_str() == "true";
        failed.then(|| words(&result).unwrap_or_default())
    }
}

/// Searching is cheaper than parsing, and most results have no such member.
fn may_say_failed(text: &[u8]) -> bool {
    static SEARCH: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(IS_ERROR));
    SEARCH.find_iter(text).any(|at| {
        let after = &text[at + IS_ERROR.len()..];
        let mut value =
            (after.iter()).skip_while(|it| matches!(it, b'"' | b':') || it.is_ascii_whitespace());
        value.next() == Some(&b't')
    })
}

fn request(message: &Message) -> Option<&Request> {
    match message {
        Message::Request(request) => Some(request),
        _ => None,
    }
}

impl Drop for PendingMessage {
    fn drop(&mut self) {
        self.settle(MessageOutcome::Cancelled, None, None);
    }
}

fn words(result: &RawJson) -> Option<String> {
    let content: Vec<RawJson> = result.member("content")?.read().ok()?;
    content
        .iter()
        .find_map(|item| item.member("text")?.string())
}

impl RecordedSubject {
    fn target(&self) -> Option<String> {
        let named = self.method.named()?;
        self.params.as_ref()?.member(named.as_str())?.string()
    }

    fn report(&self, wrong: ErrorReport, trace: Option<String>) -> ErrorReport {
        let traceparent = RequestMeta::of(self.params.as_ref()).traceparent;
        ErrorReport {
            method: Some(shown(self.method.as_str(), LONGEST_TARGET)),
            target: (self.target()).map(|target| shown(&target, LONGEST_TARGET)),
            session: self.session.as_ref().map(ToString::to_string),
            trace: trace.or_else(|| traceparent.as_deref().and_then(trace_id).map(str::to_owned)),
            ..wrong
        }
    }
}

pub(super) fn unread(error: &RpcError) -> ErrorReport {
    ErrorReport {
        at_ms: now_ms(),
        code: error.code,
        message: shown(&error.message, LONGEST_MESSAGE),
        ..ErrorReport::default()
    }
}

fn tool_failure(said: &str) -> ErrorReport {
    let said = if said.is_empty() { UNSAID } else { said };
    ErrorReport {
        at_ms: now_ms(),
        tool_failed: true,
        message: shown(said, LONGEST_MESSAGE),
        ..ErrorReport::default()
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

pub(super) fn trace_id(traceparent: &str) -> Option<&str> {
    let id = traceparent.split('-').nth(1)?;
    let fit = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    fit.then_some(id)
}
