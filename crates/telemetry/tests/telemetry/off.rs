use shoal_protocol::TraceContext;
use shoal_telemetry::config::{Protocol, Telemetry};
use shoal_telemetry::metrics::{ShedReason, metrics, prometheus_text};
use shoal_telemetry::trace::{self, InSpan as _};

use crate::collector::Collector;
use crate::process::{LONG, alone, json, telemetry, threads};

const CLIENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn use_all() {
    let parent = TraceContext::parse(CLIENT, None);
    let mut span = trace::server(|| panic!("nobody needs a name"))
        .parent(parent.as_ref())
        .start_with(|_| panic!("nobody needs attributes"));
    span.rename(|| -> String { panic!("nobody needs a name") });
    span.add_event("event", |_| panic!("nobody needs attributes"));
    span.record_error("error");
    assert!(!span.is_recording());
    assert_eq!(span.context(), parent.as_ref());
    assert_eq!(trace::internal("root").start().context(), None);
    let current = async { trace::current() }.in_span(&span);
    assert_eq!(futures::executor::block_on(current), None);
    assert_eq!(futures::executor::block_on(async { 2 }.in_span(&span)), 2);
    metrics().pools.shed("math", ShedReason::QueueFull);
    drop(metrics().pools.observe_queued(|_| panic!("nobody asks")));
    assert_eq!(prometheus_text(), "");
    assert!(!shoal_telemetry::metrics::enabled());
}

#[test]
fn before_it_is_set_up() {
    alone("off::before_it_is_set_up", || {
        assert!(!trace::enabled());
        use_all();
    });
}

#[test]
fn when_it_is_set_up_as_off() {
    alone("off::when_it_is_set_up_as_off", || {
        let before = threads();
        let guard = shoal_telemetry::init(&Telemetry::off(), &json()).expect("it starts");
        assert!(!trace::enabled());
        use_all();
        assert_eq!(threads(), before + 1, "off means no thread but the log's");
        guard.shutdown(LONG);
    });
}

#[test]
fn is_set_up_once() {
    alone("off::is_set_up_once", || {
        let first = shoal_telemetry::init(&Telemetry::default(), &json());
        let guard = first.expect("the first may");
        let second = shoal_telemetry::init(&Telemetry::default(), &json());
        assert!(matches!(second, Err(shoal_telemetry::Error::Twice)));
        guard.shutdown(LONG);
    });
}

/// `init` fails in async code here, where dropping its runtime must not panic.
#[test]
fn fails_where_somebody_logs_already() {
    alone("off::fails_where_somebody_logs_already", || {
        let collector = Collector::start(Protocol::Grpc);
        shoal_telemetry::logging::init(&json()).expect("the first may");
        let telemetry = telemetry(collector.endpoint.clone(), Protocol::Grpc);
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let failed = runtime.block_on(async { shoal_telemetry::init(&telemetry, &json()) });
        let error = failed.expect_err("logging is taken");
        assert!(error.to_string().contains("already"), "{error}");
        assert!(!trace::enabled());
    });
}

#[test]
fn starts_with_a_good_configuration_only() {
    alone("off::starts_with_a_good_configuration_only", || {
        let mut telemetry = Telemetry::default();
        telemetry.metrics.otlp = true;
        let error = shoal_telemetry::init(&telemetry, &json()).expect_err("no collector");
        assert!(
            error.to_string().contains("telemetry.metrics.otlp"),
            "{error}"
        );
        telemetry.metrics.otlp = false;
        shoal_telemetry::init(&telemetry, &json())
            .expect("it starts")
            .shutdown(LONG);
    });
}
