use std::time::Duration;

use super::super::{Secret, Telemetry, ToolRatio};

fn with_collector() -> Telemetry {
    let mut telemetry = Telemetry {
        endpoint: Some("http://127.0.0.1:4317".to_owned()),
        headers: [("authorization".to_owned(), Secret::new("Bearer hush"))].into(),
        ..Telemetry::default()
    };
    telemetry.metrics.otlp = true;
    telemetry.traces.tools = vec![ToolRatio {
        tool: "echo".to_owned(),
        ratio: 1.0,
    }];
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
    let cases: [(&str, &str, Change); 15] = [
        ("service_name", "empty", |t| t.service_name = " ".into()),
        ("resource", "attribute key", |t| {
            t.resource = [("a b".into(), "1".into())].into();
        }),
        ("metrics.otlp", "telemetry.endpoint", |t| t.endpoint = None),
        ("endpoint", "http://", |t| {
            endpoint(t, "collector:4317");
        }),
        ("endpoint", "http://", |t| endpoint(t, "ftp://c:1")),
        ("endpoint", "not an address", |t| endpoint(t, "not a url")),
        ("endpoint", "telemetry.headers", |t| {
            endpoint(t, "http://me:secret@c:4317");
        }),
        ("headers", "header name", |t| header(t, "a b", "x")),
        ("headers", "control", |t| header(t, "a", "x\ny")),
        ("timeout", "above 0", |t| timeout(t, 0)),
        ("timeout", "above 300s", |t| timeout(t, 301)),
        ("traces.ratio", "0 (none)", |t| t.traces.ratio = 1.5),
        ("traces.tools", "\"echo\"", |t| {
            t.traces.tools[0].ratio = f64::NAN;
        }),
        ("traces.queue", "at least 1", |t| t.traces.queue = 0),
        ("logs.repeats_per", "above 0", |t| {
            t.logs.repeats_per = Duration::ZERO.into();
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

fn endpoint(telemetry: &mut Telemetry, value: &str) {
    telemetry.endpoint = Some(value.to_owned());
}

fn header(telemetry: &mut Telemetry, name: &str, value: &str) {
    telemetry.headers = [(name.to_owned(), Secret::new(value))].into();
}

fn timeout(telemetry: &mut Telemetry, seconds: u64) {
    telemetry.timeout = Duration::from_secs(seconds).into();
}
