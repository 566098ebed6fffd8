use std::fmt;

use opentelemetry::Context;
use opentelemetry::trace::{SpanId, TraceContextExt as _, TraceId};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

use super::Format;

#[derive(Debug)]
pub(super) struct WithIds<F> {
    lines: F,
    format: Format,
}

impl<F> WithIds<F> {
    pub(super) const fn new(lines: F, format: Format) -> Self {
        Self { lines, format }
    }
}

impl<S, N, F> FormatEvent<S, N> for WithIds<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some((trace, span)) = current() else {
            return self.lines.format_event(context, writer, event);
        };
        let mut line = String::with_capacity(256);
        (self.lines).format_event(context, Writer::new(&mut line), event)?;
        let end = match self.format {
            Format::Pretty => "\n",
            Format::Json => "}\n",
        };
        let Some(line) = line.strip_suffix(end) else {
            return writer.write_str(&line);
        };
        match self.format {
            Format::Pretty => writeln!(writer, "{line} trace_id={trace} span_id={span}"),
            Format::Json => writeln!(
                writer,
                "{line},\"trace_id\":\"{trace}\",\"span_id\":\"{span}\"}}"
            ),
        }
    }
}

fn current() -> Option<(TraceId, SpanId)> {
    Context::map_current(|context| {
        context.has_active_span().then(|| {
            let span = context.span();
            let ids = span.span_context();
            (ids.trace_id(), ids.span_id())
        })
    })
}
