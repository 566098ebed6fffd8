//! A call holds the permit of a `concurrent` quota until its tool has stopped.

use std::time::Duration;

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::client::{Session, call, modern_call, post_modern};
use crate::process::{SOON, Server};
use crate::reload::setting::{ConfigFile, until};
use crate::websocket::{Client, stream_to};

const TWO: &str = "[pools.demo]\nbackend = 'demo'\n[[quotas]]\nname = 'two'\nper = 'principal'\n\
                   tools = ['long_job']\nconcurrent = 2\n";
const CALLS: u64 = 6;

async fn server() -> Server {
    let config = ConfigFile::new(TWO);
    let environment = [
        ("SHOAL_TASKS__AFTER", "50ms"),
        ("SHOAL_SERVER__WEBSOCKET", "true"),
    ];
    Server::start_with(&["--config", config.path()], &environment).await
}

/// With a progress token, the answer begins at once.
fn job(mut call: Value) -> Value {
    call["params"]["_meta"]["progressToken"] = call["id"].clone();
    call
}

fn arguments() -> Value {
    json!({ "steps": 2, "interval_ms": 500 })
}

async fn running(server: &Server) -> u64 {
    let status = server.status().await;
    let running = &status["pools"][0]["workers"][0]["running"];
    running.as_u64().unwrap_or_else(|| panic!("{status}"))
}

async fn never_more_than_two(server: &Server, request: impl Fn(u64) -> RequestBuilder) {
    let (mut id, mut let_in, mut most) = (100, 0, 0);
    timeout(SOON, async {
        while let_in < CALLS {
            id += 1;
            let answer = request(id).send().await.unwrap();
            match answer.status().as_u16() {
                200 => let_in += 1,
                429 => sleep(Duration::from_millis(20)).await,
                _ => panic!("{answer:?}"),
            }
            drop(answer);
            most = most.max(running(server).await);
        }
    })
    .await
    .unwrap_or_else(|_| panic!("{let_in} calls were let in: {}", server.log()));
    until(async || {
        let now = running(server).await;
        most = most.max(now);
        now == 0
    })
    .await;
    assert_eq!(most, 2);
}

#[tokio::test]
async fn a_session_call_whose_client_hangs_up_keeps_its_place() {
    let server = server().await;
    let session = Session::open(&server.mcp).await;
    never_more_than_two(&server, |id| {
        session.post(&job(call(id, "long_job", arguments())))
    })
    .await;
}

#[tokio::test]
async fn tasks_of_both_eras_keep_their_places() {
    let server = server().await;
    let session = Session::open(&server.mcp).await;
    never_more_than_two(&server, |id| {
        let mut call = call(id, "long_job", arguments());
        call["params"]["task"] = json!({ "ttl": 60_000 });
        session.post(&call)
    })
    .await;
    never_more_than_two(&server, |id| {
        let mut call = modern_call(id, "long_job", arguments());
        let declared = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = declared;
        post_modern(&server.mcp, &call)
    })
    .await;
}

#[tokio::test]
async fn a_modern_call_frees_its_place_when_its_tool_has_stopped() {
    let server = server().await;
    let endless = json!({ "steps": 600, "interval_ms": 1000 });
    let call = |id| {
        post_modern(
            &server.mcp,
            &job(modern_call(id, "long_job", endless.clone())),
        )
    };
    for round in 0..3 {
        let mut open = Vec::new();
        until(async || {
            let answer = call(10 * round + 1).send().await.unwrap();
            if answer.status() == 200 {
                open.push(answer);
            }
            open.len() == 2
        })
        .await;
        assert_eq!(call(10 * round + 2).send().await.unwrap().status(), 429);
        assert_eq!(running(&server).await, 2);
    }
}

#[tokio::test]
async fn a_call_over_websocket_keeps_its_place_until_it_is_answered() {
    let server = server().await;
    let mut client = Client::open_on(stream_to(&server, None).await, "mcp.resume").await;
    for round in 0..2 {
        let id = |number: u64| 10 * round + number;
        for number in 1..=3 {
            client
                .send(&call(id(number), "long_job", arguments()))
                .await;
        }
        let refused = client.message().await;
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&json!(id(3)), &json!(50300))
        );
        for _ in 1..=2 {
            let answer = client.message().await;
            assert!(answer["result"].is_object(), "{answer}");
        }
        until(async || {
            client
                .send(&call(
                    id(4),
                    "long_job",
                    json!({ "steps": 1, "interval_ms": 0 }),
                ))
                .await;
            client.message().await["result"].is_object()
        })
        .await;
    }
}
