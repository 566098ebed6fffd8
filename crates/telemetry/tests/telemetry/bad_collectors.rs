//! A collector that is dead, silent or lying delays nobody and fails nobody.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use shoal_telemetry::config::{Protocol, Telemetry};
use shoal_telemetry::metrics::prometheus_text;
use shoal_telemetry::{Guard, trace};

use crate::collector::Collector;
use crate::process::{LONG, alone, json, telemetry};

const QUEUE: usize = 64;
const SPANS: usize = 1_000;

/// Starts with few places to wait, and all signals.
fn start(endpoint: String, protocol: Protocol, timeout: Duration) -> Guard {
    let mut telemetry: Telemetry = telemetry(endpoint, protocol);
    telemetry.otlp.as_mut().expect("a collector").timeout = timeout;
    telemetry.traces.queue = QUEUE;
    telemetry.traces.batch = 16;
    telemetry.metrics.otlp = true;
    telemetry.logs.otlp = true;
    shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts without its collector")
}

/// Ends in time, or the test fails: without a bound it would take as long as the collector likes.
fn shut_down(guard: Guard, within: Duration) {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        guard.shutdown(within);
        done.send(())
    });
    ended.recv_timeout(LONG).expect("the shutdown ends");
}

/// A counter's value in the exposition; 0 when there is none.
fn counted(with: &[&str]) -> usize {
    let text = prometheus_text();
    let values = (text.lines())
        .filter(|line| !line.starts_with('#') && with.iter().all(|part| line.contains(part)))
        .map(|line| line.rsplit(' ').next().expect("a value"));
    values
        .map(|it| it.parse::<usize>().expect("a number"))
        .sum()
}

const DROPPED: &str = "shoal_telemetry_dropped_total";
const EXPORTS: &str = "shoal_telemetry_exports_total";
const TRACES: &str = "shoal_telemetry_signal=\"traces\"";

fn make_spans() {
    for _ in 0..SPANS {
        trace::internal("a span").start().end();
    }
}

/// Every span is accounted for: it was taken, or its loss was counted.
fn check_account(accepted: usize) {
    let lost = counted(&[DROPPED, TRACES]);
    assert_eq!(accepted + lost, SPANS, "{}", prometheus_text());
}

/// Listens, and hands every connection to `serve`.
fn listen(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> String {
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

/// An export may take five minutes here, and the shutdown a moment.
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

/// Reads a request's head and body, so that the answer is not cut off by a reset.
fn read_request(stream: &mut TcpStream) -> bool {
    let mut read = Vec::new();
    let mut part = [0; 4_096];
    loop {
        if let Some(end) = read.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..end]).to_lowercase();
            let length = head.split("content-length:").nth(1);
            let length = length.and_then(|it| it.lines().next()?.trim().parse::<usize>().ok());
            if read.len() >= end + 4 + length.unwrap_or(0) {
                return true;
            }
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return false,
            Ok(count) => read.extend_from_slice(&part[..count]),
        }
    }
}

/// Answers every request with the same bytes.
fn lying(protocol: Protocol, answer: &str, accepts: bool) {
    let answer = answer.to_owned();
    let endpoint =
        listen(
            move |mut stream| {
                while read_request(&mut stream) && stream.write_all(answer.as_bytes()).is_ok() {}
            },
        );
    let guard = start(endpoint, protocol, Duration::from_millis(500));
    make_spans();
    shut_down(guard, LONG);
    let queue_full = counted(&[DROPPED, TRACES, "queue_full"]);
    check_account(if accepts { SPANS - queue_full } else { 0 });
    let accepted = counted(&[EXPORTS, TRACES, "accepted"]);
    assert_eq!(accepted > 0, accepts, "{}", prometheus_text());
}

#[test]
fn that_refuses_everything() {
    alone("bad_collectors::that_refuses_everything", || {
        lying(
            Protocol::Http,
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 4\r\n\r\nnope",
            false,
        );
    });
}

#[test]
fn that_is_broken() {
    alone("bad_collectors::that_is_broken", || {
        lying(
            Protocol::Http,
            "HTTP/1.1 503 Service Unavailable\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n",
            false,
        );
    });
}

/// The headers' secrets are for the collector that was configured.
#[test]
fn that_sends_elsewhere() {
    alone("bad_collectors::that_sends_elsewhere", || {
        let elsewhere = Collector::start(Protocol::Http);
        let answer = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: {}/v1/traces\r\ncontent-length: 0\r\n\r\n",
            elsewhere.endpoint
        );
        lying(Protocol::Http, &answer, false);
        assert!(elsewhere.got().traces.is_empty());
    });
}

#[test]
fn that_speaks_something_else_over_http() {
    alone(
        "bad_collectors::that_speaks_something_else_over_http",
        || {
            lying(Protocol::Http, "SSH-2.0-OpenSSH_9.9\r\n", false);
        },
    );
}

#[test]
fn that_speaks_something_else_over_grpc() {
    alone(
        "bad_collectors::that_speaks_something_else_over_grpc",
        || {
            lying(Protocol::Grpc, "SSH-2.0-OpenSSH_9.9\r\n", false);
        },
    );
}

#[test]
fn that_takes_exports_and_answers_garbage() {
    alone(
        "bad_collectors::that_takes_exports_and_answers_garbage",
        || {
            lying(
                Protocol::Http,
                "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\ngarbage",
                true,
            );
        },
    );
}

#[test]
fn that_never_ends_its_answer() {
    alone("bad_collectors::that_never_ends_its_answer", || {
        let endpoint = listen(|mut stream| {
            if read_request(&mut stream) {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                while stream.write_all(&[0; 65_536]).is_ok() {}
            }
        });
        let guard = start(endpoint, Protocol::Http, Duration::from_secs(300));
        make_spans();
        // The answer is cut off by its length: its time would not do.
        shut_down(guard, LONG);
        check_account(0);
    });
}

/// A collector that rejects one span of each export, or says nonsense about that.
fn rejecting(collector: &Collector, protocol: Protocol, rejects: i64) {
    collector.got().rejects = rejects;
    let guard = start(collector.endpoint.clone(), protocol, LONG);
    trace::internal("a span").start().end();
    shut_down(guard, LONG);
    assert_eq!(counted(&[EXPORTS, TRACES, "accepted"]), 1);
    let counts = usize::try_from(rejects).unwrap_or(0);
    assert_eq!(counted(&[DROPPED, TRACES, "rejected"]), counts);
    collector.span("a span");
}

#[test]
fn that_reject_a_part_over_grpc() {
    let output = alone("bad_collectors::that_reject_a_part_over_grpc", || {
        rejecting(&Collector::start(Protocol::Grpc), Protocol::Grpc, 1);
    });
    let Some(output) = output else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr.matches("too old").count(), 1, "{stderr}");
}

#[test]
fn that_reject_a_part_over_http() {
    alone("bad_collectors::that_reject_a_part_over_http", || {
        rejecting(&Collector::start(Protocol::Http), Protocol::Http, 1);
    });
}

#[test]
fn that_reject_less_than_nothing() {
    alone("bad_collectors::that_reject_less_than_nothing", || {
        rejecting(&Collector::start(Protocol::Grpc), Protocol::Grpc, -5);
    });
}
