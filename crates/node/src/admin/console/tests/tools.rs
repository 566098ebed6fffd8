use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::TOKEN;
use super::setting::{HOSTILE, Port, here, text};

const ACTION: (&str, &str) = ("x-shoal-console", "1");
const CALL: &str = "/console/api/tools/regional%2F%C3%A4/call";

#[tokio::test]
async fn tools_are_listed_and_told_of_as_data() {
    let port = here();
    let (status, body) = port.get("/console/api/tools?filter=x&limit=3", &[]).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let listed: Value = serde_json::from_str(&body).unwrap();
    let tool = &listed["items"][0];
    assert_eq!(
        (&tool["name"], &tool["title"]),
        (&json!(HOSTILE), &json!(HOSTILE))
    );
    assert_eq!(
        (&tool["rate"], &tool["p95_ms"]),
        (&json!(0.0), &Value::Null)
    );
    assert_eq!(listed["calls_off"], Value::Null);
    assert_eq!(*port.node.deeds.lock(), ["tools x 1000"]);
    let long = "x".repeat(129);
    let (status, _) = port
        .get(&format!("/console/api/tools?filter={long}"), &[])
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);

    let answer = port
        .send(Method::GET, CALL.trim_end_matches("/call"), &[])
        .await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    let tool: Value = serde_json::from_str(&text(answer).await).unwrap();
    assert_eq!(tool["definition"]["description"], "<script>");
    let (status, _) = port.get("/console/api/tools/none", &[]).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_call_goes_to_the_edge_as_any_client_s() {
    let port = here();
    let body = json!({
        "arguments": { "region": "eu", "exact": 1.0 },
        "inputResponses": { "q": { "action": "decline" } },
        "requestState": "sealed",
    });
    let own = [
        ACTION,
        ("authorization", "Bearer x"),
        ("origin", "http://127.0.0.1:8081"),
    ];
    let answer = port
        .send_body(Method::POST, CALL, &own, &body.to_string())
        .await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    assert_eq!(text(answer).await, "data: {}\n\ndata: <script>\n\n");
    let (whose, headers, sent) = port.edge.lock().pop().unwrap();
    assert_eq!(whose.unwrap().as_str(), "shoal-console");
    for (name, value) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "=?base64?cmVnaW9uYWwvw6Q=?="),
        ("mcp-param-region", "eu"),
        ("host", "localhost"),
    ] {
        assert_eq!(headers[name], value);
    }
    for kept in ["authorization", "origin", "x-shoal-console"] {
        assert!(!headers.contains_key(kept), "{kept} is the console's own");
    }
    assert!(sent.contains(r#""exact":1.0"#), "{sent}");
    let sent: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(sent["params"]["name"], "regional/ä");
    assert_eq!(sent["params"]["inputResponses"]["q"]["action"], "decline");
    assert_eq!(sent["params"]["requestState"], "sealed");
}

#[tokio::test]
async fn who_may_not_act_calls_nothing() {
    let guarded = Port::listening("0.0.0.0:8081", &[], Some(TOKEN));
    let right = format!("Bearer {TOKEN}");
    let body = r#"{"arguments":{}}"#;
    for (headers, status) in [
        (&[ACTION][..], 401),
        (&[ACTION, ("authorization", "Bearer wrong")], 401),
        (&[("authorization", &right)], 403),
        (&[("authorization", &right), ACTION], 200),
    ] {
        let answer = guarded.send_body(Method::POST, CALL, headers, body).await;
        assert_eq!(answer.status(), status, "{headers:?}");
    }
    assert_eq!(guarded.edge.lock().len(), 1);

    let closed = Port::listening("0.0.0.0:8081", &[], None);
    let answer = closed.send_body(Method::POST, CALL, &[ACTION], body).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);

    let off = Port::without_calls("it is off");
    let answer = off.send_body(Method::POST, CALL, &[ACTION], body).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(text(answer).await.contains("it is off"));
    let (_, listed) = off.get("/console/api/tools", &[]).await;
    assert!(listed.contains(r#""calls_off":"it is off""#), "{listed}");
}

#[tokio::test]
async fn a_call_s_body_is_bounded_and_read_strictly() {
    let port = here();
    let post = async |path: &str, body: String| {
        let answer = port.send_body(Method::POST, path, &[ACTION], &body).await;
        answer.status().as_u16()
    };
    let with = |text: usize| json!({ "arguments": { "t": "x".repeat(text) } }).to_string();
    assert_eq!(
        post(CALL, with(100_000)).await,
        200,
        "more than other bodies"
    );
    assert_eq!(post(CALL, with(2 << 20)).await, 413);
    for wrong in [
        "",
        "{}",
        "[]",
        r#"{"arguments":{},"method":"x"}"#,
        r#"{"arguments":"#,
    ] {
        assert_eq!(post(CALL, wrong.to_owned()).await, 400, "{wrong}");
    }
    let long = format!("/console/api/tools/{}/call", "x".repeat(600));
    assert_eq!(post(&long, with(1)).await, 400);
    let (status, _) = port.get(CALL, &[ACTION]).await;
    assert_eq!(
        status,
        StatusCode::METHOD_NOT_ALLOWED,
        "nothing happens by GET"
    );
    assert_eq!(port.edge.lock().len(), 1);
}
