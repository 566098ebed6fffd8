use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use http::StatusCode;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{SOON, all, limits};
use crate::http::{BoundHttp, HttpLimits, HttpServer};

const ROWS: &str = include_str!("refusals.md");
const PAGE: &str = include_str!("../../../../../docs/errors.md");

fn rows() -> BTreeMap<&'static str, (u16, Vec<&'static str>)> {
    let rows = ROWS.lines().filter_map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [what, status, "-32600", message] = cells[..] else {
            return None;
        };
        Some((
            what,
            (status.parse().unwrap(), message.split('…').collect()),
        ))
    });
    rows.collect()
}

#[test]
fn the_page_of_errors_has_every_status() {
    for (what, (status, _)) in rows() {
        let is_explained = PAGE.lines().any(|line| {
            let statuses = line.strip_prefix("| -32600 | ");
            let statuses = statuses.and_then(|rest| rest.split(" | ").next());
            statuses.is_some_and(|all| all.split(", ").any(|it| it == status.to_string()))
        });
        assert!(is_explained, "{what}: {status}");
    }
}

fn serve() -> (SocketAddr, HttpServer) {
    let router = Router::new()
        .route(
            "/",
            post(async |body: String| format!("read {}", body.len())),
        )
        .route(
            "/refusing",
            post(async || (StatusCode::PAYLOAD_TOO_LARGE, "too much")),
        );
    let limits = HttpLimits {
        header_timeout: SOON,
        idle_timeout: SOON,
        ..limits()
    };
    let bound = BoundHttp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    (bound.address(), bound.serve(router, &limits))
}

#[tokio::test]
async fn every_row_is_answered_as_it_says() {
    let (address, _server) = serve();
    let mut rows = rows();
    let long = "x".repeat(9000);
    let many = "a: b\r\n".repeat(20);
    for (what, requests) in [
        (
            "head that is not HTTP/1.1",
            &[
                "GET / HTTP/1.1\r\nbad name: x\r\n\r\n",
                "GET / HTTP/1.1\r\nhost : x\r\n\r\n",
                "GET / HTTP/1.1\r\nhost: x\r\n folded\r\n\r\n",
                "GET / HTTP/1.1\r\nhost: a\0b\r\n\r\n",
                "GET / HTTP/1.1\r\nhost: a\x7fb\r\n\r\n",
                "GET / HTTP/1.1\r\nhost: a\rb\r\n\r\n",
                "GET /a b HTTP/1.1\r\nhost: x\r\n\r\n",
                "GET / HTTP/3.0\r\nhost: x\r\n\r\n",
                "G(T / HTTP/1.1\r\nhost: x\r\n\r\n",
                "GET \r\n\r\n",
                "{\"jsonrpc\":\"2.0\"}\r\n\r\n",
                "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                "POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\nhello",
                "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
                "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
                "POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
                "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            ][..],
        ),
        (
            "head over the limits",
            &[
                &format!("GET / HTTP/1.1\r\n{many}\r\n"),
                &format!("GET / HTTP/1.1\r\na: {long}\r\n\r\n"),
                &format!("GET /{long} HTTP/1.1\r\n\r\n"),
            ],
        ),
        (
            "line that ends in LF alone",
            &[
                "POST / HTTP/1.1\nhost: x\r\n\r\n",
                "POST / HTTP/1.1\r\nhost: x\n\n",
                "POST / HTTP/1.1\r\nhost: x\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            ],
        ),
        (
            "Content-Length and Transfer-Encoding",
            &[
                "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET",
            ],
        ),
        (
            "Content-Length twice",
            &["POST / HTTP/1.1\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\nhello"],
        ),
        (
            "Transfer-Encoding twice",
            &[
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            ],
        ),
        (
            "request whose end is in doubt",
            &[&format!(
                "POST / HTTP/1.1\r\nContent-Length:{}5\r\n\r\nhello",
                " ".repeat(300)
            )],
        ),
        (
            "transfer coding other than chunked",
            &[
                "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                "POST / HTTP/1.1\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
            ],
        ),
    ] {
        let (status, message) = rows
            .remove(what)
            .unwrap_or_else(|| panic!("no row {what:?}"));
        for request in requests {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let answer = all(&mut stream).await;
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(
                head.starts_with(&format!("HTTP/1.1 {status} ")),
                "{request:?}: {head}"
            );
            for line in ["content-type: application/json", "connection: close"] {
                assert!(head.contains(line), "{request:?}: {head}");
            }
            assert!(
                head.contains(&format!("content-length: {}", body.len())),
                "{head}"
            );
            let body: Value =
                serde_json::from_str(body).unwrap_or_else(|_| panic!("{request:?}: {body:?}"));
            assert_eq!(body["jsonrpc"], "2.0");
            assert_eq!(body["error"]["code"], -32600);
            assert!(body.get("id").is_none());
            let said = body["error"]["message"].as_str().unwrap();
            for part in &message {
                assert!(said.contains(part), "{request:?}: {said}");
            }
        }
    }
    // The next test covers this row, which needs a higher limit on headers.
    rows.remove("target over 65,534 bytes").unwrap();
    assert!(rows.is_empty(), "without a test: {rows:?}");
}

#[tokio::test]
async fn a_long_target_is_refused_in_words() {
    let router = Router::new();
    let limits = HttpLimits {
        header_bytes: 128 << 10,
        header_timeout: SOON,
        idle_timeout: SOON,
        ..limits()
    };
    let bound = BoundHttp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut stream = TcpStream::connect(bound.address()).await.unwrap();
    let _server = bound.serve(router, &limits);
    let request = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(70_000));
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = all(&mut stream).await;
    let (status, message) = &rows()["target over 65,534 bytes"];
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status} ")),
        "{answer}"
    );
    assert!(answer.contains(message[0]), "{answer}");
}

/// A proxy may take both requests for one, so the second must not be served.
#[tokio::test]
async fn nothing_is_served_behind_a_request_in_doubt() {
    let (address, _server) = serve();
    let next = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc";
    for (first, answered) in [
        (
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            0,
        ),
        (
            "POST / HTTP/1.1\r\nhost: x\r\n\ncontent-length: 60\r\n\r\n",
            0,
        ),
        (
            "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: b\nc: d\r\n\r\n",
            0,
        ),
        (
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi",
            2,
        ),
        (
            "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            2,
        ),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let last = "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        stream
            .write_all(format!("{first}{next}{last}").as_bytes())
            .await
            .unwrap();
        let said = all(&mut stream).await;
        let served = said.matches("HTTP/1.1 200 OK").count();
        assert_eq!(
            served,
            if answered == 2 { 3 } else { answered },
            "{first:?}: {said}"
        );
        assert!(
            answered == 2 || said.contains("HTTP/1.1 400 "),
            "{first:?}: {said}"
        );
    }
}

/// The client sends its whole request before it reads.
#[tokio::test]
async fn an_answer_before_the_end_of_its_request_arrives() {
    let (address, _server) = serve();
    let refusing = "POST /refusing HTTP/1.1\r\nhost: x\r\n";
    let body = vec![b'x'; 8 << 20];
    let announced = format!("{refusing}content-length: {}\r\n\r\n", body.len());
    let chunked = format!(
        "{refusing}transfer-encoding: chunked\r\n\r\n{:x}\r\n",
        body.len()
    );
    let malformed = "POST / HTTP/1.1\r\nbad name: x\r\n\r\n".to_owned();
    for (head, status) in [(announced, 413), (chunked, 413), (malformed, 400)] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        for piece in body.chunks(1 << 20) {
            stream.write_all(piece).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if head.contains("chunked") {
            stream.write_all(b"\r\n0\r\n\r\n").await.unwrap();
        }
        stream.shutdown().await.unwrap();
        let answer = all(&mut stream).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert!(answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn a_connection_stays_open_after_a_refusal_of_a_whole_request() {
    let (address, _server) = serve();
    let mut stream = TcpStream::connect(address).await.unwrap();
    for _ in 0..3 {
        let request = b"POST /refusing HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello";
        stream.write_all(request).await.unwrap();
        let answer = super::answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        assert!(!answer.contains("connection: close"), "{answer}");
    }
}
