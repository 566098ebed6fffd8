use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use shoal_telemetry::config::{Protocol, Telemetry};
use shoal_telemetry::metrics::prometheus_text;
use shoal_telemetry::{Guard, trace};

use crate::process::{LONG, alone, json, telemetry};

const QUEUE: usize = 64;
pub(crate) const SPANS: usize = 1_000;

pub(crate) fn start(endpoint: String, protocol: Protocol, timeout: Duration) -> Guard {
    let mut telemetry: Telemetry = telemetry(endpoint, protocol);
    telemetry.timeout = timeout.into();
    telemetry.traces.queue = QUEUE;
    telemetry.traces.batch = 16;
    telemetry.metrics.otlp = true;
    telemetry.logs.otlp = true;
    shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts without its collector")
}

pub(crate) fn shut_down(guard: Guard, within: Duration) {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        guard.shutdown(within);
        done.send(())
    });
    ended.recv_timeout(LONG).expect("the shutdown ends");
}

pub(crate) fn counted(with: &[&str]) -> usize {
    let text = prometheus_text();
    let values = (text.lines())
        .filter(|line| !line.starts_with('#') && with.iter().all(|part| line.contains(part)))
        .map(|line| line.rsplit(' ').next().expect("a value"));
    values
        .map(|it| it.parse::<usize>().expect("a number"))
        .sum()
}

pub(crate) const DROPPED: &str = "shoal_telemetry_dropped_total";
pub(crate) const EXPORTS: &str = "shoal_telemetry_exports_total";
pub(crate) const TRACES: &str = "shoal_telemetry_signal=\"traces\"";

pub(crate) fn make_spans() {
    for _ in 0..SPANS {
        trace::internal("a span").start().end();
    }
}

pub(crate) fn check_account(accepted: usize) {
    let lost = counted(&[DROPPED, TRACES]);
    assert_eq!(accepted + lost, SPANS, "{}", prometheus_text());
}

pub(crate) fn listen(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    format!("http://{address}")
}

fn dead() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("its address"))
}

#[test]
fn dead_over_grpc() {
    let output = alone("bad_collectors::dead_over_grpc", || {
        let guard = start(dead(), Protocol::Grpc, Duration::from_millis(500));
        make_spans();
        shut_down(guard, LONG);
        check_account(0);
        assert!(counted(&[DROPPED, TRACES, "queue_full"]) > 0);
        assert!(counted(&[DROPPED, TRACES, "export_failed"]) >= QUEUE);
    });
    let Some(output) = output else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    let said = (stderr.lines())
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["signal"] == "traces" && line["level"] == "WARN")
        .count();
    assert_eq!(said, 1, "failed exports are said once a minute: {stderr}");
    assert!(!stderr.contains("opentelemetry"), "{stderr}");
}

#[test]
fn dead_over_http() {
    alone("bad_collectors::dead_over_http", || {
        let guard = start(dead(), Protocol::Http, Duration::from_millis(500));
        make_spans();
        shut_down(guard, LONG);
        check_account(0);
    });
}

/// The time limit of an export is five minutes, but the shutdown must not wait for it.
fn silent(protocol: Protocol) {
    let endpoint = listen(|stream| {
        std::thread::park();
        drop(stream);
    });
    let guard = start(endpoint, protocol, Duration::from_secs(300));
    make_spans();
    assert!(counted(&[DROPPED, TRACES, "queue_full"]) >= SPANS - QUEUE);
    shut_down(guard, Duration::from_millis(200));
}

#[test]
fn silent_over_grpc() {
    alone("bad_collectors::silent_over_grpc", || {
        silent(Protocol::Grpc);
    });
}

#[test]
fn silent_over_http() {
    alone("bad_collectors::silent_over_http", || {
        silent(Protocol::Http);
    });
}

#[test]
fn silent_until_the_timeout() {
    alone("bad_collectors::silent_until_the_timeout", || {
        let endpoint = listen(|stream| {
            std::thread::park();
            drop(stream);
        });
        let guard = start(endpoint, Protocol::Http, Duration::from_millis(100));
        make_spans();
        shut_down(guard, LONG);
        check_account(0);
        assert!(counted(&[EXPORTS, TRACES, "accepted"]) == 0);
    });
}
