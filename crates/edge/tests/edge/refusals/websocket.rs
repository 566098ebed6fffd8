use reqwest::{Method, RequestBuilder};

use super::rows::Rows;
use crate::gateway::LIVE;
use crate::server::Server;

pub(super) async fn handshakes(rows: &mut Rows) {
    let off = Server::start().await;
    rows.check("WebSocket where it is off", handshake(&off, "mcp"))
        .await;
    let server = Server::with(|config| config.endpoint.websocket = true).await;
    let offer = |protocols: &str| handshake(&server, protocols);
    let version = asking(&server, "mcp").header("sec-websocket-version", "8");
    rows.check("WebSocket of another version", version).await;
    rows.check("malformed handshake", keyless(&server, "mcp"))
        .await;
    let key = "sec-websocket-key";
    for (what, request) in [
        (
            "key twice",
            offer("mcp").header(key, "dGhlIHNhbXBsZSBub25jZQ=="),
        ),
        (
            "version twice",
            offer("mcp").header("sec-websocket-version", "13"),
        ),
        (
            "no key of 16 bytes",
            keyless(&server, "mcp").header(key, "x"),
        ),
        ("handshake with a body", offer("mcp").body("x")),
        ("token twice", offer("mcp, mcp.auth.one, mcp.auth.other")),
        ("no subprotocol of MCP", offer("graphql")),
        ("session without mcp.resume", offer("mcp, mcp.session.live")),
        (
            "event without a session",
            offer("mcp.resume, mcp.after.1-2-3"),
        ),
        (
            "session named twice",
            offer("mcp.resume, mcp.session.live").header("mcp-session-id", LIVE),
        ),
        (
            "event named twice",
            offer("mcp.resume, mcp.session.live, mcp.after.1-2-3").header("last-event-id", "1-2-3"),
        ),
        (
            "malformed event on a WebSocket",
            offer("mcp.resume, mcp.session.live, mcp.after.x"),
        ),
        (
            "unknown session on a WebSocket",
            offer("mcp.resume, mcp.session.unknown"),
        ),
    ] {
        rows.check(what, request).await;
    }
}

fn handshake(server: &Server, protocols: &str) -> RequestBuilder {
    keyless(server, protocols).header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
}

fn keyless(server: &Server, protocols: &str) -> RequestBuilder {
    asking(server, protocols).header("sec-websocket-version", "13")
}

fn asking(server: &Server, protocols: &str) -> RequestBuilder {
    server
        .request(Method::GET, "/mcp")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-protocol", protocols)
}
