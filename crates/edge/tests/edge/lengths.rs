use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::server::{Server, modern_headers, rpc, with_meta};

const LONG: usize = 1 << 20;

fn long() -> String {
    "x".repeat(LONG)
}

fn modern(server: &Server, method: &str, params: Value, more: Value) -> RequestBuilder {
    let params = with_meta(params, more);
    let mut headers = modern_headers(method, &with_meta(json!({}), json!({})));
    headers.insert("mcp-name", "x".parse().unwrap());
    server
        .post(rpc(method, &params).to_string())
        .headers(headers)
}

async fn refused(what: &str, code: i64, request: RequestBuilder) -> Value {
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    let shown: String = text.chars().take(300).collect();
    assert_eq!(status, 400, "{what}: {shown}");
    assert!(
        text.len() < 4096,
        "{what} is repeated: {} bytes",
        text.len()
    );
    let body: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(body["error"]["code"], code, "{what}: {shown}");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains("longer than"), "{what}: {message}");
    body
}

#[tokio::test]
async fn what_is_kept_or_repeated_is_not_long() {
    let server = Server::start().await;
    let id = json!({"jsonrpc": "2.0", "id": long(), "method": "ping"});
    let body = refused("id", -32600, server.legacy(&id)).await;
    assert!(body.get("id").is_none());
    let method = json!({"jsonrpc": "2.0", "id": 7, "method": long()});
    let body = refused("method", -32600, server.legacy(&method)).await;
    assert_eq!(body["id"], 7);

    let info = json!({"name": long(), "version": "1"});
    let initialize = |params: Value| server.post(rpc("initialize", &params).to_string());
    for (what, request) in [
        (
            "clientInfo",
            initialize(
                json!({"protocolVersion": "2025-11-25", "clientInfo": info, "capabilities": {}}),
            ),
        ),
        (
            "capabilities",
            initialize(
                json!({"protocolVersion": "2025-11-25", "clientInfo": {}, "capabilities": {"experimental": {"x": long()}}}),
            ),
        ),
        (
            "protocolVersion",
            initialize(json!({"protocolVersion": long()})),
        ),
    ] {
        refused(what, -32602, request).await;
    }
    for (method, params) in [
        ("tools/call", json!({"name": long(), "arguments": {}})),
        ("prompts/get", json!({"name": long()})),
        ("resources/read", json!({"uri": long()})),
        ("resources/subscribe", json!({"uri": long()})),
        ("resources/unsubscribe", json!({"uri": long()})),
        ("tools/list", json!({"cursor": long()})),
        ("logging/setLevel", json!({"level": long()})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": long()}, "argument": {}}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": long()}, "argument": {}}),
        ),
        (
            "tools/call",
            json!({"name": "echo", "arguments": {}, "_meta": {"progressToken": long()}}),
        ),
        ("notifications/cancelled", json!({"requestId": long()})),
    ] {
        refused(method, -32602, server.legacy(&rpc(method, &params))).await;
    }
    let echo = json!({"name": "x", "arguments": {}});
    for (key, value) in [
        ("progressToken", json!(long())),
        ("io.modelcontextprotocol/clientInfo", info.clone()),
        (
            "io.modelcontextprotocol/clientCapabilities",
            json!({"experimental": {"x": long()}}),
        ),
        ("io.modelcontextprotocol/logLevel", json!(long())),
        ("traceparent", json!(long())),
        ("tracestate", json!(long())),
    ] {
        let request = modern(&server, "tools/call", echo.clone(), json!({key: value}));
        refused(key, -32602, request).await;
    }
    let listen = |uris: Vec<String>| {
        let params = json!({"notifications": {"resourceSubscriptions": uris}});
        modern(&server, "subscriptions/listen", params, json!({}))
    };
    refused("one URI", -32602, listen(vec!["x".repeat(9 << 10)])).await;
    let many = (0..255).map(|at| format!("{at}{}", "x".repeat(8000)));
    refused("a filter", -32602, listen(many.collect())).await;
    assert!(server.dispatcher.calls.lock().is_empty());
}

#[tokio::test]
async fn long_arguments_are_nobodys_business() {
    let server = Server::start().await;
    let arguments = json!({"name": long(), "uri": long(), "_meta": {"progressToken": long()}});
    let params = json!({"name": "echo", "arguments": arguments});
    let answer = server.modern("tools/call", params).send().await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn refusals_do_not_repeat_what_they_refuse() {
    let server = Server::start().await;
    for body in [
        json!(long()),
        json!({"jsonrpc": long(), "id": 7, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 7, "method": [long()]}),
    ] {
        let answer = server.post(body.to_string()).send().await.unwrap();
        assert_eq!(answer.status(), 400);
        let text = answer.text().await.unwrap();
        assert!(text.len() < 2048, "{} bytes", text.len());
    }
    let header = "x".repeat(20 << 10);
    for name in ["host", "origin", "content-type"] {
        let mut request = server.post("{}").build().unwrap();
        request.headers_mut().remove(name);
        request.headers_mut().insert(name, header.parse().unwrap());
        let answer = reqwest::Client::new().execute(request).await.unwrap();
        assert!(answer.status().is_client_error(), "{name}");
        let text = answer.text().await.unwrap();
        assert!(text.len() < 2048, "{name}: {} bytes", text.len());
    }
}
