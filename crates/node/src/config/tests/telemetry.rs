use shoal_ports::Period;
use shoal_telemetry::config::{Compression, ParentSampling, Protocol, Telemetry, ToolRatio};

use super::{Operator, operator};

fn setup(operator: &Operator) -> Telemetry {
    operator.settings().telemetry_of("n-1")
}

#[test]
fn metrics_for_prometheus_and_nothing_else_is_the_default() {
    let told = setup(&operator());
    assert!(told.endpoint.is_none());
    assert!(told.metrics.prometheus && !told.metrics.otlp && !told.logs.otlp);
    assert_eq!(told.service_instance_id, "n-1");
    let roles = ("shoal.roles".to_owned(), "edge,session,worker".to_owned());
    assert_eq!(told.resource, [roles].into());
}

#[test]
fn the_file_says_everything() {
    let told = setup(&operator().file(
        "[telemetry]\nendpoint = 'http://c:4318'\nprotocol = 'http'\ntimeout = '3s'\n\
         headers = { x-team = 'fish' }\nservice_name = 'school'\n\
         resource = { 'deployment.environment.name' = 'test' }\n\
         [telemetry.traces]\nratio = 1\nparent = 'ignore'\nqueue = 100\n\
         tools = [{ tool = 'pay_*', ratio = 0.5 }, { tool = '*', ratio = 0 }]\n\
         [telemetry.metrics]\nprometheus = false\notlp = true\ninterval = '5s'\n\
         [telemetry.logs]\notlp = true\nrepeats = 0\n",
    ));
    assert_eq!(
        (told.endpoint.as_deref(), told.protocol),
        (Some("http://c:4318"), Protocol::Http)
    );
    assert_eq!((told.headers.len(), told.timeout), (1, Period::seconds(3)));
    assert_eq!(told.service_name, "school");
    assert_eq!(told.resource["deployment.environment.name"], "test");
    let traces = told.traces;
    assert!(traces.enabled && traces.queue == 100);
    assert_eq!(traces.parent, ParentSampling::Ignore);
    let tools = [("pay_*", 0.5), ("*", 0.0)].map(|(tool, ratio)| ToolRatio {
        tool: tool.to_owned(),
        ratio,
    });
    assert_eq!(traces.tools, tools);
    assert!(told.metrics.otlp && !told.metrics.prometheus);
    assert!(told.logs.otlp && told.logs.repeats == 0);
}

#[test]
fn variables_of_opentelemetry_are_below_everything() {
    let operator = operator()
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://env:4317")
        .variable("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        .variable("OTEL_EXPORTER_OTLP_HEADERS", "X-Key=a%2Cb, x-team=env")
        .variable("OTEL_EXPORTER_OTLP_TIMEOUT", "1500")
        .variable("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        .variable(
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=r,k8s.pod.name=p%201,service.version=9",
        )
        .variable("OTEL_SERVICE_NAME", "named")
        .variable("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
        .variable("OTEL_TRACES_SAMPLER_ARG", "0.25")
        .variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://else:1")
        .variable("OTEL_SDK_DISABLED", "false");
    let told = setup(&operator);
    assert_eq!(
        (told.endpoint.as_deref(), told.protocol),
        (Some("http://env:4317"), Protocol::Http)
    );
    assert_eq!(told.compression, Compression::Gzip);
    let names: Vec<&str> = told.headers.keys().map(String::as_str).collect();
    assert_eq!(
        (names, told.timeout),
        (vec!["x-key", "x-team"], Period::millis(1500))
    );
    assert_eq!(told.headers["x-key"].expose(), "a,b");
    assert_eq!(told.service_name, "named");
    assert_eq!(told.service_version, env!("CARGO_PKG_VERSION"));
    assert_eq!(told.resource["k8s.pod.name"], "p 1");
    assert!(told.traces.enabled);
    assert_eq!(told.traces.ratio, 0.25);

    let operator = operator
        .file("[telemetry]\nendpoint = 'http://file:4317'\n")
        .variable("SHOAL_TELEMETRY__TRACES__RATIO", "0.75");
    let told = setup(&operator);
    assert_eq!(told.endpoint.as_deref(), Some("http://file:4317"));
    assert_eq!(told.traces.ratio, 0.75);
}

#[test]
fn samplers_have_their_meanings() {
    for (sampler, ratio, parent) in [
        ("always_on", 1.0, ParentSampling::Ignore),
        ("always_off", 0.0, ParentSampling::Ignore),
        ("traceidratio", 0.5, ParentSampling::Ignore),
        ("parentbased_always_on", 1.0, ParentSampling::Follow),
        ("parentbased_always_off", 0.0, ParentSampling::Follow),
        ("parentbased_traceidratio", 0.5, ParentSampling::Follow),
        ("", 0.5, ParentSampling::Follow),
    ] {
        let operator = operator()
            .variable("OTEL_TRACES_SAMPLER_ARG", "0.5")
            .variable("OTEL_TRACES_SAMPLER", sampler);
        let sampling = setup(&operator).traces;
        assert_eq!(
            (sampling.ratio, sampling.parent),
            (ratio, parent),
            "{sampler}"
        );
    }
}

#[test]
fn everything_can_be_switched_off() {
    for (name, value) in [
        ("OTEL_SDK_DISABLED", "TRUE"),
        ("SHOAL_TELEMETRY__ENABLED", "false"),
    ] {
        let operator = operator()
            .variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://env:4317")
            .variable(name, value);
        assert!(!setup(&operator).enabled, "{name}");
    }
}

#[test]
fn what_cannot_be_used_is_said_with_who_set_it() {
    for (name, value, parts) in [
        (
            "SHOAL_TELEMETRY__ENDPOINT",
            "collector:4317",
            ["telemetry.endpoint", "http://"],
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "collector",
            ["telemetry.endpoint", "http://"],
        ),
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "http/json",
            ["telemetry.protocol", "\"grpc\", \"http\""],
        ),
        (
            "OTEL_EXPORTER_OTLP_TIMEOUT",
            "soon",
            ["telemetry.timeout", "soonms"],
        ),
        (
            "OTEL_TRACES_SAMPLER",
            "jaeger_remote",
            ["telemetry.traces.parent", "jaeger_remote"],
        ),
        (
            "OTEL_TRACES_SAMPLER_ARG",
            "2",
            ["telemetry.traces.ratio", "0 (none) to 1 (all)"],
        ),
        (
            "SHOAL_TELEMETRY__TRACES__RATIO",
            "-1",
            ["telemetry.traces.ratio", "0 (none) to 1 (all)"],
        ),
        (
            "SHOAL_TELEMETRY__METRICS__OTLP",
            "true",
            ["telemetry.metrics.otlp", "telemetry.endpoint"],
        ),
        (
            "SHOAL_TELEMETRY__LOGS__OTLP",
            "true",
            ["telemetry.logs.otlp", "telemetry.endpoint"],
        ),
        (
            "SHOAL_TELEMETRY__TRACES__QUEUE",
            "0",
            ["telemetry.traces.queue", "at least 1"],
        ),
        (
            "SHOAL_TELEMETRY__LOGS__REPEATS_PER",
            "0s",
            ["telemetry.logs.repeats_per", "above 0"],
        ),
        (
            "SHOAL_TELEMETRY__TRACES__TOOLS",
            "[{ tool = 'a' }]",
            ["telemetry.traces.tools[0].ratio", "is not set"],
        ),
    ] {
        let message = operator().variable(name, value).refusal();
        for part in parts.iter().chain([&name]) {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
    }
}
