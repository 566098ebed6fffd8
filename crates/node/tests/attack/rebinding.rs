//! Web pages that make a browser call a local server.

use crate::harness::{Family, Request, serve};
use crate::process::Server;

const NOT_SERVED: &str = "403 is not served here";
const MAY_NOT: &str = "403 may not call";

pub(crate) async fn family() -> Family {
    let mut family = Family::new("DNS rebinding");
    let server = Server::of(serve(&[("SHOAL_SERVER__WEBSOCKET", "true")])).await;
    for (host, expected) in [
        ("evil.example.com", NOT_SERVED),
        ("localhost.evil.example.com", NOT_SERVED),
        ("127.0.0.1.nip.io", NOT_SERVED),
        ("evil.example.com:80", NOT_SERVED),
        ("127.0.0.1@evil.example.com", NOT_SERVED),
        ("127.0.0.1, evil.example.com", NOT_SERVED),
        ("", NOT_SERVED),
    ] {
        let got = Request::echo().header("Host", host).send(&server.mcp).await;
        family.row(format!("Host {host:?}"), expected, got);
    }
    for (origin, expected) in [
        ("http://evil.example.com", MAY_NOT),
        ("http://127.0.0.1.evil.example.com", MAY_NOT),
        ("null", MAY_NOT),
        ("file://", MAY_NOT),
        ("http://localhost@evil.example.com", MAY_NOT),
        // An empty `Origin` counts as absent, as in common servers. Browsers do not send it.
        ("", "200 hello"),
    ] {
        let got = Request::echo()
            .header("Origin", origin)
            .send(&server.mcp)
            .await;
        family.row(format!("Origin {origin:?}"), expected, got);
    }
    let stream = Request::of("GET /sse", "").header("Origin", "http://evil.example.com");
    family.row(
        "Origin, at HTTP+SSE",
        MAY_NOT,
        stream.send(&server.mcp).await,
    );
    let socket = Request::of("GET /mcp", "")
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("Sec-WebSocket-Protocol", "mcp")
        .without("Content-Length")
        .header("Origin", "http://evil.example.com");
    family.row(
        "Origin, at a WebSocket",
        MAY_NOT,
        socket.send(&server.mcp).await,
    );
    for path in ["/console/", "/status", "/metrics"] {
        let request = Request::of(&format!("GET {path}"), "").header("Host", "evil.example.com");
        let got = request.send(&server.admin).await;
        family.row(format!("Host, at {path} of the admin port"), "403", got);
    }
    family
}
