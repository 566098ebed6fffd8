use serde_json::{Value, json};
use shoal_testkit::cluster::{Cluster, Tools};

use super::collector::{Collector, Span, drawn};
use super::{SERVER, traced};
use crate::client::{Client, within};
use crate::start;

fn trace(number: u8) -> [u8; 16] {
    [number; 16]
}

fn traceparent(number: u8) -> String {
    format!(
        "00-{}-00f067aa0ba902b7-01",
        format!("{number:02x}").repeat(16)
    )
}

async fn server_span(collector: &Collector, number: u8) -> Span {
    let is_server =
        |span: &&Span| span.span.kind == SERVER && span.attribute("shoal.role") == "edge";
    let spans = collector
        .wait_for(&trace(number), |spans| {
            spans.iter().any(|span| is_server(&span))
        })
        .await;
    spans.iter().find(is_server).unwrap().clone()
}

fn assert_attributes(span: &Span, expected: &[(&str, &str)]) {
    for (key, value) in expected {
        assert_eq!(
            span.attribute(key),
            *value,
            "{key} of {}",
            drawn(std::slice::from_ref(span))
        );
    }
}

async fn asked(client: &Client, number: u8, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ "traceparent": traceparent(number) });
    let message = json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params });
    let answer = client.post(&message).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

#[tokio::test]
async fn the_server_span_says_what_was_asked_and_how_it_ended() {
    let collector = Collector::start().await;
    let cluster = start(traced(&collector).tools(Tools::Demo)).await;
    let client = Client::open(cluster.url()).await;

    asked(
        &client,
        1,
        "prompts/get",
        json!({ "name": "greet", "arguments": { "name": "Ada" } }),
    )
    .await;
    let span = server_span(&collector, 1).await;
    assert_eq!(span.name(), "prompts/get greet");
    assert_attributes(
        &span,
        &[
            ("mcp.method.name", "prompts/get"),
            ("gen_ai.prompt.name", "greet"),
            ("jsonrpc.request.id", "q"),
            ("gen_ai.operation.name", ""),
            ("error.type", ""),
        ],
    );

    asked(
        &client,
        2,
        "resources/read",
        json!({ "uri": "demo://readme" }),
    )
    .await;
    let span = server_span(&collector, 2).await;
    assert_eq!(
        span.name(),
        "resources/read",
        "resources are too many for names"
    );
    assert_attributes(
        &span,
        &[("mcp.resource.uri", "demo://readme"), ("error.type", "")],
    );

    let answer = asked(
        &client,
        3,
        "resources/read",
        json!({ "uri": "demo://nothing" }),
    )
    .await;
    let code = answer["error"]["code"].to_string();
    let span = server_span(&collector, 3).await;
    assert_attributes(
        &span,
        &[("rpc.response.status_code", &code), ("error.type", &code)],
    );
    assert_eq!(span.span.status.as_ref().unwrap().code, 2, "ERROR");

    let failing = json!({ "name": "fail", "arguments": { "message": "no" } });
    let answer = asked(&client, 4, "tools/call", failing).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let span = server_span(&collector, 4).await;
    assert_attributes(
        &span,
        &[
            ("error.type", "tool_error"),
            ("gen_ai.tool.name", "fail"),
            ("gen_ai.operation.name", "execute_tool"),
            ("rpc.response.status_code", ""),
        ],
    );
    assert_eq!(span.span.status.as_ref().unwrap().code, 2, "ERROR");
}

#[tokio::test]
async fn the_context_of_http_is_linked_where_the_message_has_its_own() {
    let collector = Collector::start().await;
    let cluster = start(traced(&collector).tools(Tools::Demo)).await;
    modern_echo(&cluster, Some(&traceparent(5)), &traceparent(6)).await;
    let span = server_span(&collector, 5).await;
    assert_eq!(span.name(), "tools/call echo");
    assert_attributes(
        &span,
        &[
            ("mcp.protocol.version", "2026-07-28"),
            ("mcp.session.id", ""),
            ("jsonrpc.request.id", "1"),
        ],
    );
    let linked: Vec<_> = span
        .span
        .links
        .iter()
        .map(|link| link.trace_id.as_slice())
        .collect();
    assert_eq!(linked, [trace(6)]);

    // If `_meta` has no trace context, the HTTP header names the parent.
    modern_echo(&cluster, None, &traceparent(7)).await;
    let span = server_span(&collector, 7).await;
    assert_eq!(span.name(), "tools/call echo");
    assert_eq!(span.span.links.len(), 0);
}

async fn modern_echo(cluster: &Cluster, meta: Option<&str>, http: &str) {
    let mut message = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "echo",
            "arguments": { "text": "x" },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {}
            }
        }
    });
    if let Some(meta) = meta {
        message["params"]["_meta"]["traceparent"] = json!(meta);
    }
    let post = reqwest::Client::new().post(cluster.url()).json(&message);
    let post = post
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "echo")
        .header("traceparent", http);
    let answer = within(post.send()).await.unwrap();
    assert_eq!(answer.status(), 200);
}
