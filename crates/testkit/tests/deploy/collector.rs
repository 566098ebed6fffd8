use serde_json::Value;
use shoal_telemetry::trace::names;

use crate::files::yaml;

fn names_in(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap();
    list.iter().map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn pipelines_are_made_of_what_is_defined() {
    let config: Value = yaml("otel-collector.yaml");
    let pipelines = config["service"]["pipelines"].as_object().unwrap();
    assert_eq!(pipelines.len(), 3);
    for (signal, pipeline) in pipelines {
        for kind in ["receivers", "processors", "exporters"] {
            for name in names_in(&pipeline[kind]) {
                assert!(config[kind].get(name).is_some(), "{signal}: {name}");
            }
        }
        let processors = names_in(&pipeline["processors"]);
        assert_eq!(processors.first(), Some(&"memory_limiter"), "{signal}");
        assert_eq!(processors.last(), Some(&"batch"), "{signal}");
    }
    let protocols = &config["receivers"]["otlp"]["protocols"];
    for (protocol, port) in [("grpc", "4317"), ("http", "4318")] {
        let endpoint = protocols[protocol]["endpoint"].as_str().unwrap();
        assert!(endpoint.ends_with(port), "{protocol}: {endpoint}");
    }
}

#[test]
fn errors_and_slow_traces_and_take_overs_are_kept() {
    let config: Value = yaml("otel-collector.yaml");
    let policies = config["processors"]["tail_sampling"]["policies"].as_array();
    let policies = policies.unwrap();
    let of_type = |kind: &str| policies.iter().find(|it| it["type"] == kind).unwrap();
    let codes = &of_type("status_code")["status_code"]["status_codes"];
    assert_eq!(names_in(codes), ["ERROR"]);
    assert!(of_type("latency")["latency"]["threshold_ms"].is_u64());
    let conditions = of_type("ottl_condition")["ottl_condition"]["span"].to_string();
    for name in [
        names::SESSION_TAKE_OVER,
        names::SESSION_RESUME_CALL,
        names::STREAM_RESUME,
    ] {
        let condition = format!(r#"name == \"{name}\""#);
        assert!(conditions.contains(&condition), "{conditions}");
    }
}
