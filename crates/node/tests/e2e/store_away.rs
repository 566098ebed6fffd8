use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client::{initialize, post};
use crate::command::{Output, output};
use crate::process::Server;
use crate::reload::redis;
use crate::reload::setting::until;

/// Each node has a worker.
struct Cluster {
    edge: Server,
    sessions: Server,
}

async fn cluster(store: &str) -> Cluster {
    let any = "127.0.0.1:0";
    let shared = ["--cluster-listen", any, "--store", store];
    let environment = [
        ("SHOAL_CLUSTER__LEARNING", "0s"),
        ("SHOAL_NODE__LEASE", "1s"),
    ];
    let start = async |roles: &str| {
        let roles = [&["--demo", "--roles", roles][..], &shared].concat();
        Server::start_with(&roles, &environment).await
    };
    let (edge, sessions) = futures::join!(start("edge,worker"), start("session,worker"));
    until(async || opens(&edge).await == 200).await;
    Cluster { edge, sessions }
}

async fn opens(edge: &Server) -> u16 {
    let answer = post(&edge.mcp, &initialize(1, "2025-11-25")).send().await;
    answer.unwrap().status().as_u16()
}

async fn status(server: &Server, arguments: &[&str]) -> Output {
    let all = [&["status", "--admin", server.admin.as_str()], arguments].concat();
    output(&all, "").await
}

async fn trouble(server: &Server) -> Value {
    server.status().await["store"]["trouble"].clone()
}

async fn console(server: &Server) -> Vec<Value> {
    let answer = reqwest::get(format!("{}/console/api/overview", server.admin)).await;
    let said: Value = answer.unwrap().json().await.unwrap();
    said["nodes"].as_array().unwrap().clone()
}

async fn expect_trouble(node: &Server, part: &str) {
    until(async || trouble(node).await.is_string()).await;
    until(async || trouble(node).await.to_string().contains(part)).await;
    let told = status(node, &[]).await;
    assert_eq!(told.code, 1, "{}", told.stdout);
    let line = told.stdout.lines().find(|line| line.starts_with("store "));
    let line = line.unwrap_or_else(|| panic!("no store in {}", told.stdout));
    assert!(
        line.contains("NOT AVAILABLE") && line.contains(part),
        "{line}"
    );
    assert!(told.stderr.contains("503"), "{}", told.stderr);
    let told = status(node, &["--output", "json"]).await;
    assert_eq!(told.code, 1, "{}", told.stdout);
    let said: Value = serde_json::from_str(&told.stdout).unwrap();
    assert!(
        said["store"]["trouble"].to_string().contains(part),
        "{said}"
    );
    // The node stays ready.
    let ready = status(node, &["--ready"]).await;
    assert_eq!(ready.code, 0, "{}", ready.stderr);
    assert!(
        ready.stdout.contains("ready, but") && ready.stdout.contains(part),
        "{}",
        ready.stdout
    );
    let (code, body) = node.readiness().await;
    assert_eq!(
        (code, &body["store"]["kind"]),
        (200, &json!("redis")),
        "{body}"
    );
    assert!(
        body["store"]["trouble"].to_string().contains(part),
        "{body}"
    );
    let nodes = console(node).await;
    let told = nodes
        .iter()
        .filter(|node| node["store_trouble"].to_string().contains(part));
    assert_eq!(told.count(), 2, "{nodes:?}");
}

async fn expect_none(node: &Server, cluster: &Cluster) {
    until(async || trouble(node).await.is_null()).await;
    until(async || opens(&cluster.edge).await == 200).await;
    let told = status(node, &[]).await;
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stdout.contains(": available\n"), "{}", told.stdout);
    let ready = status(node, &["--ready"]).await;
    assert_eq!((ready.code, ready.stdout.as_str()), (0, "ready\n"));
}

#[tokio::test]
async fn a_store_that_is_gone_is_told_of_on_every_page() {
    let (mut redis, store) = redis().await;
    let cluster = cluster(&store).await;
    for node in [&cluster.edge, &cluster.sessions] {
        expect_none(node, &cluster).await;
    }
    redis.kill().await.unwrap();
    until(async || opens(&cluster.edge).await == 503).await;
    for node in [&cluster.edge, &cluster.sessions] {
        expect_trouble(node, "Redis is away").await;
    }
}

#[tokio::test]
async fn a_store_that_takes_no_writes_is_told_of_until_it_does() {
    let (_redis, store) = redis().await;
    let cluster = cluster(&store).await;
    let address = store.strip_prefix("redis://").unwrap();
    let say = async |replicas: u8| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let command = format!("CONFIG SET min-replicas-to-write {replicas}\r\n");
        stream.write_all(command.as_bytes()).await.unwrap();
    };
    say(1).await;
    until(async || opens(&cluster.edge).await == 503).await;
    for node in [&cluster.edge, &cluster.sessions] {
        expect_trouble(node, "Redis takes no writes: ").await;
    }
    say(0).await;
    for node in [&cluster.edge, &cluster.sessions] {
        expect_none(node, &cluster).await;
    }
}

#[tokio::test]
async fn only_a_node_with_sessions_has_a_lease() {
    let (_redis, store) = redis().await;
    let cluster = cluster(&store).await;
    let lease = |told: &Output| {
        told.stdout
            .lines()
            .filter(|line| line.starts_with("lease "))
            .count()
    };
    assert_eq!(lease(&status(&cluster.edge, &[]).await), 0);
    assert_eq!(lease(&status(&cluster.sessions, &[]).await), 1);
    let status = cluster.edge.status().await;
    assert_eq!(status["cluster"]["lease"], Value::Null);
}
