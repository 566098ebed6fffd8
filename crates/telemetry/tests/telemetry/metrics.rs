use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use shoal_telemetry::config::{Protocol, Telemetry};
use shoal_telemetry::metrics::{
    Failure, NameKind, Operation, SessionState, ShedReason, Values, definitions, metrics,
    prometheus_names, prometheus_text,
};
use shoal_telemetry::trace;

use crate::collector::{Collector, text, texts};
use crate::every_metric::{MOMENT, observe_all, record_all};
use crate::process::{LONG, alone, json, telemetry};

fn lose_something() {
    for _ in 0..3 {
        trace::internal("lost").start().end();
    }
    for _ in 0..3 {
        tracing::info!("again and again");
    }
}

fn start_everything(endpoint: String) -> shoal_telemetry::Guard {
    let mut telemetry = telemetry(endpoint, Protocol::Grpc);
    telemetry.metrics.otlp = true;
    telemetry.traces.queue = 1;
    telemetry.traces.batch = 1;
    telemetry.traces.delay = Duration::from_secs(3_600);
    telemetry.logs.repeats = 1;
    shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts")
}

#[test]
fn are_complete_and_well_formed_for_prometheus() {
    alone(
        "metrics::are_complete_and_well_formed_for_prometheus",
        || {
            let collector = Collector::start(Protocol::Grpc);
            let guard = start_everything(collector.endpoint.clone());
            record_all();
            observe_all();
            assert!(shoal_telemetry::metrics::enabled());
            lose_something();
            guard.shutdown(LONG);
            let text = prometheus_text();

            let shown: BTreeSet<&str> = (text.lines())
                .filter(|line| !line.starts_with('#'))
                .map(|line| line.split(['{', ' ']).next().expect("a name"))
                .collect();
            let names: Vec<String> = prometheus_names().collect();
            let named: BTreeSet<&str> = names.iter().map(String::as_str).collect();
            assert_eq!(names.len(), named.len(), "names are unique");
            assert_eq!(shown, named);
            check_series(&text);
            promtool(&text);
            for line in [
                "shoal_pool_sheds_total{shoal_pool=\"math\",shoal_reason=\"queue_full\"} 1",
                "shoal_event_log_appended_total 3",
                "shoal_session_held{shoal_state=\"active\"} 2",
                "shoal_pool_queue_age_seconds{shoal_pool=\"math\"} 0.003",
                "shoal_store_connected 1",
                "shoal_rpc_io_bytes_total{shoal_direction=\"out\",shoal_kind=\"worker\"} 100",
                "shoal_build_info{service_version=\"0.1.0\"} 1",
            ] {
                assert!(text.lines().any(|it| it == line), "{line}\n{text}");
            }
            assert!(
                text.contains("target_info{") && text.contains("service_instance_id=\"node-1\"")
            );
            assert!(!text.contains("otel_scope"), "{text}");
        },
    );
}

fn check_series(text: &str) {
    let mut known = HashMap::new();
    for definition in definitions() {
        known.insert(definition.name.replace('.', "_"), definition);
    }
    let mut checked = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().expect("a name");
        let found = known
            .iter()
            .filter(|(known, _)| name.starts_with(known.as_str()));
        let Some((_, definition)) = found.max_by_key(|(known, _)| known.len()) else {
            assert_eq!(name, "target_info");
            continue;
        };
        let Some(labels) = line.split_once('{').and_then(|(_, it)| it.split_once('}')) else {
            continue;
        };
        for label in labels.0.split("\",").filter(|it| !it.is_empty()) {
            let (key, value) = label.split_once("=\"").expect("a label");
            let value = value.trim_end_matches('"');
            if key == "le" {
                continue;
            }
            let attribute = (definition.attributes.iter())
                .find(|attribute| attribute.key.replace('.', "_") == key)
                .unwrap_or_else(|| panic!("{name} has no {key}"));
            if let Values::OneOf { values, open, .. } = attribute.values {
                let is_known = values.contains(&value) || (open && value == "_OTHER");
                assert!(is_known, "{name}: {key} is {value}");
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

fn promtool(text: &str) {
    let started = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = started else {
        let said = "SKIPPED: promtool is not on PATH, so the exposition was not checked with it";
        writeln!(std::io::stderr(), "{said}").expect("standard error is open");
        return;
    };
    let mut stdin = promtool.stdin.take().expect("piped");
    stdin.write_all(text.as_bytes()).expect("it reads");
    drop(stdin);
    let output = promtool.wait_with_output().expect("it ends");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}

#[test]
fn arrive_at_a_collector() {
    alone("metrics::arrive_at_a_collector", || {
        let collector = Collector::start(Protocol::Grpc);
        let mut telemetry = telemetry(collector.endpoint.clone(), Protocol::Grpc);
        telemetry.metrics.otlp = true;
        telemetry.metrics.prometheus = false;
        let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");
        record_all();
        observe_all();
        assert_eq!(prometheus_text(), "");
        guard.shutdown(LONG);

        let got = collector.metrics();
        let get = |name: &str| {
            let metric = got.iter().rfind(|it| it.name == name);
            metric.unwrap_or_else(|| panic!("{name}")).clone()
        };
        let operation = get("mcp.server.operation.duration");
        assert_eq!(operation.unit, "s");
        let Some(Data::Histogram(histogram)) = operation.data else {
            panic!("{operation:?}")
        };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.explicit_bounds.len()), (1, 14));
        assert_eq!(
            point.explicit_bounds,
            [
                0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0
            ]
        );
        let attributes = texts(&point.attributes);
        for (key, value) in [
            ("mcp.method.name", "tools/call"),
            ("gen_ai.tool.name", "add"),
            ("gen_ai.operation.name", "execute_tool"),
            ("error.type", "-32602"),
            ("rpc.response.status_code", "-32602"),
            ("mcp.protocol.version", "2025-11-25"),
            ("network.transport", "tcp"),
            ("network.protocol.name", "http"),
            ("network.protocol.version", "1.1"),
        ] {
            assert_eq!(attributes[key], value, "{key}");
        }
        let Some(Data::Sum(held)) = get("shoal.session.held").data else {
            panic!("a sum")
        };
        assert!(!held.is_monotonic);
        let Some(Data::Sum(sheds)) = get("shoal.pool.sheds").data else {
            panic!("a sum")
        };
        assert!(sheds.is_monotonic);
        let resource = collector.got().metrics[0].resource_metrics[0]
            .resource
            .clone();
        let name = resource.expect("a resource").attributes;
        let name = name.iter().find(|it| it.key == "service.name");
        assert_eq!(text(name.and_then(|it| it.value.as_ref())), "shoal");
    });
}

#[test]
fn that_count_begin_at_0() {
    alone("metrics::that_count_begin_at_0", || {
        let guard =
            shoal_telemetry::init(&Telemetry::default(), &json()).expect("telemetry starts");
        let text = prometheus_text();
        for line in [
            "shoal_lease_lapses_total 0",
            "shoal_stream_resumes_total{shoal_outcome=\"history_gone\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        metrics().nodes.lapsed();
        let text = prometheus_text();
        assert!(
            text.lines().any(|it| it == "shoal_lease_lapses_total 1"),
            "{text}"
        );
        guard.shutdown(LONG);
    });
}

#[test]
fn do_not_grow_with_what_clients_invent() {
    alone("metrics::do_not_grow_with_what_clients_invent", || {
        let telemetry = Telemetry::default();
        let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");
        metrics().known.replace(NameKind::Tool, ["add"]);
        for number in 0..500 {
            let invented = format!("invented-{number}");
            metrics().mcp.served(
                MOMENT,
                &Operation {
                    tool: Some(&invented),
                    prompt: Some(&invented),
                    failure: Some(Failure::Code(number)),
                    revision: Some(&invented),
                    ..Operation::new(&invented)
                },
            );
            metrics().pools.shed(&invented, ShedReason::NoWorker);
        }
        metrics().mcp.served(MOMENT, &Operation::new("ping"));
        let text = prometheus_text();
        let series = |name: &str| text.lines().filter(|it| it.starts_with(name)).count();
        assert_eq!(
            series("mcp_server_operation_duration_seconds_count"),
            2,
            "{text}"
        );
        assert_eq!(series("shoal_pool_sheds_total"), 1, "{text}");
        assert!(text.contains("mcp_method_name=\"_OTHER\"") && !text.contains("invented"));
        guard.shutdown(LONG);
    });
}

#[test]
fn have_no_more_series_than_configured() {
    alone("metrics::have_no_more_series_than_configured", || {
        let mut telemetry = Telemetry::default();
        telemetry.metrics.series = 10;
        let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");
        let pools: Vec<String> = (0..100).map(|it| format!("pool-{it}")).collect();
        (metrics().known).replace(NameKind::Pool, pools.iter().map(String::as_str));
        for pool in &pools {
            metrics().pools.shed(pool, ShedReason::NoWorker);
        }
        let text = prometheus_text();
        let sheds = text
            .lines()
            .filter(|it| it.starts_with("shoal_pool_sheds_total"));
        let sheds: Vec<&str> = sheds.collect();
        assert_eq!(sheds.len(), 11, "{sheds:?}");
        assert!(sheds.contains(&"shoal_pool_sheds_total{otel_metric_overflow=\"true\"} 90"));
        guard.shutdown(LONG);
    });
}

#[test]
fn that_are_observed_add_up_and_go_away() {
    alone("metrics::that_are_observed_add_up_and_go_away", || {
        let guard =
            shoal_telemetry::init(&Telemetry::default(), &json()).expect("telemetry starts");
        let value = || {
            let text = prometheus_text();
            (text.lines())
                .find_map(|it| it.strip_prefix("shoal_session_held{shoal_state=\"active\"} "))
                .map(str::to_owned)
        };
        assert_eq!(value(), None);
        let first = metrics()
            .sessions
            .observe_held(|to| to(SessionState::Active, 2));
        let second = metrics()
            .sessions
            .observe_held(|to| to(SessionState::Active, 3));
        assert_eq!(value().as_deref(), Some("5"));
        drop(first);
        assert_eq!(value().as_deref(), Some("3"));
        drop(second);
        assert_eq!(value(), None);
        guard.shutdown(LONG);
    });
}
