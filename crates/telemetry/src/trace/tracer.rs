use std::time::{Instant, SystemTime};

use opentelemetry::trace::Status;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use shoal_protocol::TraceContext;

use super::SamplingDecision;
use super::attributes::cut_name;
use super::builder::{Name, SpanBuilder};
use super::span::{Attributes, Span, SpanData};
use crate::export::Spans;
use crate::otlp;

#[derive(Debug)]
pub(crate) struct Tracer {
    decision: SamplingDecision,
    spans: Spans,
}

fn began(moment: Option<Instant>) -> SystemTime {
    let now = SystemTime::now();
    moment.map_or(now, |moment| now - moment.elapsed())
}

fn new_trace_id() -> u128 {
    u128::from_be_bytes(RandomIdGenerator::default().new_trace_id().to_bytes())
}

fn new_span_id() -> u64 {
    u64::from_be_bytes(RandomIdGenerator::default().new_span_id().to_bytes())
}

impl Tracer {
    pub(crate) fn new(decision: SamplingDecision, spans: Spans) -> Self {
        Self { decision, spans }
    }

    pub(crate) fn spans(&self) -> &Spans {
        &self.spans
    }

    pub(super) fn start<N: Name>(
        this: &Self,
        builder: SpanBuilder<'_, N>,
        attributes: impl FnOnce(&mut Attributes),
    ) -> Span {
        let (trace_id, parent) = match builder.parent.map(TraceContext::ids) {
            Some((trace_id, parent)) => (trace_id, Some(parent)),
            None => (new_trace_id(), None),
        };
        let is_sampled = (builder.parent)
            .and_then(|parent| this.decision.inherited(parent))
            .unwrap_or_else(|| this.decision.decide(trace_id, builder.tool));
        if !is_sampled {
            return Span::unrecorded(Some(this.unsampled(trace_id, builder.parent)));
        }
        let span_id = new_span_id();
        let context = match builder.parent {
            Some(parent) => parent.child(span_id, true),
            None => TraceContext::new(trace_id, span_id, true),
        };
        let mut gathered = Attributes::with_room();
        attributes(&mut gathered);
        let mut running = SpanData {
            parent,
            is_parent_remote: builder.parent.is_some_and(TraceContext::is_foreign),
            name: cut_name(builder.name.make()),
            kind: builder.kind,
            started: began(builder.began),
            attributes: gathered.gathered,
            dropped_attributes: 0,
            events: Vec::new(),
            dropped_events: 0,
            links: Vec::new(),
            dropped_links: 0,
            status: Status::Unset,
        };
        if let Some(to) = builder.link {
            running.link(to);
        }
        Span::recorded(context, running)
    }

    /// Keeps the parent's span id, so that a span recorded further down has a known parent.
    fn unsampled(&self, trace_id: u128, parent: Option<&TraceContext>) -> TraceContext {
        match parent {
            Some(parent) => parent.decided(false),
            None => TraceContext::new(trace_id, new_span_id(), false),
        }
    }

    pub(super) fn end(&self, context: &TraceContext, running: &SpanData) {
        // A span does not end before its start, even if the clock is set back.
        let ended = SystemTime::now().max(running.started);
        if self.spans.admit() {
            self.spans.add(&otlp::encode(context, running, ended));
        }
    }
}
