use std::time::Duration;

use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{Session, call, response, text};
use crate::process::{SOON, Server};

async fn get(server: &Server, path: &str) -> Value {
    let url = format!("{}/console/api/{path}", server.admin);
    let answer = reqwest::get(url).await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.json().await.unwrap()
}

async fn until(server: &Server, tool: &str, right: impl Fn(&Value) -> bool) -> Value {
    let shown = async {
        loop {
            let listed = get(server, &format!("tools?filter={tool}")).await;
            let items = listed["items"].as_array().unwrap();
            if let Some(found) = items.iter().find(|it| it["name"] == tool && right(it)) {
                return found.clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, shown).await.unwrap()
}

fn operator_call(server: &Server, tool: &str, body: &Value) -> RequestBuilder {
    let url = format!("{}/console/api/tools/{tool}/call", server.admin);
    Client::new()
        .post(url)
        .header("x-shoal-console", "1")
        .body(body.to_string())
}

async fn answered(call: RequestBuilder) -> Value {
    response(call.send().await.unwrap()).await
}

#[tokio::test]
async fn tools_are_listed_with_their_calls_and_failures() {
    let server = Server::start(&["--demo"]).await;
    let listed = get(&server, "tools").await;
    let items = listed["items"].as_array().unwrap();
    assert_eq!(items.len(), listed["total"], "{listed}");
    let echo = items.iter().find(|tool| tool["name"] == "echo").unwrap();
    assert_eq!(echo["pool"], "demo");
    assert_eq!(echo["annotations"]["read_only"], true, "{echo}");
    assert_eq!(
        (&echo["rate"], &echo["p95_ms"]),
        (&json!(0.0), &Value::Null)
    );
    let detail = get(&server, "tools/echo").await;
    let schema = &detail["definition"]["inputSchema"];
    assert_eq!(schema["properties"]["text"]["type"], "string", "{detail}");

    let session = Session::open(&server.mcp).await;
    let hello = session
        .ask(&call(1, "echo", json!({ "text": "hello" })))
        .await;
    assert_eq!(text(&hello), "hello");
    let wrong = session.ask(&call(2, "echo", json!({ "text": 5 }))).await;
    assert_eq!(wrong["result"]["isError"], true, "{wrong}");
    session.ask(&call(3, "no_such_tool", json!({}))).await;
    let echo = until(&server, "echo", |tool| tool["outcomes"]["rejected"] == 1).await;
    assert_eq!(echo["outcomes"]["ok"], 1, "{echo}");
    assert!(echo["rate"].as_f64().unwrap() > 0.0, "{echo}");
    assert!(echo["p95_ms"].as_f64().unwrap() > 0.0, "{echo}");

    let errors = get(&server, "errors").await;
    let errors = errors["items"].as_array().unwrap();
    let failure = errors.iter().find(|it| it["tool_failed"] == true).unwrap();
    assert_eq!(
        (&failure["target"], &failure["code"]),
        (&json!("echo"), &json!(0))
    );
    let said = text(&wrong);
    let shown = failure["message"].as_str().unwrap();
    assert!(shown.starts_with(&said[..20]), "{failure}: {said}");
    let unknown = errors
        .iter()
        .find(|it| it["target"] == "no_such_tool")
        .unwrap();
    assert_eq!(
        (&unknown["tool_failed"], &unknown["code"]),
        (&json!(false), &json!(-32602))
    );
}

#[tokio::test]
async fn an_operator_calls_a_tool_that_asks() {
    let server = Server::start(&["--demo"]).await;
    let echo = operator_call(
        &server,
        "echo",
        &json!({ "arguments": { "text": "<b>hi</b>" } }),
    );
    assert_eq!(text(&answered(echo).await), "<b>hi</b>");
    until(&server, "echo", |tool| tool["outcomes"]["ok"] == 1).await;

    let table = json!({ "arguments": { "restaurant": "Noma" } });
    let asked = answered(operator_call(&server, "book_table", &table)).await;
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let (key, question) = result["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    assert_eq!(question["method"], "elicitation/create", "{asked}");
    let properties = &question["params"]["requestedSchema"]["properties"];
    assert_eq!(properties["guests"]["type"], "integer", "{asked}");
    for (answer, told) in [
        (
            json!({ "action": "accept", "content": { "guests": 4, "date": "Friday" } }),
            "4",
        ),
        (json!({ "action": "decline" }), "decline"),
    ] {
        let again = answered(operator_call(&server, "book_table", &table)).await;
        let (state, key) = (&again["result"]["requestState"], key.clone());
        let mut body = table.clone();
        body["requestState"] = state.clone();
        body["inputResponses"] = json!({ key: answer });
        let answer = answered(operator_call(&server, "book_table", &body)).await;
        assert!(text(&answer).contains(told), "{answer}");
    }

    let job = json!({ "arguments": { "steps": 3, "interval_ms": 5 } });
    let job = operator_call(&server, "long_job", &job)
        .send()
        .await
        .unwrap();
    let whole = timeout(SOON, job.text()).await.unwrap().unwrap();
    assert!(whole.contains("notifications/progress"), "{whole}");
    assert_eq!(
        server.log().matches("console: call a tool").count(),
        7,
        "{}",
        server.log()
    );
}

#[tokio::test]
async fn the_console_opens_no_way_around_the_token_of_clients() {
    let body = json!({ "arguments": { "text": "hello" } });
    let status = async |server: &Server, token: &str| {
        let call = operator_call(server, "echo", &body).bearer_auth(token);
        let answer = call.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let hash = "cb3db2d2bdc7f1d1b2fc7c3e0b0a1f0f3a6c1a2d4e5f60718293a4b5c6d7e8f9";
    let tokens = format!("[{{ name = 'alice', sha256 = '{hash}' }}]");
    let asks = [
        ("SHOAL_AUTH__MODE", "tokens"),
        ("SHOAL_AUTH__TOKENS", &*tokens),
    ];
    let without = Server::start_with(&["--demo"], &asks).await;
    let (code, why) = status(&without, "").await;
    assert!(
        code == 403 && why.contains("server.admin_token"),
        "{code} {why}"
    );
    assert_eq!(
        get(&without, "tools").await["calls_off"].as_str(),
        Some(why_of(&why).as_str())
    );

    let admin = (
        "SHOAL_SERVER__ADMIN_TOKEN",
        "{ value = 'only-for-this-test' }",
    );
    let with = Server::start_with(&["--demo"], &[asks[0], asks[1], admin]).await;
    assert_eq!(status(&with, "another").await.0, 401);
    let (code, answer) = status(&with, "only-for-this-test").await;
    assert!(code == 200 && answer.contains("hello"), "{code} {answer}");

    let off = ("SHOAL_SERVER__CONSOLE_CALLS", "false");
    let off = Server::start_with(&["--demo"], &[off]).await;
    let (code, why) = status(&off, "").await;
    assert!(
        code == 403 && why.contains("server.console_calls"),
        "{code} {why}"
    );
}

fn why_of(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    body["error"].as_str().unwrap().to_owned()
}
