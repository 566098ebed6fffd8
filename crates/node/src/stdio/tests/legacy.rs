use http::Method;
use serde_json::{Value, json};

use super::script::{Act, Client, End, accepted, answered, initialize, refused, welcome};

fn call(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "t" } })
}

const RESPONSE: &str = r#"id: 1-2-3
data: {"jsonrpc":"2.0","id":1,"result":{}}"#;

#[tokio::test(start_paused = true)]
async fn requests_carry_the_session_and_its_revision() {
    let mut client = Client::opened([answered(1, json!({ "n": 1 }))]).await;
    client.send(call(1)).await;
    assert_eq!(client.next().await["result"]["n"], 1);
    let sent = client.sent(Method::POST);
    assert!(!sent[0].contains_key("mcp-session-id"));
    for headers in &sent[1..] {
        assert_eq!(headers["mcp-session-id"], "first");
        assert_eq!(headers["mcp-protocol-version"], "2025-11-25");
    }
    client.finish().await;
    assert_eq!(client.sent(Method::DELETE)[0]["mcp-session-id"], "first");
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_resumed_after_its_last_event() {
    let prime = "id: 1-2-0\nretry: 3000\ndata: ";
    let progress = r#"id: 1-2-2
data: {"jsonrpc":"2.0","method":"notifications/progress"}"#;
    for end in [End::Broken, End::Clean] {
        let mut client = Client::opened([Act::Stream(vec![prime, progress], end)]).await;
        let begin = tokio::time::Instant::now();
        client.on_get([
            Act::Refuse,
            refused(503, -1),
            Act::Stream(vec![RESPONSE], End::Clean),
        ]);
        client.send(call(1)).await;
        assert_eq!(client.next().await["method"], "notifications/progress");
        assert_eq!(client.next().await["id"], 1);
        assert!(begin.elapsed().as_secs() >= 3, "{:?}", begin.elapsed());
        let gets = client.sent(Method::GET);
        let resumes: Vec<_> = gets
            .iter()
            .filter_map(|get| get.get("last-event-id"))
            .collect();
        assert!(
            !resumes.is_empty() && resumes.iter().all(|id| *id == "1-2-2"),
            "{resumes:?}"
        );
        assert!(client.hears_nothing().await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_without_an_id_is_passed_on_and_moves_nothing() {
    let event = r#"id: 1-0-4
data: {"jsonrpc":"2.0","method":"notifications/message"}"#;
    let passing = r#"data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let mut client = Client::with([welcome("first"), accepted()]);
    client.on_get([Act::Stream(vec![event, passing], End::Broken)]);
    client.send(initialize()).await;
    assert_eq!(client.next().await["id"], 0);
    client
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .await;
    assert_eq!(client.next().await["method"], "notifications/message");
    let passed = client.next().await;
    assert_eq!(passed["method"], "notifications/tools/list_changed");
    assert!(client.hears_nothing().await);
    let gets = client.sent(Method::GET);
    assert_eq!(gets[1]["last-event-id"], "1-0-4");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_resumed_is_told() {
    let cut = Act::Stream(vec![": no id here"], End::Broken);
    let primed = Act::Stream(vec!["id: 1-2-0\ndata: "], End::Clean);
    let mut client = Client::opened([cut, primed]).await;
    client.send(call(1)).await;
    let answer = client.next().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(1), &json!(50_002))
    );
    client.on_get([refused(410, 50_410)]);
    client.send(call(2)).await;
    let answer = client.next().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(2), &json!(50_002))
    );
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("no"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_not_followed_any_further() {
    let primed = Act::Stream(vec!["id: 1-2-0\ndata: "], End::Open);
    let mut client = Client::opened([primed]).await;
    client.send(call(1)).await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 1 } });
    client.send(cancel).await;
    assert!(client.hears_nothing().await);
    let posted = client.posted();
    assert_eq!(posted.last().unwrap()["method"], "notifications/cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_is_opened_again() {
    let level = json!({ "jsonrpc": "2.0", "id": 5, "method": "logging/setLevel",
        "params": { "level": "error" } });
    let mut client = Client::opened([
        answered(5, json!({})),
        // The server gets the call, the messages that reopen the session, and the call again.
        refused(404, -32600),
        welcome("second"),
        accepted(),
        answered(5, json!({})),
        answered(1, json!({ "n": 1 })),
    ])
    .await;
    client.send(level.clone()).await;
    assert_eq!(client.next().await["id"], 5);
    client.send(call(1)).await;
    assert_eq!(client.next().await["result"]["n"], 1);
    assert!(client.hears_nothing().await);
    let posted = client.posted();
    let methods: Vec<&str> = posted
        .iter()
        .map(|post| post["method"].as_str().unwrap())
        .collect();
    let again = [
        "tools/call",
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "tools/call",
    ];
    assert_eq!(methods[3..], again);
    assert_eq!(
        client.sent(Method::POST).last().unwrap()["mcp-session-id"],
        "second"
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cannot_be_opened_again_is_told() {
    let mut client = Client::opened([refused(404, -32600), refused(401, -32600)]).await;
    client.send(call(1)).await;
    let answer = client.next().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(1), &json!(-32600))
    );
}

#[tokio::test(start_paused = true)]
async fn initialize_is_tried_again_until_the_server_is_there() {
    let headers = &[("retry-after", "2"), ("content-type", "application/json")];
    let later = Act::Json(503, headers, json!({}));
    let mut client = Client::with([Act::Refuse, Act::Refuse, later, welcome("first")]);
    client.send(initialize()).await;
    assert_eq!(
        client.next().await["result"]["protocolVersion"],
        "2025-11-25"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_may_have_arrived_is_not_sent_again() {
    let mut client = Client::opened([Act::Break, answered(1, json!({}))]).await;
    client.send(call(1)).await;
    let answer = client.next().await;
    assert_eq!(answer["error"]["code"], 50_002, "{answer}");
    assert_eq!(client.posted().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_a_proxy_refuses_is_not_sent_again() {
    let headers = &[("retry-after", "1"), ("content-type", "text/html")];
    let mut client = Client::opened([Act::Json(503, headers, json!("later"))]).await;
    client.send(call(1)).await;
    let answer = client.next().await;
    assert!(
        answer["error"]["message"].to_string().contains("503"),
        "{answer}"
    );
    assert_eq!(client.posted().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_response_becomes_an_error_and_nothing_else() {
    let foreign = json!({ "jsonrpc": "2.0", "id": "zzz", "result": {} });
    let no_object = json!({ "jsonrpc": "2.0", "id": 1, "result": "x" });
    for body in [
        json!("<html>"),
        json!({ "a": 1 }),
        json!([]),
        foreign,
        no_object,
    ] {
        let html = &[("content-type", "text/html")];
        let mut client = Client::opened([Act::Json(200, html, body.clone())]).await;
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
    let accepted = Act::Stream(Vec::new(), End::Clean);
    let mut client = Client::opened([Act::Stream(frames, End::Clean), accepted]).await;
    for (id, code) in [(1, json!(null)), (2, json!(50_002))] {
        client.send(call(id)).await;
        let answer = client.next().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(id), &code)
        );
    }
    let mut client = Client::with([]);
    client.send(initialize()).await;
    let answer = client.next().await;
    assert_eq!(answer["error"]["code"], -32_603, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_answered_request_by_request() {
    let both = r#"data: {"jsonrpc":"2.0","id":1,"result":{}}

data: {"jsonrpc":"2.0","id":2,"result":{}}"#;
    let mut client = Client::opened([Act::Stream(vec![both], End::Clean), Act::Break]).await;
    client.send(json!([call(1), call(2)])).await;
    assert_eq!(client.next().await["id"], 1);
    assert_eq!(client.next().await["id"], 2);
    client.send(json!([call(3), call(4)])).await;
    assert_eq!(client.next().await["id"], 3);
    assert_eq!(client.next().await["error"]["code"], 50_002);
}

#[tokio::test(start_paused = true)]
async fn initialize_may_be_answered_on_a_stream_that_stays_open() {
    let response = r#"data: {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}"#;
    let open = Act::Stream(vec![response], End::Open);
    let mut client = Client::with([open, answered(1, json!({}))]);
    client.send(initialize()).await;
    client.send(call(1)).await;
    assert_eq!(client.next().await["id"], 0);
    assert_eq!(client.next().await["id"], 1);
    let sent = client.sent(Method::POST);
    assert_eq!(sent[1]["mcp-protocol-version"], "2025-06-18");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_too_long_is_refused_under_its_own_id() {
    let mut client = Client::opened([]).await;
    let long = "x".repeat(2000);
    let request = json!({ "jsonrpc": "2.0", "id": "a-1", "method": "tools/call", "params": long });
    client.send_too_long(&request, 1000).await;
    let refused = client.next().await;
    assert_eq!(refused["id"], "a-1");
    assert_eq!(refused["error"]["code"], -32600);
    let answer = json!({ "jsonrpc": "2.0", "id": 5, "result": { "text": long } });
    client.send_too_long(&answer, 1000).await;
    let told = client.posted().pop().unwrap();
    assert_eq!(
        (&told["id"], &told["error"]["code"]),
        (&json!(5), &json!(-32600))
    );
    client.send_too_long(&json!([long]), 1000).await;
    assert_eq!(client.next().await["id"], json!(null));
}
