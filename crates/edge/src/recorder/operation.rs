//! Spans and metrics of clients' messages, by the OpenTelemetry conventions for MCP.

mod target;

use std::sync::LazyLock;
use std::time::Duration;

use http::HeaderMap;
use memchr::memmem::Finder;
use shoal_ports::SessionId;
use shoal_protocol::{Method, RawJson, RequestMeta, Revision, TraceContext};
use shoal_telemetry::metrics::{self, Failure, HttpVersion, Operation as Served, metrics};
use shoal_telemetry::trace::{self, Span, attributes as key, names};

use self::target::{OperationTarget, describe, name, named};
use super::arrival::MessageArrival;
use crate::measure;
use crate::names::PROTOCOL_VERSION;

/// Costs nothing without traces and metrics.
pub(crate) struct Operation(Option<Box<RunningMessage>>);

struct RunningMessage {
    span: Span,
    method: Method,
    target: Option<OperationTarget>,
    revision: Option<&'static str>,
    http: HttpVersion,
    unanswered: WhyUnanswered,
}

/// Why a message's connection got no answer. The span gets an event instead of an error, because a
/// session's call continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhyUnanswered {
    Left,
    Closed,
    Cut,
}

impl Operation {
    /// The span's parent is the trace context in `_meta`, because a proxy may have set the context
    /// in the HTTP headers. The headers' context is linked, or is the parent if `_meta` has none.
    pub(crate) fn begin(arrival: &MessageArrival<'_>) -> Self {
        if !trace::enabled() && !metrics::enabled() {
            return Self(None);
        }
        let target = OperationTarget::of(arrival.method, arrival.params);
        let revision = revision_of(&arrival.head.headers);
        let mut span = Span::none();
        if trace::enabled() {
            let client = in_meta(arrival.params);
            let http = measure::parent(&arrival.head.headers);
            let link = http.as_ref().filter(|_| client.is_some());
            span = trace::server(|| name(arrival.method, target.as_ref()))
                .parent(client.as_ref().or(http.as_ref()))
                .link(link)
                .began_at(arrival.began)
                .sampling_target(named(target.as_ref()).unwrap_or_default())
                .start_with(|set| describe(set, arrival, target.as_ref(), revision));
        }
        Self(Some(Box::new(RunningMessage {
            span,
            method: arrival.method.clone(),
            target,
            revision,
            http: measure::version(arrival.head.version),
            unanswered: WhyUnanswered::Left,
        })))
    }

    pub(crate) fn context(&self) -> Option<&TraceContext> {
        self.0.as_ref()?.span.context()
    }

    pub(crate) fn tool(&self) -> Option<&str> {
        match self.0.as_ref()?.target.as_ref()? {
            OperationTarget::Tool(name) => Some(name),
            OperationTarget::Prompt(_) | OperationTarget::Resource(_) => None,
        }
    }

    pub(crate) fn opened(&mut self, session: &SessionId, revision: Option<Revision>) {
        let Some(running) = &mut self.0 else {
            return;
        };
        let revision = revision.map(Revision::as_str);
        let span = &mut running.span;
        span.set(key::MCP_SESSION_ID, session.as_str());
        span.set_some(key::MCP_PROTOCOL_VERSION, revision);
        if let Some(revision) = revision {
            running.revision = Some(revision);
        }
    }

    pub(crate) fn expect_none(&mut self, why: WhyUnanswered) {
        if let Some(running) = &mut self.0 {
            running.unanswered = why;
        }
    }

    pub(crate) fn end(self, took: Duration, failure: Option<Failure>) {
        if let Some(running) = self.0 {
            running.end(took, failure);
        }
    }

    pub(crate) fn leave(self, took: Duration) {
        if let Some(mut running) = self.0 {
            let why = running.unanswered;
            running.span.add_event(why.event(), |_| ());
            running.count(took, Some(Failure::Other(why.error_type())));
        }
    }
}

impl RunningMessage {
    fn end(mut self, took: Duration, failure: Option<Failure>) {
        self.count(took, failure);
        if !self.span.is_recording() {
            return;
        }
        if let Some(failure) = failure {
            if let Failure::Code(code) = failure {
                let code = code.to_string();
                self.span.set(key::RPC_RESPONSE_STATUS_CODE, code.as_str());
            }
            self.span.record_error(failure.error_type());
        }
        // A target with a result exists, so the client has not made up its name.
        if matches!(failure, None | Some(Failure::Tool)) {
            let (method, target) = (self.method.as_str(), named(self.target.as_ref()));
            if !matches!(self.method, Method::Other(_)) {
                self.span.rename(|| names::mcp_name(method, target));
            }
        }
    }

    fn count(&self, took: Duration, failure: Option<Failure>) {
        let (tool, prompt) = match &self.target {
            Some(OperationTarget::Tool(name)) => (Some(name.as_str()), None),
            Some(OperationTarget::Prompt(name)) => (None, Some(name.as_str())),
            Some(OperationTarget::Resource(_)) | None => (None, None),
        };
        let served = Served {
            tool,
            prompt,
            failure,
            revision: self.revision,
            http: Some(self.http),
            ..Served::new(self.method.as_str())
        };
        metrics().mcp.served(took, &served);
    }
}

impl WhyUnanswered {
    fn event(self) -> &'static str {
        match self {
            Self::Left => "client disconnected",
            Self::Closed => "stream closed",
            Self::Cut => "stream cut",
        }
    }

    fn error_type(self) -> &'static str {
        match self {
            Self::Left => "client_disconnected",
            Self::Closed => "stream_closed",
            Self::Cut => "stream_cut",
        }
    }
}

fn revision_of(headers: &HeaderMap) -> Option<&'static str> {
    let said = headers.get(&PROTOCOL_VERSION)?.to_str().ok()?;
    said.parse().ok().map(Revision::as_str)
}

/// Searches before it parses, because most messages lack a trace context.
fn in_meta(params: Option<&RawJson>) -> Option<TraceContext> {
    static SEARCH: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("traceparent"));
    SEARCH.find(params?.as_bytes())?;
    let meta = RequestMeta::of(params);
    TraceContext::parse(meta.traceparent.as_deref()?, meta.tracestate.as_deref())
}
