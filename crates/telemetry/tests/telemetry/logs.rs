use std::process::Output;
use std::time::Duration;

use serde_json::Value;
use shoal_telemetry::config::{Protocol, Telemetry};
use shoal_telemetry::logging::Logging;
use shoal_telemetry::metrics::prometheus_text;
use shoal_telemetry::trace::{self, InSpan as _};

use crate::collector::{Collector, text, texts};
use crate::process::{LONG, alone, json, telemetry, threads};

fn lines(output: &Output) -> Vec<Value> {
    String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn find<'a>(lines: &'a [Value], message: &str) -> Vec<&'a Value> {
    lines.iter().filter(|it| it["message"] == message).collect()
}

async fn log_in_two_steps() {
    tracing::info!(step = 1, "inside");
    tokio::task::yield_now().await;
    tracing::info!(step = 2, "inside");
}

#[test]
fn carry_the_ids_of_their_trace() {
    let output = alone("logs::carry_the_ids_of_their_trace", || {
        let collector = Collector::start(Protocol::Grpc);
        let mut telemetry = telemetry(collector.endpoint.clone(), Protocol::Grpc);
        telemetry.logs.otlp = true;
        let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");
        let span = trace::internal("the span").start();
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            tracing::info!("outside");
            log_in_two_steps().in_span(&span).await;
            tracing::info!("outside");
            async { tracing::info!(said = "so", "in scope") }
                .in_span(&span)
                .await;
        });
        tracing::info!("outside");
        let ids = span.context().expect("a context").clone();
        println!("ids {} {}", ids.trace_id(), ids.span_id());
        span.end();
        guard.shutdown(LONG);

        let got = collector.log_lines();
        let of = |message: &str| {
            let found = got.iter().filter(|it| text(it.body.as_ref()) == message);
            found.cloned().collect::<Vec<_>>()
        };
        assert_eq!((of("outside").len(), of("inside").len()), (3, 2), "{got:?}");
        assert!(of("outside").iter().all(|it| it.trace_id.is_empty()));
        let span = collector.span("the span");
        for line in of("inside").iter().chain(&of("in scope")) {
            assert_eq!(line.trace_id, span.trace_id);
            assert_eq!(line.span_id, span.span_id);
        }
        assert_eq!(texts(&of("in scope")[0].attributes)["said"], "so");
    });
    let Some(output) = output else { return };
    let stdout = String::from_utf8_lossy(&output.stdout);
    let ids = stdout.lines().find_map(|it| it.split("ids ").nth(1));
    let (trace, span) = ids.and_then(|it| it.split_once(' ')).expect("the ids");
    let lines = lines(&output);
    assert_eq!(find(&lines, "inside").len(), 2, "{lines:?}");
    for line in find(&lines, "inside")
        .iter()
        .chain(&find(&lines, "in scope"))
    {
        assert_eq!(line["trace_id"], trace);
        assert_eq!(line["span_id"], span);
    }
    assert_eq!(find(&lines, "outside").len(), 3);
    for line in find(&lines, "outside") {
        assert!(line.get("trace_id").is_none(), "{line}");
    }
}

#[test]
fn for_people_carry_them_too() {
    let output = alone("logs::for_people_carry_them_too", || {
        let collector = Collector::start(Protocol::Grpc);
        let telemetry = telemetry(collector.endpoint.clone(), Protocol::Grpc);
        let guard =
            shoal_telemetry::init(&telemetry, &Logging::default()).expect("telemetry starts");
        let span = trace::internal("the span").start();
        let inside = async { tracing::info!(field = 7, "inside") };
        futures::executor::block_on(inside.in_span(&span));
        tracing::info!("outside");
        drop(span);
        guard.shutdown(LONG);
    });
    let Some(output) = output else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = |with: &str| {
        let found = stderr.lines().find(|line| line.contains(with));
        found.unwrap_or_else(|| panic!("{with}: {stderr}"))
    };
    let (before, ids) = line("inside").split_once(" trace_id=").expect("ids");
    assert!(before.ends_with("inside field=7"), "{before}");
    let (trace, span) = ids.split_once(" span_id=").expect("both");
    assert_eq!((trace.len(), span.len()), (32, 16));
    assert!(!line("outside").contains("trace_id"));
}

#[test]
fn that_repeat_are_left_out_and_counted() {
    let output = alone("logs::that_repeat_are_left_out_and_counted", || {
        let collector = Collector::start(Protocol::Http);
        let mut telemetry = telemetry(collector.endpoint.clone(), Protocol::Http);
        telemetry.logs.otlp = true;
        telemetry.logs.repeats = 5;
        telemetry.logs.repeats_per = Duration::from_secs(3_600).into();
        let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");
        for number in 0..100 {
            tracing::warn!(number, "again and again");
            tracing::warn!("number {}", number % 50);
        }
        guard.shutdown(LONG);
        let text = prometheus_text();
        assert!(text.contains("shoal_log_suppressed_total 95\n"), "{text}");
        let got = collector.log_lines();
        let repeated = (got.iter()).filter(|it| text_is(it.body.as_ref(), "again and again"));
        assert_eq!(repeated.count(), 5);
        let said = (got.iter())
            .find(|it| text_is(it.body.as_ref(), "lines that repeat were left out"))
            .expect("it is said");
        assert_eq!(texts(&said.attributes)["suppressed"], "95");
    });
    let Some(output) = output else { return };
    let lines = lines(&output);
    assert_eq!(find(&lines, "again and again").len(), 5);
    let others = (0..50).map(|it| find(&lines, &format!("number {it}")).len());
    assert_eq!(others.sum::<usize>(), 100);
    let said = find(&lines, "lines that repeat were left out");
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["suppressed"], 95);
    assert_eq!(said[0]["line"], "again and again");
    assert_eq!(said[0]["level"], "WARN");
}

fn text_is(value: Option<&opentelemetry_proto::tonic::common::v1::AnyValue>, is: &str) -> bool {
    text(value) == is
}

#[test]
fn that_repeat_are_reported_when_the_interval_ends() {
    let output = alone(
        "logs::that_repeat_are_reported_when_the_interval_ends",
        || {
            let mut telemetry = Telemetry::default();
            telemetry.logs.repeats = 1;
            telemetry.logs.repeats_per = Duration::from_millis(50).into();
            let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");
            let before = threads();
            for round in 0..2 {
                for _ in 0..10 {
                    tracing::error!("round {round}");
                }
            }
            while threads() > before {
                std::thread::sleep(Duration::from_millis(10));
            }
            tracing::error!("round 0");
            guard.shutdown(LONG);
        },
    );
    let Some(output) = output else { return };
    let lines = lines(&output);
    let said = find(&lines, "lines that repeat were left out");
    let total: u64 = said.iter().filter_map(|it| it["suppressed"].as_u64()).sum();
    let passed = find(&lines, "round 0").len() + find(&lines, "round 1").len();
    assert!(!said.is_empty(), "{lines:?}");
    assert_eq!(total as usize + passed, 21, "{lines:?}");
    assert!(said.iter().all(|it| it["level"] == "ERROR"));
    let last = lines.last().expect("lines");
    assert_eq!(last["message"], "round 0", "a new interval lets lines pass");
}

#[test]
fn of_many_kinds_are_limited_by_their_place() {
    let output = alone("logs::of_many_kinds_are_limited_by_their_place", || {
        let mut telemetry = Telemetry::default();
        telemetry.logs.repeats = 2;
        telemetry.logs.repeats_per = Duration::from_secs(3_600).into();
        let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");
        for number in 0..3_000 {
            tracing::info!("invented {number}");
        }
        guard.shutdown(LONG);
    });
    let Some(output) = output else { return };
    let lines = lines(&output);
    let said = find(&lines, "lines that repeat were left out");
    assert_eq!(said.len(), 1);
    // Of 3000 messages, 1024 are counted separately, and each is logged. The others count together, and 2 of them are
    // logged.
    assert_eq!(said[0]["suppressed"], 3_000 - 1_024 - 2);
}

#[test]
fn of_refused_requests_are_one_of_each_kind() {
    let output = alone("logs::of_refused_requests_are_one_of_each_kind", || {
        let mut telemetry = Telemetry::default();
        telemetry.logs.repeats_per = Duration::from_secs(3_600).into();
        let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");
        for number in 0..101 {
            tracing::warn!(refusal = "store", "refused request {number}");
        }
        tracing::warn!(refusal = "overload", "refused another one");
        guard.shutdown(LONG);
    });
    let Some(output) = output else { return };
    let lines = lines(&output);
    let refused: Vec<&Value> = lines
        .iter()
        .filter(|it| it["refusal"].is_string())
        .collect();
    assert_eq!(refused.len(), 2, "{lines:?}");
    let said = find(&lines, "lines that repeat were left out");
    assert_eq!(said.len(), 1, "{lines:?}");
    assert_eq!(
        (&said[0]["suppressed"], &said[0]["kind"]),
        (&100.into(), &"store".into())
    );
}
