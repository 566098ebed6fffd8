//! Spans: who called whom, and where the time went.
//!
//! Everything is explicit: a span's parent is the [`TraceContext`](shoal_protocol::TraceContext) that it is given,
//! never what happens to run on the same thread. A span of a trace that is not kept costs a few comparisons and no allocation, and its
//! [`context`](Span::context) still carries the decision on, so that nobody downstream keeps half a trace.

pub mod attributes;
mod builder;
mod decision;
pub mod names;
mod scope;
mod span;
mod tracer;

pub use attributes::Key;
pub use builder::{SpanBuilder, client, internal, server};
pub use names::SpanName;
pub use scope::{InSpan, current};
pub use span::{Attributes, Span};

pub(crate) use decision::Decision;
pub(crate) use span::SpanData;
pub(crate) use tracer::Tracer;

/// Whether spans are made at all. Callers need not ask: a span costs nothing when they are not.
#[must_use]
pub fn enabled() -> bool {
    crate::state::tracer().is_some()
}
