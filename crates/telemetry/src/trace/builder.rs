//! Starts spans.

use std::borrow::Cow;
use std::time::Instant;

use opentelemetry::trace::SpanKind;
use shoal_protocol::TraceContext;

use super::Tracer;
use super::span::{Attributes, Span};

/// A name, made only when the span is kept: a text, or a closure that makes one.
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

/// Serves a request of a peer that waits for the answer.
pub fn server<'a, N: Name>(name: N) -> SpanBuilder<'a, N> {
    SpanBuilder::new(SpanKind::Server, name)
}

/// Asks a peer, and waits for its answer.
pub fn client<'a, N: Name>(name: N) -> SpanBuilder<'a, N> {
    SpanBuilder::new(SpanKind::Client, name)
}

/// A step inside this process.
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

    /// The span that caused this one; without it a new trace begins, and whether it is kept is decided here.
    pub fn parent(mut self, parent: Option<&'a TraceContext>) -> Self {
        self.parent = parent;
        self
    }

    /// The tool, whose own share ([`Traces::tools`](crate::config::Traces::tools)) decides when no parent has
    /// decided already.
    pub fn sampling_target(mut self, tool: &'a str) -> Self {
        self.tool = Some(tool);
        self
    }

    /// Points to a span that is no parent; [`Span::add_link`] adds more.
    pub fn link(mut self, to: Option<&'a TraceContext>) -> Self {
        self.link = to;
        self
    }

    /// The step began earlier than now: for a wait that is known only once it is over.
    pub fn began_at(mut self, time: Instant) -> Self {
        self.began = Some(time);
        self
    }

    /// Starts the span.
    pub fn start(self) -> Span {
        self.start_with(|_| ())
    }

    /// Starts the span with attributes, which are made only when it is kept.
    pub fn start_with(self, attributes: impl FnOnce(&mut Attributes)) -> Span {
        match crate::state::tracer() {
            Some(tracer) => Tracer::start(tracer, self, attributes),
            // A process without traces passes on what it got.
            None => Span::unrecorded(self.parent.cloned()),
        }
    }
}
