//! What is told of the process, and the variables that every OpenTelemetry program knows.

use shoal_telemetry::config::{Compression, ParentSampling, Protocol, Telemetry};

use super::{Operator, operator};

fn setup(operator: &Operator) -> Telemetry {
    let settings = operator.settings();
    settings.telemetry.to_setup(&settings.node, "n-1")
}

#[test]
fn metrics_for_prometheus_and_nothing_else_is_the_default() {
    let told = setup(&operator());
    assert!(told.otlp.is_none() && !told.traces.enabled);
    assert!(told.metrics.prometheus && !told.metrics.otlp && !told.logs.otlp);
    assert_eq!(told.service_instance_id, "n-1");
    let roles = ("shoal.roles".to_owned(), "edge,session,worker".to_owned());
    assert_eq!(told.resource, [roles]);
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
    let otlp = told.otlp.unwrap();
    assert_eq!(
        (otlp.endpoint.as_str(), otlp.protocol),
        ("http://c:4318", Protocol::Http)
    );
    assert_eq!((otlp.headers.len(), otlp.timeout.as_secs()), (1, 3));
    assert_eq!(told.service_name, "school");
    let named = ("deployment.environment.name".to_owned(), "test".to_owned());
    assert!(told.resource.contains(&named));
    let traces = told.traces;
    assert!(traces.enabled && traces.queue == 100 && traces.batch == 100);
    assert_eq!(traces.sampling.parent, ParentSampling::Ignore);
    let tools = [("pay_*".to_owned(), 0.5), ("*".to_owned(), 0.0)];
    assert_eq!(traces.sampling.tools, tools);
    assert!(told.metrics.otlp && !told.metrics.prometheus);
    assert!(told.logs.otlp && told.logs.repeats.is_none());
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
    let otlp = told.otlp.as_ref().unwrap();
    assert_eq!(
        (otlp.endpoint.as_str(), otlp.protocol),
        ("http://env:4317", Protocol::Http)
    );
    assert_eq!(otlp.compression, Compression::Gzip);
    let names: Vec<&str> = otlp.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        (names, otlp.timeout.as_millis()),
        (vec!["x-key", "x-team"], 1500)
    );
    let settings = operator.settings();
    assert_eq!(settings.telemetry.headers["x-key"].expose(), "a,b");
    assert_eq!(told.service_name, "named");
    assert_eq!(told.service_version, env!("CARGO_PKG_VERSION"));
    let pod = ("k8s.pod.name".to_owned(), "p 1".to_owned());
    assert_eq!(told.resource[1..], [pod]);
    assert!(told.traces.enabled);
    assert_eq!(told.traces.sampling.ratio, 0.25);

    let operator = operator
        .file("[telemetry]\nendpoint = 'http://file:4317'\n")
        .variable("SHOAL_TELEMETRY__TRACES__RATIO", "0.75");
    let told = setup(&operator);
    assert_eq!(told.otlp.unwrap().endpoint, "http://file:4317");
    assert_eq!(told.traces.sampling.ratio, 0.75);
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
        let sampling = setup(&operator).traces.sampling;
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
        let told = setup(&operator);
        assert_eq!(told, Telemetry::off(), "{name}");
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
            ["telemetry.protocol", "`grpc` or `http`"],
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
            ["telemetry.traces.tools", "`ratio`"],
        ),
    ] {
        let message = operator().variable(name, value).refusal();
        for part in parts.iter().chain([&name]) {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
    }
}
