use serde_json::json;

use crate::harness::{Family, Request, raw, serve};
use crate::http2;
use crate::process::Server;

/// The server must not answer this request.
const SECOND: &str = "GET /smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

pub(crate) async fn family() -> Family {
    let mut family = Family::new("smuggling");
    let server = Server::of(serve(&[("SHOAL_SERVER__BODY_TIMEOUT", "1s")])).await;
    let echo = Request::echo();
    let length = echo.body.len().to_string();
    let chunked = |size: String, body: &str| {
        let mut request = echo
            .clone()
            .without("Content-Length")
            .header("Transfer-Encoding", "chunked");
        request.body = format!("{size}\r\n{body}\r\n0\r\n\r\n");
        request
    };
    let whole = format!("{:x}", echo.body.len());
    family.row(
        "none, as a control",
        "200 hello",
        echo.send(&server.mcp).await,
    );
    family.row(
        "none, in chunks",
        "200 hello",
        chunked(whole.clone(), &echo.body).send(&server.mcp).await,
    );

    let mut both = chunked(whole.clone(), &echo.body).and("Content-Length", "4");
    both.body.push_str(SECOND);
    let mut other_way = echo.clone().header("Transfer-Encoding", "chunked");
    other_way.body = format!("0\r\n\r\n{SECOND}");
    let mut rest = echo.clone();
    rest.body.push_str(SECOND);
    for (attack, expected, request) in [
        ("Content-Length and chunks", "400", both),
        ("chunks that end before Content-Length", "400", other_way),
        (
            "two lengths",
            "400",
            echo.clone().and("Content-Length", "4"),
        ),
        (
            "the same length twice",
            "400",
            echo.clone().and("Content-Length", &length),
        ),
        (
            "a list of lengths",
            "400",
            echo.clone()
                .header("Content-Length", &format!("{length}, {length}")),
        ),
        (
            "a length with a sign",
            "400",
            echo.clone().header("Content-Length", &format!("+{length}")),
        ),
        (
            "a negative length",
            "400",
            echo.clone().header("Content-Length", "-1"),
        ),
        (
            "a length in hexadecimal",
            "400",
            echo.clone().header("Content-Length", &format!("0x{whole}")),
        ),
        (
            "a length beyond 64 bits",
            "400",
            echo.clone()
                .header("Content-Length", "18446744073709551617"),
        ),
        (
            "a coding that nobody knows",
            "400",
            chunked(whole.clone(), &echo.body).header("Transfer-Encoding", "xchunked"),
        ),
        (
            "chunked before identity",
            "400",
            chunked(whole.clone(), &echo.body).header("Transfer-Encoding", "chunked, identity"),
        ),
        (
            "a space before the colon",
            "400",
            chunked(whole.clone(), &echo.body)
                .without("Transfer-Encoding")
                .and("Transfer-Encoding ", "chunked"),
        ),
        (
            "a folded header",
            "400",
            echo.clone().and("X-Fold", "a\r\n b"),
        ),
        ("NUL in a header", "400", echo.clone().and("X-Nul", "a\0b")),
        (
            "CR in a header",
            "400",
            echo.clone().and("X-Return", "a\rb"),
        ),
        (
            "a space in a header's name",
            "400",
            echo.clone().and("X Name", "a"),
        ),
        ("a header without a name", "400", echo.clone().and("", "a")),
        (
            "two hosts",
            "400 is there twice",
            echo.clone().and("Host", "127.0.0.1"),
        ),
        (
            "no host",
            "400 the header host is missing",
            echo.clone().without("Host"),
        ),
        (
            "two types",
            "400 is there twice",
            echo.clone().and("Content-Type", "text/plain"),
        ),
        (
            "an encoded body",
            "415",
            echo.clone().header("Content-Encoding", "gzip"),
        ),
        (
            "a chunk with a sign",
            "400",
            chunked(format!("+{whole}"), &echo.body),
        ),
        (
            "a chunk in the notation 0x",
            "400",
            chunked(format!("0x{whole}"), &echo.body),
        ),
        (
            "a chunk beyond 64 bits",
            "400",
            chunked("f".repeat(17), &echo.body),
        ),
        (
            "a chunk that is longer than it says",
            "400",
            chunked("4".to_owned(), &echo.body),
        ),
        (
            "more than the length, on a connection that closes",
            "200 hello",
            rest,
        ),
    ] {
        let got = request.send(&server.mcp).await;
        family.row(attack, expected, got);
    }
    for (attack, expected, line) in [
        (
            "another host in the target",
            "400 the same host",
            "POST http://evil.example.com/mcp HTTP/1.1",
        ),
        ("a tab in the request line", "400", "POST\t/mcp HTTP/1.1"),
        ("a version that is not", "400", "POST /mcp HTTP/1.2"),
        ("HTTP/0.9", "400", "POST /mcp"),
        ("a path that is encoded", "404", "POST /%6dcp HTTP/1.1"),
        ("a path with dots", "404", "POST /x/../mcp HTTP/1.1"),
        ("a path with two slashes", "404", "POST //mcp HTTP/1.1"),
        ("CONNECT", "404", "CONNECT evil.example.com:443 HTTP/1.1"),
        ("TRACE", "405", "TRACE /mcp HTTP/1.1"),
    ] {
        let mut request = echo.clone();
        line.clone_into(&mut request.line);
        family.row(attack, expected, request.send(&server.mcp).await);
    }
    let mut bytes = echo.clone().without("Connection").bytes();
    bytes.extend(Request::call("add", json!({ "a": 1, "b": 2 })).bytes());
    family.row(
        "two requests at once",
        "200,200 hello",
        raw(&server.mcp, &bytes).await,
    );

    let body = echo.body.as_bytes();
    let head = http2::head("127.0.0.1", "echo");
    let with = |name: &'static str, value: &str| {
        let mut head = head.clone();
        head.push((name, value.to_owned()));
        head
    };
    family.row(
        "none, over HTTP/2",
        "answer hello",
        http2::ask(&server.mcp, &head, body).await,
    );
    let changed = |name: &str, value: &str| {
        let mut head = head.clone();
        for (known, old) in &mut head {
            if *known == name {
                value.clone_into(old);
            }
        }
        head
    };
    for (attack, expected, head) in [
        (
            "HTTP/2: Transfer-Encoding",
            "reset",
            with("transfer-encoding", "chunked"),
        ),
        ("HTTP/2: Connection", "reset", with("connection", "close")),
        ("HTTP/2: a name in capitals", "goaway", with("X-Name", "a")),
        (
            "HTTP/2: a pseudo-header after the others",
            "reset",
            with(":authority", "127.0.0.1"),
        ),
        (
            "HTTP/2: an unknown pseudo-header",
            "goaway",
            with(":user", "root"),
        ),
        (
            "HTTP/2: CR LF in a value",
            "goaway",
            with("x-split", "a\r\nb: c"),
        ),
        (
            "HTTP/2: more length than data",
            "reset",
            with("content-length", "100000"),
        ),
        (
            "HTTP/2: less length than data",
            "reset",
            with("content-length", "4"),
        ),
        (
            "HTTP/2: another Host",
            "answer the same host",
            with("host", "evil.example.com"),
        ),
        (
            "HTTP/2: another authority",
            "answer not served here",
            changed(":authority", "evil.example.com"),
        ),
        ("HTTP/2: a path that is none", "reset", changed(":path", "")),
        (
            "HTTP/2: a name that is there twice",
            "answer is there twice",
            with("mcp-name", "echo"),
        ),
    ] {
        family.row(attack, expected, http2::ask(&server.mcp, &head, body).await);
    }
    family
}
