use std::future::Future;

use futures::future::Either;
use opentelemetry::Context;
use opentelemetry::context::{FutureExt as _, WithContext};
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use shoal_protocol::TraceContext;

use super::Span;

impl Span {
    fn log_ids(&self) -> Option<&TraceContext> {
        self.context().filter(|_| self.is_recording())
    }
}

fn log_context(ids: Option<&TraceContext>) -> Option<Context> {
    ids.map(|ids| Context::new().with_remote_span_context(span_context(ids)))
}

fn span_context(context: &TraceContext) -> SpanContext {
    let (trace_id, span_id) = context.ids();
    let state = (context.tracestate())
        .and_then(|text| text.parse::<TraceState>().ok())
        .unwrap_or_default();
    let flags = TraceFlags::default().with_sampled(context.is_sampled());
    SpanContext::new(
        TraceId::from(trace_id),
        SpanId::from(span_id),
        flags,
        false,
        state,
    )
}

fn trace_context(context: &SpanContext) -> TraceContext {
    let trace_id = u128::from_be_bytes(context.trace_id().to_bytes());
    let span_id = u64::from_be_bytes(context.span_id().to_bytes());
    TraceContext::new(trace_id, span_id, context.is_sampled())
        .with_tracestate(&context.trace_state().header())
}

/// Returns the context of the current span ([`InSpan`]), if it is recorded. Use it only behind an interface without an
/// argument for the trace, in the caller's task. Elsewhere, pass the parent.
#[must_use]
pub fn current() -> Option<TraceContext> {
    crate::state::tracer()?;
    Context::map_current(|context| {
        let span = context.span();
        let found = span.span_context();
        found.is_valid().then(|| trace_context(found))
    })
}

/// Adds [`in_span`](Self::in_span) to every future.
pub trait InSpan: Future + Sized {
    /// Makes the log lines of this future carry the span's ids. Costs one comparison per poll when the span is not
    /// recorded. The future neither keeps the span open nor ends it.
    fn in_span(self, span: &Span) -> Either<Self, WithContext<Self>> {
        self.in_trace(span.log_ids())
    }

    /// Like [`in_span`](Self::in_span), with only the span's context.
    fn in_trace(self, context: Option<&TraceContext>) -> Either<Self, WithContext<Self>> {
        match log_context(context.filter(|context| context.is_sampled())) {
            Some(context) => Either::Right(self.with_context(context)),
            None => Either::Left(self),
        }
    }
}

impl<F: Future> InSpan for F {}
