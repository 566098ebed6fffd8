use std::borrow::Cow;
use std::time::Instant;

use opentelemetry::trace::SpanKind;
use shoal_protocol::TraceContext;

use super::Tracer;
use super::span::{Attributes, Span};

/// A name that is built only when the span is recorded: a text or a closure.
pub trait Name {
    #[doc(hidden)]
    fn make(self) -> Cow<'static, str>;
}

impl Name for &'static str {
    fn make(self) -> Cow<'static, str> {
        Cow::Borrowed(self)
    }
}

impl<F: FnOnce() -> String> Name for F {
    fn make(self) -> Cow<'static, str> {
        Cow::Owned(self())
    }
}

/// Builds a span for serving a request.
pub fn server<'a, N: Name>(name: N) -> SpanBuilder<'a, N> {
    SpanBuilder::new(SpanKind::Server, name)
}

/// Builds a span for sending a request.
pub fn client<'a, N: Name>(name: N) -> SpanBuilder<'a, N> {
    SpanBuilder::new(SpanKind::Client, name)
}

/// Builds a span for a step inside this process.
pub fn internal<'a, N: Name>(name: N) -> SpanBuilder<'a, N> {
    SpanBuilder::new(SpanKind::Internal, name)
}

/// A span that is about to start.
#[derive(Debug)]
#[must_use = "a span begins with `start` or `start_with`"]
pub struct SpanBuilder<'a, N> {
    pub(super) kind: SpanKind,
    pub(super) name: N,
    pub(super) parent: Option<&'a TraceContext>,
    pub(super) tool: Option<&'a str>,
    pub(super) link: Option<&'a TraceContext>,
    pub(super) began: Option<Instant>,
}

impl<'a, N: Name> SpanBuilder<'a, N> {
    fn new(kind: SpanKind, name: N) -> Self {
        Self {
            kind,
            name,
            parent: None,
            tool: None,
            link: None,
            began: None,
        }
    }

    /// Sets the span's parent. Without one, a new trace begins, and its sampling is decided here.
    pub fn parent(mut self, parent: Option<&'a TraceContext>) -> Self {
        self.parent = parent;
        self
    }

    /// Sets the tool whose ratio ([`Traces::tools`](crate::config::Traces::tools)) decides on sampling if the parent
    /// does not.
    pub fn sampling_target(mut self, tool: &'a str) -> Self {
        self.tool = Some(tool);
        self
    }

    /// Links to a span that is not the parent.
    pub fn link(mut self, to: Option<&'a TraceContext>) -> Self {
        self.link = to;
        self
    }

    /// Sets an earlier start, for a span created at its end.
    pub fn began_at(mut self, time: Instant) -> Self {
        self.began = Some(time);
        self
    }

    /// Starts the span.
    pub fn start(self) -> Span {
        self.start_with(|_| ())
    }

    /// Starts the span. `attributes` runs only when the span is recorded.
    pub fn start_with(self, attributes: impl FnOnce(&mut Attributes)) -> Span {
        match crate::state::tracer() {
            Some(tracer) => Tracer::start(tracer, self, attributes),
            // Passes the parent's context on.
            None => Span::unrecorded(self.parent.cloned()),
        }
    }
}
