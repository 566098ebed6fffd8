//! Prints the cost of instrumentation in nanoseconds per call, or with `off`, that of a process without telemetry.

use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use shoal_protocol::TraceContext;
use shoal_telemetry::config::Telemetry;
use shoal_telemetry::logging::Logging;
use shoal_telemetry::metrics::{NameKind, Operation, ShedReason, metrics};
use shoal_telemetry::trace::{self, InSpan as _, attributes, names};

const ROUNDS: u32 = 200_000;
const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let guard = if std::env::args().nth(1).as_deref() == Some("off") {
        None
    } else {
        Some(start()?)
    };
    let sampled = TraceContext::parse(SAMPLED, None);
    let unsampled = TraceContext::parse(UNSAMPLED, None);
    metrics().known.replace(NameKind::Tool, ["add"]);
    metrics().known.replace(NameKind::Pool, ["math"]);

    measure("span, sampled, 4 attributes", || span(sampled.as_ref()))?;
    measure("span, not sampled", || span(unsampled.as_ref()))?;
    measure("root span, decided by ratio 0", || span(None))?;
    measure("traceparent, read", || {
        black_box(TraceContext::parse(black_box(SAMPLED), None));
    })?;
    measure("traceparent, written", || {
        black_box(sampled.as_ref().map(TraceContext::to_traceparent));
    })?;
    let span = trace::internal("scope").parent(unsampled.as_ref()).start();
    measure("future in a span, not sampled", || {
        futures::executor::block_on(async { black_box(1) }.in_span(&span));
    })?;
    measure("counter, 2 attributes", || {
        metrics()
            .pools
            .shed(black_box("math"), ShedReason::QueueFull);
    })?;
    let operation = Operation {
        tool: Some("add"),
        revision: Some("2025-11-25"),
        ..Operation::new("tools/call")
    };
    measure("histogram, 7 attributes", || {
        metrics()
            .mcp
            .served(Duration::from_millis(3), black_box(&operation));
    })?;
    if let Some(guard) = guard {
        // Does not wait, because there is no collector.
        guard.shutdown(Duration::ZERO);
    }
    Ok(())
}

fn start() -> Result<shoal_telemetry::Guard, shoal_telemetry::Error> {
    let mut telemetry = Telemetry {
        endpoint: Some("http://127.0.0.1:1".to_owned()),
        timeout: Duration::from_secs(1).into(),
        ..Telemetry::default()
    };
    telemetry.traces.ratio = 0.0;
    let logging = Logging {
        level: "off".to_owned(),
        ..Logging::default()
    };
    shoal_telemetry::init(&telemetry, &logging)
}

fn span(parent: Option<&TraceContext>) {
    let mut span = trace::server(|| names::mcp_name("tools/call", Some("add")))
        .parent(black_box(parent))
        .sampling_target("add")
        .start_with(|set| {
            set.set(attributes::MCP_METHOD_NAME, "tools/call")
                .set(attributes::GEN_AI_TOOL_NAME, "add")
                .set(attributes::ATTEMPT, 1);
        });
    span.set(attributes::POOL, "math");
    drop(black_box(span));
}

fn measure(what: &str, mut work: impl FnMut()) -> std::io::Result<()> {
    for _ in 0..ROUNDS / 10 {
        work();
    }
    let since = Instant::now();
    for _ in 0..ROUNDS {
        work();
    }
    let each = since.elapsed().as_nanos() / u128::from(ROUNDS);
    writeln!(std::io::stdout(), "{each:>6} ns  {what}")
}
