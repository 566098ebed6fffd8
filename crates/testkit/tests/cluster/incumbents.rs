use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::cluster::{Cluster, Member};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::client::{modern_call, within};
use crate::{small, start};

const FIRST: &str = "of-the-first";
const OTHER: &str = "of-the-other";

async fn call(edge: &Member) -> reqwest::Result<String> {
    let arguments = json!({ "nonce": FIRST, "text": OTHER });
    modern_call(edge.mcp_url().unwrap(), "echo", &arguments).await
}

async fn conflicts(edge: &Member) -> Vec<Value> {
    let status = edge.admin().status().await.unwrap_or_default();
    let conflicts = status["conflicts"].as_array();
    conflicts.cloned().unwrap_or_default()
}

async fn agreed(cluster: &Cluster) -> bool {
    let redis = cluster.redis().unwrap().address();
    let mut redis = TcpStream::connect(redis).await.unwrap();
    let question = b"HEXISTS shoal:{nodes}:names \"tool: echo\"\r\n";
    redis.write_all(question).await.unwrap();
    let mut answer = [0; 16];
    let length = within(redis.read(&mut answer)).await.unwrap();
    answer[..length].starts_with(b":1")
}

#[tokio::test]
async fn who_comes_later_gets_no_call_at_any_edge_whenever_that_was_started() {
    let cluster = start(small().workers(2)).await;
    let edges = cluster.edges();
    let newcomer = cluster.workers()[1];
    // A choice by name would prefer the newcomer's pool.
    newcomer.set("pools.aaa.backend", "demo");
    newcomer.kill().await.unwrap();
    newcomer.start_again().await.unwrap();
    within(async {
        while conflicts(edges[0]).await.is_empty() || !agreed(&cluster).await {
            let answer = call(edges[0]).await.unwrap();
            assert!(!answer.contains(OTHER), "{answer}");
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    edges[0].kill().await.unwrap();
    edges[0].start_again().await.unwrap();
    within(async {
        while conflicts(edges[0]).await.is_empty() {
            // The edge may be down or know no pools yet.
            let answer = call(edges[0]).await.unwrap_or_default();
            assert!(!answer.contains(OTHER), "{answer}");
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    for edge in edges {
        let answer = call(edge).await.unwrap();
        assert!(answer.contains(FIRST), "{}: {answer}", edge.name());
    }
    cluster.end().await;
}
