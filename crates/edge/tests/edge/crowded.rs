use std::time::Duration;

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use shoal_ports::StreamItem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::dispatcher::LARGE as ANSWER;
use crate::gateway::id;
use crate::server::{Server, modern_headers, rpc, with_meta};

const LARGE: usize = 256 << 10;
const LIMIT: usize = 4 * LARGE;
/// Longer than any test, so that the machine's speed does not matter.
const PATIENT: Duration = Duration::from_secs(60);

async fn server(wait: Duration) -> Server {
    Server::with(|config| {
        config.limits.body_bytes = LARGE;
        config.limits.bodies_in_flight_bytes = LIMIT;
        config.streams.grace = PATIENT.into();
        config.body_wait = wait;
    })
    .await
}

fn large(tool: &str, bytes: usize) -> (String, Value) {
    let params = |pad: &str| with_meta(json!({"name": tool, "arguments": {"pad": pad}}), json!({}));
    let bare = rpc("tools/call", &params("")).to_string().len();
    let params = params(&"x".repeat(bytes - bare));
    (rpc("tools/call", &params).to_string(), params)
}

fn post(server: &Server, tool: &str, bytes: usize) -> RequestBuilder {
    let (text, params) = large(tool, bytes);
    server
        .post(text)
        .headers(modern_headers("tools/call", &params))
}

fn head(length: usize) -> String {
    let (_, params) = large("echo", LARGE);
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n\
         content-length: {length}\r\n"
    );
    for (name, value) in &modern_headers("tools/call", &params) {
        head.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    head + "\r\n"
}

async fn until(mut reached: impl FnMut() -> bool) {
    let reaching = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENT, reaching).await.unwrap();
}

#[tokio::test]
async fn many_clients_hold_no_more_than_the_limit_and_all_are_answered_in_turn() {
    let server = server(PATIENT).await;
    let mut clients = JoinSet::new();
    for _ in 0..12 {
        clients.spawn(post(&server, "played", LARGE).send());
    }
    let mut answered = 0;
    while answered < 12 {
        let mut running = Vec::new();
        for _ in 0..4 {
            running.push(server.dispatcher.call().await);
        }
        assert_eq!(server.load.body_bytes(), LIMIT);
        assert_eq!(server.dispatcher.calls.lock().len(), answered + 4);
        let small = server.tool("echo").send().await.unwrap();
        assert_eq!(small.status(), 200);
        server.dispatcher.calls.lock().pop();
        assert_eq!(server.load.body_bytes(), LIMIT);
        for mut call in running {
            call.finish(r#"{"resultType":"complete"}"#).await;
            let answer = clients.join_next().await.unwrap().unwrap().unwrap();
            assert_eq!(answer.status(), 200);
            answered += 1;
        }
    }
    until(|| server.load.body_bytes() == 0).await;
}

#[tokio::test]
async fn who_finds_no_room_in_time_is_told_and_the_rest_go_on() {
    let server = server(Duration::from_millis(50)).await;
    let mut first = JoinSet::new();
    let mut running = Vec::new();
    for _ in 0..4 {
        first.spawn(post(&server, "played", LARGE).send());
        running.push(server.dispatcher.call().await);
    }
    let mut late = JoinSet::new();
    for _ in 0..4 {
        late.spawn(post(&server, "echo", LARGE).send());
    }
    while let Some(answer) = late.join_next().await {
        let answer = answer.unwrap().unwrap();
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.headers()["retry-after"], "1");
        let error: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(error["error"]["code"], 50300);
    }
    assert_eq!(server.load.body_bytes(), LIMIT);
    for call in &mut running {
        call.finish(r#"{"resultType":"complete"}"#).await;
    }
    while let Some(answer) = first.join_next().await {
        assert_eq!(answer.unwrap().unwrap().status(), 200);
    }
    until(|| server.load.body_bytes() == 0).await;
    let again = post(&server, "echo", LARGE).send().await.unwrap();
    assert_eq!(again.status(), 200);
}

#[tokio::test]
async fn who_leaves_in_the_middle_of_a_body_gives_its_room_back() {
    let server = server(PATIENT).await;
    let mut sockets = Vec::new();
    for _ in 0..4 {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let half = head(LARGE) + &"x".repeat(LARGE / 2);
        socket.write_all(half.as_bytes()).await.unwrap();
        sockets.push(socket);
    }
    until(|| server.load.body_bytes() == LIMIT).await;
    let waiting = tokio::spawn(post(&server, "echo", LARGE).send());
    drop(sockets);
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
    until(|| server.load.body_bytes() == 0).await;
    assert_eq!(server.load.requests_in_flight(), 0);
}

#[tokio::test]
async fn a_body_of_unknown_length_takes_room_for_the_longest_and_keeps_what_it_needs() {
    let server = server(PATIENT).await;
    let (text, params) = large("played", LARGE / 2);
    let half = text.len() / 2;
    let (send, parts) = tokio::sync::mpsc::channel::<String>(1);
    let parts = futures::stream::unfold(parts, |mut parts| async move {
        let part = parts.recv().await?;
        Some((Ok::<_, std::io::Error>(part), parts))
    });
    let request = server
        .post("")
        .headers(modern_headers("tools/call", &params));
    let sent = request.body(reqwest::Body::wrap_stream(parts)).send();
    let answer = tokio::spawn(sent);
    send.send(text[..half].to_owned()).await.unwrap();
    until(|| server.load.body_bytes() == LARGE).await;
    send.send(text[half..].to_owned()).await.unwrap();
    drop(send);
    let mut call = server.dispatcher.call().await;
    assert_eq!(server.load.body_bytes(), LARGE / 2);
    call.finish(r#"{"resultType":"complete"}"#).await;
    assert_eq!(answer.await.unwrap().unwrap().status(), 200);
    until(|| server.load.body_bytes() == 0).await;
}

#[tokio::test]
async fn an_answer_that_nobody_reads_takes_no_room_from_requests() {
    let server = server(Duration::from_millis(50)).await;
    let mut unread = server.unread("large", None).await;
    until(|| server.load.answer_bytes() > ANSWER).await;
    let answer = post(&server, "echo", LARGE).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    assert_eq!(server.load.body_bytes(), 0);
    let (mut read, mut buffer) = (0, vec![0; 1 << 20]);
    while read < ANSWER {
        assert!(server.load.answer_bytes() > ANSWER || read > 0);
        read += unread.read(&mut buffer).await.unwrap();
    }
    until(|| server.load.answer_bytes() == 0).await;
}

#[tokio::test]
async fn an_answer_that_is_not_kept_says_whether_its_call_may_be_repeated() {
    let server = Server::with(|config| config.limits.answers_waiting_bytes = ANSWER).await;
    let unread = server.unread("large", None).await;
    until(|| server.load.answer_bytes() > ANSWER).await;
    for (tool, status, code) in [("large", 503, 50300), ("large-write", 200, 50002)] {
        let answer = server.tool(tool).send().await.unwrap();
        assert_eq!(answer.status(), status, "{tool}");
        assert_eq!(answer.headers().contains_key("retry-after"), status == 503);
        let error: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(error["error"]["code"], code, "{tool}");
    }
    let small = server.tool("echo").send().await.unwrap();
    assert_eq!(small.status(), 200, "small answers go on");
    drop(unread);
    until(|| server.load.answer_bytes() == 0).await;
    let answer = server.tool("large").send().await.unwrap();
    assert!(answer.text().await.unwrap().len() > ANSWER);
}

#[tokio::test]
async fn the_answers_of_a_batch_are_counted_until_the_last_is_there() {
    let server = Server::with(|config| config.limits.answers_waiting_bytes = ANSWER).await;
    let call = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "large"}});
    let mut posted = server.legacy(&json!([call(1), call(2)])).build().unwrap();
    let json = "application/json".parse().unwrap();
    posted.headers_mut().insert("accept", json);
    let client = reqwest::Client::new();
    let posting = tokio::spawn(async move { client.execute(posted).await.unwrap().text().await });
    let stream = server.gateway.stream().await;
    for sequence in 1..=2 {
        let text = "x".repeat(ANSWER);
        let answer = json!({"jsonrpc": "2.0", "id": sequence, "result": {"text": text}});
        let data = answer.to_string().into();
        let id = id(sequence);
        stream.send(StreamItem::Event { id, data }).await.unwrap();
    }
    until(|| server.load.answer_bytes() > ANSWER).await;
    drop(stream);
    let answers = posting.await.unwrap().unwrap();
    let answers: Value = serde_json::from_str(&answers).unwrap();
    assert_eq!(answers[0]["result"]["text"].as_str().unwrap().len(), ANSWER);
    assert_eq!(answers[1]["id"], 2);
    assert_eq!(answers[1]["error"]["code"], 50002, "it has run");
    until(|| server.load.answer_bytes() == 0).await;
}
