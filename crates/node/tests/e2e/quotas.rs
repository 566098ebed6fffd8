use futures::future::join_all;
use nix::sys::signal::Signal;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{
    Session, call, modern, modern_call, post, post_modern, request, response, text,
};
use crate::command::output;
use crate::process::{SOON, Server};
use crate::reload::redis;
use crate::reload::setting::{ConfigFile, until};
use crate::websocket::{Client, stream_to};

/// The bucket refills too slowly to matter in a test, and each edge takes the tokens one by one.
const TEN: &str = "per = 'principal'\nrate = '1/h'\nburst = 10";

fn demo(name: &str, quota: &str) -> String {
    format!("[pools.demo]\nbackend = 'demo'\n[[quotas]]\nname = '{name}'\n{quota}\n")
}

fn echo(id: u64) -> Value {
    modern_call(id, "echo", json!({ "text": "hello" }))
}

async fn two_edges(store: &str, quota: &str) -> [Server; 2] {
    let any = "127.0.0.1:0";
    let config = ConfigFile::new(&demo("some", quota));
    let shared = ["--cluster-listen", any, "--store", store];
    let arguments = [&["--config", config.path()], &shared[..]].concat();
    let environment = [("SHOAL_CLUSTER__LEARNING", "0s")];
    let start = || Server::start_with(&arguments, &environment);
    let (one, other) = futures::join!(start(), start());
    for edge in [&one, &other] {
        until(async || {
            let nodes = edge.status().await["cluster"]["nodes"].clone();
            nodes.as_array().is_some_and(|nodes| nodes.len() == 2)
        })
        .await;
    }
    [one, other]
}

async fn send(request: RequestBuilder) -> Response {
    timeout(SOON, request.send()).await.unwrap().unwrap()
}

/// Checks the documented error of a refusal.
async fn passes(request: RequestBuilder, quota: &str) -> bool {
    let answer = send(request).await;
    if answer.status() == 200 {
        assert!(response(answer).await["error"].is_null());
        return true;
    }
    assert_eq!(answer.status(), 429);
    let seconds: u64 = answer.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let said: Value = answer.json().await.unwrap();
    let millis = expect_used_up(&said, quota);
    assert_eq!(seconds, millis.div_ceil(1_000).max(1), "{said}");
    false
}

fn expect_used_up(said: &Value, quota: &str) -> u64 {
    assert_eq!(said["error"]["code"], 50300, "{said}");
    let data = &said["error"]["data"];
    assert_eq!(data["quota"], quota, "{said}");
    data["retryAfterMs"].as_u64().unwrap()
}

async fn passed(requests: impl Iterator<Item = RequestBuilder>) -> usize {
    let passed = join_all(requests.map(|request| passes(request, "some"))).await;
    passed.into_iter().filter(|passed| *passed).count()
}

#[tokio::test]
async fn two_edges_let_through_what_one_bucket_holds_in_both_eras() {
    let (_redis, store) = redis().await;
    let edges = two_edges(&store, TEN).await;
    let sessions = [
        Session::open(&edges[0].mcp).await,
        Session::open(&edges[1].mcp).await,
    ];
    let legacy = call(1, "echo", json!({ "text": "hello" }));
    let mut let_through = 2;
    for (edge, session) in edges.iter().zip(&sessions) {
        assert!(passes(session.post(&legacy), "some").await);
        assert!(passes(post_modern(&edge.mcp, &echo(1)), "some").await);
        let_through += 2;
    }
    let many = (0..40).map(|id| {
        let at = usize::try_from(id % 2).unwrap();
        match id % 4 < 2 {
            true => post_modern(&edges[at].mcp, &echo(id)),
            false => sessions[at].post(&call(100 + id, "echo", json!({ "text": "hello" }))),
        }
    });
    let_through += passed(many).await;
    assert_eq!(let_through, 10);
    // Notifications do not count.
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(send(sessions[0].post(&initialized)).await.status(), 202);
}

#[tokio::test]
async fn tools_have_quotas_of_their_own_that_a_hang_up_changes() {
    let quotas = |burst: u32| {
        let quota = format!("per = 'all'\ntools = ['ec*']\nrate = '1/h'\nburst = {burst}");
        demo("some", &quota)
    };
    let (_redis, store) = redis().await;
    let config = ConfigFile::new(&quotas(2));
    let server = Server::start(&["--config", config.path(), "--store", &*store]).await;
    let session = Session::open(&server.mcp).await;
    let echoes = || (0..20).map(|id| post_modern(&server.mcp, &echo(id)));
    assert_eq!(passed(echoes()).await, 2);
    assert!(
        !passes(
            session.post(&call(1, "echo", json!({ "text": "x" }))),
            "some"
        )
        .await
    );
    let add = session
        .ask(&call(2, "add", json!({ "a": 1, "b": 2 })))
        .await;
    assert_eq!(text(&add), r#"{"sum":3.0}"#);
    let list = modern(3, "tools/list", json!({}));
    let list = response(send(post_modern(&server.mcp, &list)).await).await;
    assert!(list["result"]["tools"].is_array(), "{list}");

    let reread = async |text: &str| {
        let before = server.log().matches("was read again").count();
        config.write(text);
        server.signal(Signal::SIGHUP);
        until(async || server.log().matches("was read again").count() > before).await;
    };
    reread(&quotas(9)).await;
    assert_eq!(passed(echoes()).await, 7);
    reread("[pools.demo]\nbackend = 'demo'\n").await;
    assert_eq!(passed(echoes()).await, 20);
}

#[tokio::test]
async fn an_address_is_counted_before_its_token_is_looked_at() {
    let hash = output(&["config", "hash-token"], "alice's token").await;
    let tokens = format!("[{{ name = 'alice', sha256 = '{}' }}]", hash.stdout.trim());
    let environment = [
        ("SHOAL_AUTH__MODE", "tokens"),
        ("SHOAL_AUTH__TOKENS", tokens.as_str()),
    ];
    let doors = demo("doors", "per = 'address'\nrate = '1/h'\nburst = 5");
    let config = ConfigFile::new(&doors);
    let server = Server::start_with(&["--config", config.path()], &environment).await;
    let echo = || post_modern(&server.mcp, &echo(1));
    for guess in 0..4 {
        let answer = send(echo().bearer_auth(format!("guess {guess}"))).await;
        assert_eq!(answer.status(), 401);
    }
    assert!(passes(echo().bearer_auth("alice's token"), "doors").await);
    for token in ["another guess", "alice's token"] {
        assert!(!passes(echo().bearer_auth(token), "doors").await, "{token}");
    }
    let opening = post(&server.mcp, &request(1, "ping", json!({})));
    let elsewhere = opening.header("x-forwarded-for", "192.0.2.1");
    assert!(!passes(elsewhere, "doors").await);
}

#[tokio::test]
async fn a_websocket_is_no_way_around() {
    let open = async |quota: &str| {
        let config = ConfigFile::new(quota);
        let settings = [("SHOAL_SERVER__WEBSOCKET", "true")];
        let server = Server::start_with(&["--config", config.path()], &settings).await;
        let client = Client::open_on(stream_to(&server, None).await, "mcp.resume").await;
        (server, client)
    };
    let echo = |id| call(id, "echo", json!({ "text": "hello" }));
    let three = demo("some", "per = 'principal'\nrate = '1/h'\nburst = 3");
    let (_server, mut client) = open(&three).await;
    for id in 1..3 {
        assert_eq!(text(&client.ask(&echo(id)).await), "hello");
    }
    for id in 3..5 {
        let refused = client.ask(&echo(id)).await;
        assert_eq!(refused["id"], id);
        expect_used_up(&refused, "some");
    }
    // The handshake and each message count. The handshake and the two messages that opened the session left two of
    // five.
    let five = demo("doors", "per = 'address'\nrate = '1/h'\nburst = 5");
    let (_server, mut client) = open(&five).await;
    for id in 1..3 {
        assert_eq!(text(&client.ask(&echo(id)).await), "hello");
    }
    expect_used_up(&client.ask(&echo(3)).await, "doors");
}

#[tokio::test]
async fn without_redis_each_edge_goes_on_with_its_share() {
    let (mut redis, store) = redis().await;
    let edges = two_edges(&store, TEN).await;
    let echoes = |edge: &Server| {
        let mcp = edge.mcp.clone();
        (0..20).map(move |id| post_modern(&mcp, &echo(id)))
    };
    let before = passed(echoes(&edges[0])).await + passed(echoes(&edges[1])).await;
    assert_eq!(before, 10);
    redis.kill().await.unwrap();
    for edge in &edges {
        let mut share = 0;
        until(async || {
            share += passed(echoes(edge)).await;
            share > 0
        })
        .await;
        share += passed(echoes(edge)).await;
        assert_eq!(share, 5, "{}", edge.log());
        let (status, said) = edge.readiness().await;
        assert_eq!(status, 200, "{said}");
        let note = "each edge counts its own share of the rates";
        assert!(said.to_string().contains(note), "{said}");
    }
}
