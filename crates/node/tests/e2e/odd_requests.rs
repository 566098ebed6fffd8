//! Invalid requests that the servers of the official SDKs accept, and Shoal too.

use futures::future::join_all;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::client::{
    Events, Session, call, initialize, modern_call, post, post_modern, request, response, text,
};
use crate::process::Server;

const BOTH: &str = "application/json, text/event-stream";

fn bare(url: &str, headers: &[(&str, &str)], body: &Value) -> RequestBuilder {
    let post = Client::new().post(url).body(body.to_string());
    let post = post.header("content-type", "application/json");
    headers
        .iter()
        .fold(post, |post, (name, value)| post.header(*name, *value))
}

fn job(id: u64) -> Value {
    let mut job = call(id, "long_job", json!({ "steps": 2, "interval_ms": 60 }));
    job["params"]["_meta"] = json!({ "progressToken": 1 });
    job
}

fn kind(answer: &Response) -> &str {
    answer.headers()["content-type"].to_str().unwrap()
}

fn header<'a>(answer: &'a Response, name: &str) -> &'a str {
    let value = answer.headers().get(name);
    value.map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn an_answer_is_json_for_a_client_that_takes_no_stream() {
    let server = Server::start(&["--demo"]).await;
    let session = Session::open_with(&server.mcp, json!({ "elicitation": {} })).await;
    let named = ("mcp-session-id", session.id.as_str());
    let version = ("mcp-protocol-version", "2025-11-25");
    let ask = async |accept: &[(&str, &str)], message: &Value| {
        let headers = [&[named, version], accept].concat();
        bare(&server.mcp, &headers, message).send().await.unwrap()
    };
    let json_only = [("accept", "application/json")];
    let answer = ask(&json_only, &job(1)).await;
    assert_eq!(kind(&answer), "application/json");
    assert_eq!(text(&answer.json().await.unwrap()), "done after 2 steps");
    // The client cannot read the question, so the call continues without asking.
    let book = call(2, "book_table", json!({ "restaurant": "Chez Nous" }));
    let answer: Value = ask(&json_only, &book).await.json().await.unwrap();
    assert_eq!(
        (&answer["id"], answer.get("result").is_some()),
        (&json!(2), true),
        "{answer}"
    );
    let answer = ask(&[], &job(3)).await;
    assert_eq!(kind(&answer), "text/event-stream");
    assert_eq!(text(&response(answer).await), "done after 2 steps");

    let mut modern = modern_call(4, "long_job", json!({ "steps": 2, "interval_ms": 60 }));
    modern["params"]["_meta"]["progressToken"] = json!(1);
    let headers = [
        json_only[0],
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "long_job"),
    ];
    let answer = bare(&server.mcp, &headers, &modern).send().await.unwrap();
    assert_eq!(kind(&answer), "application/json");
    assert_eq!(text(&answer.json().await.unwrap()), "done after 2 steps");
}

#[tokio::test]
async fn a_batch_is_answered_with_one_array_of_json() {
    let server = Server::start(&["--demo"]).await;
    let opening = initialize(0, "2025-03-26");
    let opened = post(&server.mcp, &opening).send().await.unwrap();
    let session = header(&opened, "mcp-session-id").to_owned();
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("accept", "application/json"),
    ];
    let batch = json!([job(1), request(2, "ping", json!({}))]);
    let answer = bare(&server.mcp, &headers, &batch).send().await.unwrap();
    assert_eq!(kind(&answer), "application/json");
    let answers: Vec<Value> = answer.json().await.unwrap();
    let mut ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2)], "{answers:?}");
}

#[tokio::test]
async fn an_operator_may_have_every_answer_in_json() {
    let json = [("SHOAL_SERVER__JSON_RESPONSE", "true")];
    let server = Server::start_with(&["--demo"], &json).await;
    let session = Session::open(&server.mcp).await;
    let answer = session.post(&job(1)).send().await.unwrap();
    assert_eq!(kind(&answer), "application/json");
    assert_eq!(text(&answer.json().await.unwrap()), "done after 2 steps");
    let mut modern = modern_call(2, "long_job", json!({ "steps": 1, "interval_ms": 1200 }));
    modern["params"]["_meta"]["progressToken"] = json!(1);
    let answer = post_modern(&server.mcp, &modern).send().await.unwrap();
    assert_eq!(kind(&answer), "application/json");
}

#[tokio::test]
async fn requests_of_one_id_are_answered_each_where_it_was_posted() {
    let server = Server::start(&["--demo"]).await;
    let session = Session::open(&server.mcp).await;
    let calls = (1..=12u64).map(|steps| {
        let arguments = json!({ "steps": steps, "interval_ms": 20 });
        let session = session.clone();
        async move { session.ask(&call(1, "long_job", arguments)).await }
    });
    for (at, answer) in join_all(calls).await.iter().enumerate() {
        assert_eq!(answer["id"], 1);
        assert_eq!(text(answer), format!("done after {} steps", at + 1));
    }
    // A slow and a quick request with the same id each get their own answer.
    let (job, ping) = (job(1), request(1, "ping", json!({})));
    let (slow, quick) = tokio::join!(session.ask(&job), session.ask(&ping));
    assert_eq!(text(&slow), "done after 2 steps");
    assert_eq!(quick["result"], json!({}));
}

#[tokio::test]
async fn questions_of_requests_of_one_id_reach_the_call_that_asks() {
    let server = Server::start(&["--demo"]).await;
    let session = Session::open_with(&server.mcp, json!({ "elicitation": {} })).await;
    let booking = async |guests: u64| {
        let restaurant = format!("for {guests}");
        let book = call(1, "book_table", json!({ "restaurant": restaurant }));
        let mut events = Events::of(session.post(&book).send().await.unwrap());
        let asked = events.message().await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        (guests, asked["id"].clone(), events)
    };
    let mut open = vec![booking(2).await, booking(3).await, booking(4).await];
    while let Some((guests, asked, mut events)) = open.pop() {
        let content = json!({ "guests": guests, "date": "2026-08-01" });
        let result = json!({ "action": "accept", "content": content });
        let answer = json!({ "jsonrpc": "2.0", "id": asked, "result": result });
        let taken = session.post(&answer).send().await.unwrap();
        assert_eq!(taken.status(), 202);
        let booked = events.message().await;
        let expected = format!("booked for {guests} for {guests} on 2026-08-01");
        assert_eq!(text(&booked), expected);
    }
}

#[tokio::test]
async fn members_and_headers_that_say_nothing_are_taken_for_absent() {
    let server = Server::start(&["--demo"]).await;
    let session = Session::open(&server.mcp).await;
    for params in [
        json!({ "cursor": "" }),
        json!({ "cursor": null }),
        // The list has one page, so the cursor cannot skip anything.
        json!({ "cursor": "nobody's" }),
        json!(null),
    ] {
        let listed = session.ask(&request(1, "tools/list", params.clone())).await;
        assert!(listed["result"]["tools"].is_array(), "{params} {listed}");
    }
    let listed = session.ask(&call(2, "list_roots", json!(null))).await;
    assert!(listed.get("result").is_some(), "{listed}");

    let id_of_nothing = json!({
        "jsonrpc": "2.0", "id": null, "method": "notifications/roots/list_changed" });
    let told = session.post(&id_of_nothing).send().await.unwrap();
    assert_eq!(told.status(), 202);
    let request_of_nothing = json!({ "jsonrpc": "2.0", "id": null, "method": "tools/list" });
    let refused = session.post(&request_of_nothing).send().await.unwrap();
    assert_eq!(refused.status(), 400);

    let ping = request(3, "ping", json!({}));
    for (second, expected) in [("2025-11-25", 200), ("2025-06-18", 400)] {
        let twice = session.post(&ping).header("mcp-protocol-version", second);
        assert_eq!(twice.send().await.unwrap().status(), expected, "{second}");
    }
    let other = [
        ("accept", BOTH),
        ("mcp-session-id", session.id.as_str()),
        ("mcp-protocol-version", "2025-06-18"),
    ];
    let answer = bare(&server.mcp, &other, &ping).send().await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn what_two_of_the_common_servers_read_is_read() {
    let server = Server::start(&["--demo"]).await;
    let session = Session::open(&server.mcp).await;
    let ping = request(7, "ping", json!({})).to_string();
    let own = ("mcp-session-id", session.id.as_str());
    let none = ("mcp-session-id", "");
    let json = ("content-type", "application/json");
    let start = initialize(7, "2025-11-25").to_string();
    let unread =
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "" } });
    let in_meta = r#"{"name":"echo","arguments":{"text":"x"},"task":null}"#;
    let task = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{in_meta}}}"#);
    for (what, headers, body, status) in [
        (
            "a byte order mark",
            vec![own, json],
            format!("\u{feff}{ping}"),
            200,
        ),
        ("7.0", vec![own, json], ping.replace('7', "7.0"), 200),
        ("a batch", vec![own, json], format!("[{ping}]"), 200),
        (
            "an error without an id",
            vec![own, json],
            unread.to_string(),
            202,
        ),
        ("one session twice", vec![own, own, json], ping.clone(), 200),
        ("two sessions", vec![own, none, json], ping.clone(), 400),
        ("one type twice", vec![own, json, json], ping.clone(), 200),
        ("no session yet", vec![none, json], start, 200),
        ("no session", vec![none, json], ping.clone(), 400),
        ("no task", vec![own, json], task, 200),
    ] {
        let post = Client::new().post(&server.mcp).body(body);
        let post = post.header("accept", "application/json");
        let post = headers
            .iter()
            .fold(post, |post, (name, value)| post.header(*name, *value));
        let answer = post.send().await.unwrap();
        assert_eq!(answer.status(), status, "{what}");
        if status == 200 {
            let said: Value = answer.json().await.unwrap();
            let said = said.get(0).unwrap_or(&said);
            assert_eq!(said["id"], 7, "{what}: {said}");
            assert!(said.get("result").is_some(), "{what}: {said}");
        }
    }
    let listen = Client::new().get(&server.mcp).header(own.0, own.1);
    let listen = listen.header("accept", "text/event-stream");
    let stream = listen.header("last-event-id", "").send().await.unwrap();
    assert_eq!(stream.status(), 200);
}

#[tokio::test]
async fn a_slash_at_the_end_of_a_path_makes_no_difference() {
    let server = Server::start(&["--demo"]).await;
    let url = format!("{}/", server.mcp);
    let session = Session::open(&url).await;
    assert_eq!(text(&session.ask(&job(1)).await), "done after 2 steps");
    let sse = server.mcp.replace("/mcp", "/sse/");
    let opened = Client::new().get(sse).header("accept", "text/event-stream");
    let mut events = Events::of(opened.send().await.unwrap());
    assert!(events.next().await.unwrap().starts_with("event: endpoint"));
    let elsewhere = post(&format!("{url}x"), &job(1)).send().await.unwrap();
    assert_eq!(elsewhere.status(), 404);
}

#[tokio::test]
async fn paths_without_mcp_are_answered_in_json_that_any_page_may_read() {
    let server = Server::start(&["--demo"]).await;
    let root = server.mcp.trim_end_matches("/mcp");
    let ask = |method: Method, path: &str| {
        let request = Client::new().request(method, format!("{root}{path}"));
        request.header("origin", "https://app.example.com").send()
    };
    for path in ["/", "/healthz"] {
        let answer = ask(Method::GET, path).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), kind(&answer)),
            (200, "application/json")
        );
        assert_eq!(header(&answer, "access-control-allow-origin"), "*");
        assert_eq!(answer.text().await.unwrap(), r#"{"status":"ok"}"#);
        assert_eq!(ask(Method::HEAD, path).await.unwrap().status(), 200);
        assert_eq!(ask(Method::POST, path).await.unwrap().status(), 404);
    }
    for path in [
        "/mcp/.well-known/openid-configuration",
        "/.well-known/oauth-protected-resource",
        "/register",
    ] {
        let answer = ask(Method::GET, path).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), kind(&answer)),
            (404, "application/json")
        );
        assert_eq!(header(&answer, "access-control-allow-origin"), "*");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["error"], "not_found", "{body}");
        assert_eq!(ask(Method::OPTIONS, path).await.unwrap().status(), 204);
    }
}

#[tokio::test]
async fn a_page_of_the_listed_host_may_call_and_others_read_why_they_may_not() {
    let listed = [("SHOAL_SERVER__ALLOWED_HOSTS", "['mcp.example.com']")];
    let server = Server::start_with(&["--demo"], &listed).await;
    let ask = async |host: &str, origin: &str| {
        let ping = request(
            1,
            "initialize",
            initialize(1, "2025-11-25")["params"].clone(),
        );
        let headers = [("accept", BOTH), ("host", host), ("origin", origin)];
        bare(&server.mcp, &headers, &ping).send().await.unwrap()
    };
    let own = ask("mcp.example.com", "https://mcp.example.com").await;
    assert_eq!(own.status(), 200);
    for (host, origin) in [
        ("mcp.example.com", "https://app.example.com"),
        ("localhost", "https://mcp.example.com"),
        ("evil.example.com", "https://evil.example.com"),
    ] {
        let refused = ask(host, origin).await;
        assert_eq!(refused.status(), 403, "{host} {origin}");
        assert_eq!(header(&refused, "access-control-allow-origin"), origin);
        let body: Value = refused.json().await.unwrap();
        assert_eq!(body["error"]["code"], -32600, "{body}");
    }
}
