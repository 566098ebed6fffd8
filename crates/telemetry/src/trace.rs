//! Spans of calls.
//!
//! A span's parent is the given [`TraceContext`](shoal_protocol::TraceContext), independent of the thread. A span of an
//! unsampled trace costs a few comparisons, and its [`context`](Span::context) passes the decision on, so that traces
//! are complete or absent.

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

pub(crate) use decision::SamplingDecision;
pub(crate) use span::SpanData;
pub(crate) use tracer::Tracer;

/// Whether spans are recorded. Spans can be started without this check.
#[must_use]
pub fn enabled() -> bool {
    crate::state::tracer().is_some()
}
