//! Refusals of sessions and their transports.

use std::time::Duration;

use reqwest::Method;
use shoal_ports::GatewayError;
use shoal_protocol::RpcError;

use super::rows::Rows;
use super::{initialize, ping};
use crate::gateway::LIVE;
use crate::server::Server;

pub(super) async fn requests(rows: &mut Rows) {
    let server = Server::start().await;
    let version = server.post(ping()).header("mcp-session-id", LIVE);
    let version = version.header("mcp-protocol-version", "1999-01-01");
    rows.check_id("unknown protocol version header", version)
        .await;
    rows.check_id("no session id", server.post(ping())).await;
    let unreadable = server.post(ping()).header("mcp-session-id", "a b");
    rows.check("unreadable session id", unreadable).await;
    let not_acceptable = server
        .request(Method::GET, "/mcp")
        .header("accept", "application/json");
    let not_acceptable = not_acceptable.header("mcp-session-id", LIVE);
    rows.check("GET without text/event-stream", not_acceptable)
        .await;
    let message = |path: &str| {
        let post = server.request(Method::POST, path);
        post.header("content-type", "application/json").body(ping())
    };
    rows.check("HTTP+SSE message without a session", message("/messages"))
        .await;
    let unknown = message("/messages?sessionId=unknown");
    rows.check_id("HTTP+SSE message to an unknown session", unknown)
        .await;
}

pub(super) async fn sessions(rows: &mut Rows) {
    let server = Server::start().await;
    let post = |session: &str| server.post(ping()).header("mcp-session-id", session);
    let unknown = "unknown session, or somebody else's";
    rows.check_id(unknown, post("unknown")).await;
    let listen = |session: &str| {
        let get = server
            .request(Method::GET, "/mcp")
            .header("accept", "text/event-stream");
        get.header("mcp-session-id", session)
    };
    rows.check("unknown session on GET", listen("unknown"))
        .await;
    let delete = server
        .request(Method::DELETE, "/mcp")
        .header("mcp-session-id", "unknown");
    rows.check("unknown session on DELETE", delete).await;
    let gone = listen("history-gone").header("last-event-id", "1-2-3");
    rows.check("Last-Event-ID whose history is gone", gone)
        .await;
    for (what, session) in [
        ("session that begins with another request", "rejecting"),
        ("overloaded session", "overloaded"),
        ("unreachable session", "unavailable"),
        (
            "session whose node was lost with the request",
            "unreachable",
        ),
        ("fault of the server", "broken"),
    ] {
        rows.check_id(what, post(session)).await;
    }
    let retry_after = Duration::from_secs(3);
    let limit = 5;
    for (what, error) in [
        (
            "malformed initialize",
            GatewayError::Rejected(RpcError::invalid_params("initialize: no protocolVersion")),
        ),
        (
            "too many sessions of a principal",
            GatewayError::TooManySessionsOfPrincipal { limit, retry_after },
        ),
        (
            "too much stored by a principal",
            GatewayError::TooManyBytesOfPrincipal { limit, retry_after },
        ),
        (
            "too many sessions on the node",
            GatewayError::TooManySessions { limit, retry_after },
        ),
    ] {
        *server.gateway.opening.lock() = Some(error);
        rows.check_id(what, initialize(&server)).await;
    }
}
