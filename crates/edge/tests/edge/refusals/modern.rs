use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use shoal_ports::CallEventKind;

use super::rows::Rows;
use super::{initialize, ping};
use crate::dispatcher::just_started;
use crate::gateway::LIVE;
use crate::server::{Server, modern_headers, rpc, with_meta};
use crate::tasks::declared;

fn bare(server: &Server, params: &Value) -> RequestBuilder {
    let headers = modern_headers("server/discover", &json!({}));
    server
        .post(rpc("server/discover", params).to_string())
        .headers(headers)
}

pub(super) async fn requests(rows: &mut Rows) {
    const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    let server = Server::with(|config| config.limits.resources_per_listener = 1).await;
    let with_version =
        |request: RequestBuilder, version: &str| request.header("mcp-protocol-version", version);
    for (what, method) in [
        ("modern GET", Method::GET),
        ("modern DELETE", Method::DELETE),
    ] {
        let request = server
            .request(method, "/mcp")
            .header("mcp-session-id", LIVE);
        rows.check(what, with_version(request, "2026-07-28")).await;
    }
    let batch = with_version(server.post(format!("[{}]", ping())), "2026-07-28");
    rows.check("modern batch", batch).await;
    let response = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
    rows.check(
        "posted response",
        with_version(server.post(response), "2026-07-28"),
    )
    .await;

    rows.check_id("no _meta", bare(&server, &json!({}))).await;
    let meta = json!({"_meta": {CAPABILITIES: {}}});
    rows.check_id("no protocolVersion in _meta", bare(&server, &meta))
        .await;
    let meta = json!({"_meta": {VERSION: "2026-07-28"}});
    rows.check_id("no clientCapabilities in _meta", bare(&server, &meta))
        .await;
    let opening = with_version(initialize(&server), "2026-07-28");
    rows.check_id("initialize with a modern version header", opening)
        .await;
    let meta = with_meta(
        json!({}),
        json!({"io.modelcontextprotocol/logLevel": "loud"}),
    );
    rows.check_id("unknown logLevel", bare(&server, &meta))
        .await;

    let versioned = |version: &str| {
        let meta = with_meta(json!({}), json!({VERSION: version}));
        with_version(
            server.post(rpc("server/discover", &meta).to_string()),
            version,
        )
    };
    let body = rows
        .check_id("unknown protocol version", versioned("v999.0.0"))
        .await;
    assert_eq!(body["error"]["data"]["requested"], "v999.0.0");
    assert_eq!(body["error"]["data"]["supported"][0], "2026-07-28");
    assert_eq!(
        body["error"]["data"]["supported"].as_array().unwrap().len(),
        5
    );
    rows.check_id("legacy protocol version in _meta", versioned("2025-06-18"))
        .await;
    let notification = server.post(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#);
    let notification = with_version(notification, "v999.0.0");
    rows.check("unknown protocol version of a notification", notification)
        .await;

    let earlier = server.modern("logging/setLevel", json!({}));
    rows.check_id("method of an earlier revision", earlier)
        .await;
    for method in [
        "initialize",
        "ping",
        "resources/subscribe",
        "resources/unsubscribe",
    ] {
        let answer = server.modern(method, json!({})).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{method}");
    }
    let unknown = server.modern("unknown/method", json!({}));
    rows.check_id("unknown method", unknown).await;
    let listen = |params| server.modern("subscriptions/listen", params);
    let no_filter = listen(json!({}));
    rows.check_id("subscriptions/listen without a filter", no_filter)
        .await;
    let many = listen(json!({"notifications": {"resourceSubscriptions": ["a:1", "a:2"]}}));
    rows.check_id("subscriptions/listen to too many resources or tasks", many)
        .await;
}

pub(super) async fn mirrored(rows: &mut Rows) {
    let server = Server::start().await;
    let send = |name: &str, without: &str, with: &[(&'static str, &str)]| {
        let params = with_meta(json!({"name": name}), json!({}));
        let mut headers = modern_headers("tools/call", &params);
        headers.remove(without);
        for (name, value) in with {
            headers.append(*name, value.parse().unwrap());
        }
        server
            .post(rpc("tools/call", &params).to_string())
            .headers(headers)
    };
    let (version, method, name) = ("mcp-protocol-version", "mcp-method", "mcp-name");
    for (what, without, with) in [
        ("no MCP-Protocol-Version", version, &[][..]),
        (
            "MCP-Protocol-Version unlike _meta",
            version,
            &[(version, "2025-11-25")],
        ),
        (
            "MCP-Protocol-Version in Base64",
            version,
            &[(version, "=?base64?MjAyNi0wNy0yOA==?=")],
        ),
        ("no Mcp-Method", method, &[]),
        (
            "Mcp-Method unlike the method",
            method,
            &[(method, "TOOLS/CALL")],
        ),
        (
            "Mcp-Method in Base64",
            method,
            &[(method, "=?base64?dG9vbHMvY2FsbA==?=")],
        ),
        ("no Mcp-Name", name, &[]),
        ("Mcp-Name unlike the name", name, &[(name, "other")]),
        (
            "Mcp-Name that does not decode",
            name,
            &[(name, "=?base64?%?=")],
        ),
    ] {
        rows.check_id(what, send("echo", without, with)).await;
    }
    let encoded = send("echo", name, &[(name, "=?base64?ZWNobw==?=")]);
    assert_eq!(
        encoded.send().await.unwrap().status(),
        200,
        "Mcp-Name may be"
    );
    let regional = send("regional", "", &[]);
    rows.check_id("Mcp-Param header unlike the argument", regional)
        .await;
    let fits = send("regional", "", &[("mcp-param-region", "eu")]);
    assert_eq!(fits.send().await.unwrap().status(), 200);
}

pub(super) async fn unsettled(rows: &mut Rows) {
    let server = Server::start().await;
    *server.dispatcher.lacks.lock() = Some(just_started());
    let listen = |filter| server.modern("subscriptions/listen", json!({"notifications": filter}));
    let unknown = listen(json!({"resourceSubscriptions": ["file:///a", "unknown:b"]}));
    rows.check_id(
        "subscriptions/listen to a resource that may come yet",
        unknown,
    )
    .await;
    server.dispatcher.subscribed_to(&[]).await;
    *server.dispatcher.not_ready.lock() = Some(just_started());
    let any = listen(json!({"toolsListChanged": true}));
    rows.check_id("subscriptions/listen at a node that knows no pool yet", any)
        .await;
    let discover = server.modern("server/discover", json!({}));
    rows.check_id("server/discover at a node that knows no pool yet", discover)
        .await;
}

pub(super) async fn outcomes(rows: &mut Rows) {
    let server = Server::with(|config| config.streams.grace = Duration::from_secs(60).into()).await;
    for (what, tool) in [
        ("unknown tool", "unknown"),
        ("method that no backend offers", "no-method"),
        ("client capability that was not declared", "no-capability"),
        ("limit reached", "overloaded"),
        ("backend that answers with -32601", "backend-no-method"),
        ("backend that answers with 50300", "backend-overloaded"),
        ("backend that answers with 50301", "backend-not-executed"),
        ("nothing executed", "not-executed"),
        ("nothing executed yet", "not-ready"),
        ("deadline passed", "deadline"),
    ] {
        rows.check_id(what, server.tool(tool)).await;
    }
    rows.check_id(
        "tasks extension that was not declared",
        server.tool("only-task"),
    )
    .await;
    let unknown = declared(&server, "tasks/get", json!({"taskId": "unknown-task"}));
    rows.check_id("unknown task", unknown).await;
    let lost = rows.check_id("outcome unknown", server.tool("played"));
    let (_, ()) = tokio::join!(lost, async { drop(server.dispatcher.call().await) });
    let asked = rows.check_id("question that was left to the edge", server.tool("played"));
    let (_, _call) = tokio::join!(asked, async {
        let mut call = server.dispatcher.call().await;
        let (ask, method) = (shoal_ports::AskId(1), shoal_protocol::Method::Elicit);
        call.send(CallEventKind::Ask {
            ask,
            method,
            params: None,
        })
        .await;
        call
    });
    server.dispatcher.was_cancelled().await;
}
