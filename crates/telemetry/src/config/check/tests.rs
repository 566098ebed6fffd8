use std::time::Duration;

use super::super::{Compression, Otlp, Protocol, Secret, Telemetry};

fn with_collector() -> Telemetry {
    let mut telemetry = Telemetry {
        otlp: Some(Otlp {
            endpoint: "http://127.0.0.1:4317".to_owned(),
            protocol: Protocol::Grpc,
            headers: vec![("authorization".to_owned(), Secret::new("Bearer hush"))],
            timeout: Duration::from_secs(10),
            compression: Compression::None,
        }),
        ..Telemetry::default()
    };
    telemetry.traces.enabled = true;
    telemetry.traces.sampling.tools = vec![("echo".to_owned(), 1.0)];
    telemetry
}

#[test]
fn good_values_pass() {
    for telemetry in [Telemetry::default(), Telemetry::off(), with_collector()] {
        assert_eq!(telemetry.check(), Ok(()));
    }
}

#[test]
fn bad_values_are_named() {
    type Change = fn(&mut Telemetry);
    let cases: [(&str, &str, Change); 16] = [
        ("service_name", "empty", |t| t.service_name = " ".into()),
        ("resource", "twice", |t| {
            t.resource = vec![("a".into(), "1".into()), ("a".into(), "2".into())];
        }),
        ("resource", "attribute key", |t| {
            t.resource = vec![("a b".into(), "1".into())];
        }),
        ("traces.enabled", "otlp.endpoint", |t| t.otlp = None),
        ("otlp.endpoint", "http://", |t| {
            endpoint(t, "collector:4317");
        }),
        ("otlp.endpoint", "http://", |t| endpoint(t, "ftp://c:1")),
        ("otlp.endpoint", "no address", |t| endpoint(t, "not a url")),
        ("otlp.endpoint", "otlp.headers", |t| {
            endpoint(t, "http://me:secret@c:4317");
        }),
        ("otlp.headers", "header name", |t| header(t, "a b", "x")),
        ("otlp.headers", "control", |t| header(t, "a", "x\ny")),
        ("otlp.timeout", "above 0", |t| timeout(t, 0)),
        ("otlp.timeout", "above 300s", |t| timeout(t, 301)),
        ("traces.sampling.ratio", "0 (none)", |t| {
            t.traces.sampling.ratio = 1.5;
        }),
        ("traces.sampling.tools", "\"echo\"", |t| {
            t.traces.sampling.tools[0].1 = f64::NAN;
        }),
        ("traces.batch", "8192", |t| t.traces.batch = 9_000),
        ("logs.repeats.limit", "1 or more", |t| {
            t.logs.repeats.as_mut().expect("on").limit = 0;
        }),
    ];
    for (setting, says, change) in cases {
        let mut telemetry = with_collector();
        change(&mut telemetry);
        let error = telemetry.check().expect_err(setting);
        assert_eq!(error.setting, setting, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[test]
fn secrets_are_not_printed() {
    assert!(!format!("{:?}", with_collector()).contains("hush"));
}

fn otlp(telemetry: &mut Telemetry) -> &mut Otlp {
    telemetry.otlp.as_mut().expect("a collector")
}

fn endpoint(telemetry: &mut Telemetry, value: &str) {
    otlp(telemetry).endpoint = value.to_owned();
}

fn header(telemetry: &mut Telemetry, name: &str, value: &str) {
    otlp(telemetry).headers = vec![(name.to_owned(), Secret::new(value))];
}

fn timeout(telemetry: &mut Telemetry, seconds: u64) {
    otlp(telemetry).timeout = Duration::from_secs(seconds);
}
