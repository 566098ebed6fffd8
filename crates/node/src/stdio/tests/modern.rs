use http::Method;
use serde_json::{Value, json};

use super::script::{Act, Client, End, answered, refused};

fn request(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn call(id: u64) -> Value {
    request(
        id,
        "tools/call",
        json!({ "name": "tö", "arguments": { "region": "eu" } }),
    )
}

#[tokio::test(start_paused = true)]
async fn the_body_is_mirrored_into_headers() {
    let mut client = Client::with([answered(1, json!({})), answered(2, json!({}))]);
    client.send(call(1)).await;
    client.next().await;
    client
        .send(request(2, "resources/read", json!({ "uri": "a://b" })))
        .await;
    client.next().await;
    let sent = client.sent(Method::POST);
    assert_eq!(sent[0]["mcp-protocol-version"], "2026-07-28");
    assert_eq!(sent[0]["mcp-method"], "tools/call");
    assert_eq!(sent[0]["mcp-name"], "=?base64?dMO2?=");
    assert_eq!(
        (&sent[1]["mcp-method"], &sent[1]["mcp-name"]),
        (
            &"resources/read".parse().unwrap(),
            &"a://b".parse().unwrap()
        )
    );
    assert!(
        sent.iter()
            .all(|headers| !headers.contains_key("mcp-session-id"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_response_becomes_an_error_and_nothing_else() {
    let foreign = json!({ "jsonrpc": "2.0", "id": "zzz", "result": {} });
    for body in [json!("<html>"), json!({ "a": 1 }), json!([]), foreign] {
        let mut client = Client::with([Act::Json(200, &[], body.clone())]);
        client.send(call(1)).await;
        let answer = client.next().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(1), &json!(50_002)),
            "{body}: {answer}"
        );
        assert!(client.hears_nothing().await, "{body}");
    }
    let frames = vec![
        "data: <html>",
        r#"data: {"jsonrpc":"2.0","id":1,"result":{}}"#,
    ];
    let mut client = Client::with([Act::Stream(frames, End::Clean)]);
    client.send(call(1)).await;
    assert_eq!(client.next().await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn mirrored_arguments_are_looked_up_when_the_server_misses_them() {
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" } } });
    let page = |tools: Value, next: Option<&str>| {
        let mut result = json!({ "tools": tools });
        if let Some(next) = next {
            result["nextCursor"] = json!(next);
        }
        let id = "shoal-stdio-tools";
        Act::Json(
            200,
            &[],
            json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        )
    };
    let mut client = Client::with([
        refused(400, -32020),
        page(json!([]), Some("2")),
        page(json!([{ "name": "tö", "inputSchema": schema }]), None),
        answered(1, json!({ "n": 1 })),
        answered(2, json!({ "n": 2 })),
    ]);
    for id in [1, 2] {
        client.send(call(id)).await;
        assert_eq!(client.next().await["result"]["n"], id);
    }
    let sent = client.sent(Method::POST);
    assert_eq!(sent.len(), 5);
    assert_eq!(
        (&sent[3]["mcp-param-region"], &sent[4]["mcp-param-region"]),
        (&"eu".parse().unwrap(), &"eu".parse().unwrap())
    );
    assert_eq!(client.posted()[2]["params"]["cursor"], "2");
}

#[tokio::test(start_paused = true)]
async fn a_mismatch_that_the_schemas_do_not_explain_is_passed_on() {
    let tools = json!({ "jsonrpc": "2.0", "id": "x", "result": { "tools": [] } });
    let mut client = Client::with([
        refused(400, -32020),
        Act::Json(200, &[], tools),
        refused(400, -32020),
    ]);
    client.send(call(1)).await;
    let answer = client.next().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(1), &json!(-32020))
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_early_is_told() {
    let progress = r#"data: {"jsonrpc":"2.0","method":"notifications/progress"}"#;
    let listen = |id| request(id, "subscriptions/listen", json!({ "notifications": {} }));
    for (request, code) in [(call(1), 50_002), (listen(1), 50_410)] {
        let mut client = Client::with([Act::Stream(vec![progress], End::Clean)]);
        client.send(request).await;
        assert_eq!(client.next().await["method"], "notifications/progress");
        let answer = client.next().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(1), &json!(code))
        );
        // Modern streams are not resumed.
        assert!(client.sent(Method::GET).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_drops_the_stream_in_silence() {
    let open = || Act::Stream(vec![": open"], End::Open);
    let mut client = Client::with([open(), open()]);
    client.send(call(1)).await;
    client.send(call(1)).await;
    let twice = client.next().await;
    assert!(
        twice["error"]["message"]
            .as_str()
            .unwrap()
            .contains("still in flight")
    );
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 1 } });
    client.send(cancel).await;
    assert!(client.hears_nothing().await);
    client.send(call(1)).await;
    assert_eq!(client.posted().len(), 2);
    client.finish().await;
}

#[tokio::test(start_paused = true)]
async fn pretty_printed_answers_become_lines() {
    let refusal = refused(404, -32601);
    let mut client = Client::with([refusal]);
    client.send(request(9, "no/such", json!({}))).await;
    let answer = client.next().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(9), &json!(-32601))
    );
}
