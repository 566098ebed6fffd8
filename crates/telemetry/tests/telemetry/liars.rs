use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use shoal_telemetry::config::Protocol;
use shoal_telemetry::metrics::prometheus_text;
use shoal_telemetry::trace;

use crate::bad_collectors::{
    DROPPED, EXPORTS, SPANS, TRACES, check_account, counted, listen, make_spans, shut_down, start,
};
use crate::collector::Collector;
use crate::process::{LONG, alone};

/// Reads the whole request, because closing a connection with unread data may cut off the answer.
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
    alone("liars::that_refuses_everything", || {
        lying(
            Protocol::Http,
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 4\r\n\r\nnope",
            false,
        );
    });
}

#[test]
fn that_is_broken() {
    alone("liars::that_is_broken", || {
        lying(
            Protocol::Http,
            "HTTP/1.1 503 Service Unavailable\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n",
            false,
        );
    });
}

/// The secrets in the headers must reach only the configured collector.
#[test]
fn that_sends_elsewhere() {
    alone("liars::that_sends_elsewhere", || {
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
    alone("liars::that_speaks_something_else_over_http", || {
        lying(Protocol::Http, "SSH-2.0-OpenSSH_9.9\r\n", false);
    });
}

#[test]
fn that_speaks_something_else_over_grpc() {
    alone("liars::that_speaks_something_else_over_grpc", || {
        lying(Protocol::Grpc, "SSH-2.0-OpenSSH_9.9\r\n", false);
    });
}

#[test]
fn that_takes_exports_and_answers_garbage() {
    alone("liars::that_takes_exports_and_answers_garbage", || {
        lying(
            Protocol::Http,
            "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\ngarbage",
            true,
        );
    });
}

#[test]
fn that_never_ends_its_answer() {
    alone("liars::that_never_ends_its_answer", || {
        let endpoint = listen(|mut stream| {
            if read_request(&mut stream) {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                while stream.write_all(&[0; 65_536]).is_ok() {}
            }
        });
        let guard = start(endpoint, Protocol::Http, Duration::from_secs(300));
        make_spans();
        // The answer's length ends the export before the time limit does.
        shut_down(guard, LONG);
        check_account(0);
    });
}

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
    let output = alone("liars::that_reject_a_part_over_grpc", || {
        rejecting(&Collector::start(Protocol::Grpc), Protocol::Grpc, 1);
    });
    let Some(output) = output else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr.matches("too old").count(), 1, "{stderr}");
}

#[test]
fn that_reject_a_part_over_http() {
    alone("liars::that_reject_a_part_over_http", || {
        rejecting(&Collector::start(Protocol::Http), Protocol::Http, 1);
    });
}

#[test]
fn that_reject_less_than_nothing() {
    alone("liars::that_reject_less_than_nothing", || {
        rejecting(&Collector::start(Protocol::Grpc), Protocol::Grpc, -5);
    });
}
