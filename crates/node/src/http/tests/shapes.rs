use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{SOON, all, limits};
use crate::http::{BoundHttp, HttpLimits, HttpServer, RequestService};

fn serve() -> (SocketAddr, HttpServer) {
    let echo = any(async |uri: http::Uri, body: String| format!("{uri} {body}"));
    let router = Router::new().route("/mcp", echo);
    let limits = HttpLimits {
        header_timeout: SOON,
        idle_timeout: SOON,
        ..limits()
    };
    let bound = BoundHttp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    (bound.address(), bound.serve(router, &limits))
}

async fn said(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    all(&mut stream).await
}

#[tokio::test]
async fn each_shape_has_one_reading() {
    let (address, _server) = serve();
    for (first, rest, begins, ends) in [
        // The server uses paths as sent, without decoding or resolving them.
        ("POST /mcp HTTP/1.1", "", "HTTP/1.1 200", "/mcp "),
        (
            "POST /mcp?x=%2f HTTP/1.1",
            "",
            "HTTP/1.1 200",
            "/mcp?x=%2f ",
        ),
        ("POST //mcp HTTP/1.1", "", "HTTP/1.1 404", ""),
        ("POST /mcp/ HTTP/1.1", "", "HTTP/1.1 404", ""),
        ("POST /mcp%2f HTTP/1.1", "", "HTTP/1.1 404", ""),
        ("POST /%6dcp HTTP/1.1", "", "HTTP/1.1 404", ""),
        ("POST /./mcp HTTP/1.1", "", "HTTP/1.1 404", ""),
        ("POST /x/../mcp HTTP/1.1", "", "HTTP/1.1 404", ""),
        ("POST /MCP HTTP/1.1", "", "HTTP/1.1 404", ""),
        (
            "POST http://x/mcp HTTP/1.1",
            "",
            "HTTP/1.1 200",
            "http://x/mcp ",
        ),
        ("OPTIONS * HTTP/1.1", "", "HTTP/1.1 404", ""),
        ("CONNECT x:80 HTTP/1.1", "", "HTTP/1.1 404", ""),
        ("POST /mcp HTTP/1.0", "", "HTTP/1.0 200", "/mcp "),
        ("POST /mcp HTTP/0.9", "", "HTTP/1.1 400", "}"),
        ("POST /mcp", "", "HTTP/1.1 400", "}"),
        (
            "POST /mcp HTTP/1.1",
            "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n",
            "HTTP/1.1 200",
            "/mcp ",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Upgrade: websocket\r\nConnection: Upgrade\r\n",
            "HTTP/1.1 200",
            "/mcp ",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Expect: 100-continue\r\nContent-Length: 2\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200",
            "/mcp hi",
        ),
        (
            "GET /mcp HTTP/1.1",
            "Content-Length: 2\r\n",
            "HTTP/1.1 200",
            "/mcp hi",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Content-Length: 0\r\n",
            "HTTP/1.1 200",
            "/mcp ",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Transfer-Encoding: \tchunked\r\nContent-Length: 2\r\n",
            "HTTP/1.1 400",
            "}",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Transfer-Encoding\t: chunked\r\n",
            "HTTP/1.1 400",
            "}",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Transfer-Encoding:\r\n chunked\r\n",
            "HTTP/1.1 400",
            "}",
        ),
        (
            "POST /mcp HTTP/1.1",
            "X: y\r\n\tTransfer-Encoding: chunked\r\n",
            "HTTP/1.1 400",
            "}",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Transfer-Encoding: \"chunked\"\r\n",
            "HTTP/1.1 400",
            "}",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Transfer-Encoding: chunked\0\r\n",
            "HTTP/1.1 400",
            "}",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Transfer-Encoding: chunked;q=1\r\n",
            "HTTP/1.1 400",
            "}",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Content-Length: 0x2\r\n",
            "HTTP/1.1 400",
            "}",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Content-Length: +2\r\n",
            "HTTP/1.1 400",
            "}",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Content-Length: 99999999999999999999\r\n",
            "HTTP/1.1 400",
            "}",
        ),
        (
            "POST /mcp HTTP/1.1",
            "Content_Length: 2\r\n",
            "HTTP/1.1 200",
            "/mcp ",
        ),
        ("POST /mcp HTTP/1.1", "X: a\x08b\r\n", "HTTP/1.1 400", "}"),
        ("POST /mcp HTTP/1.1", "X: a\rb\r\n", "HTTP/1.1 400", "}"),
        ("POST /mcp HTTP/1.1", "X: a\tb\r\n", "HTTP/1.1 200", "/mcp "),
    ] {
        let body = if rest.contains("Content-Length: 2\r\n") {
            "hi"
        } else {
            ""
        };
        let request = format!("{first}\r\nHost: x\r\n{rest}\r\n{body}");
        let answer = said(address, &request).await;
        assert!(answer.starts_with(begins), "{request:?}: {answer:?}");
        assert!(answer.ends_with(ends), "{request:?}: {answer:?}");
        assert_eq!(
            answer.matches("\r\n\r\n").count(),
            begins.matches("HTTP/").count(),
            "{answer:?}"
        );
    }
}

/// Client libraries do not send such a flood.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

#[tokio::test]
async fn streams_that_are_reset_at_once_end_their_connection() {
    let (address, _server) = serve();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    stream.write_all(&frame(4, 0, 0, &[])).await.unwrap();
    // `:method: GET`, `:scheme: http`, `:path: /`, `:authority: x` of the static table.
    let head = [0x82, 0x86, 0x84, 0x41, 1, b'x'];
    let flood = async {
        let mut number = 1;
        while number < 200_000 {
            let mut burst = Vec::new();
            for _ in 0..100 {
                burst.extend(frame(1, 5, number, &head));
                burst.extend(frame(3, 0, number, &8_u32.to_be_bytes()));
                number += 2;
            }
            if stream.write_all(&burst).await.is_err() {
                return true;
            }
        }
        false
    };
    let cut = timeout(SOON, flood).await.unwrap();
    assert!(cut, "100,000 streams were opened and reset");
    let other = said(address, "POST /mcp HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(other.starts_with("HTTP/1.1 200"), "{other}");
}

#[derive(Clone)]
struct SameText;

impl RequestService for SameText {
    async fn answer(&self, _: Request) -> Response {
        Response::new(Body::from("text"))
    }
}

#[tokio::test]
async fn the_answer_to_a_head_has_a_length_and_no_body() {
    let bound = BoundHttp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = bound.address();
    let _server = bound.serve(SameText, &limits());
    let socket = TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
    let _connection = tokio::spawn(connection);
    let request = http::Request::head("http://x/").body(()).unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    let answer = timeout(SOON, answer).await.unwrap().unwrap();
    assert_eq!(answer.headers()["content-length"], "4");
    assert!(answer.into_body().is_end_stream());

    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = b"HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let answer = all(&mut stream).await;
    assert!(answer.contains("content-length: 4\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}
