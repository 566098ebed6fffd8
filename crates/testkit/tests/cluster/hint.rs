use serde_json::json;
use shoal_testkit::cluster::{Cluster, Member};

use crate::client::{Client, within};
use crate::session::owner;
use crate::{LEASE, small, start};

const LOOKUPS: &str = "shoal_store_operation_duration_seconds_count";

async fn lookups(cluster: &Cluster) -> u64 {
    let mut count = 0.0;
    let [edges, sessions] = [cluster.edges(), cluster.sessions()];
    let mut nodes: Vec<&Member> = edges.into_iter().chain(sessions).collect();
    nodes.sort_by_key(|node| node.name());
    nodes.dedup_by_key(|node| node.name());
    for node in nodes {
        let asked = node.admin().metric(LOOKUPS, "\"directory.lookup\"");
        count += asked.await.unwrap();
    }
    count as u64
}

async fn held(node: &Member) -> u64 {
    let status = node.admin().status().await.unwrap();
    let held = |what: &str| status["sessions"][what].as_u64().unwrap();
    held("live") + held("passive")
}

#[tokio::test]
async fn a_combined_node_keeps_what_it_opens_and_others_find_it_without_the_store() {
    let cluster = start(small().combined(3)).await;
    let nodes = cluster.edges();
    for (at, node) in nodes.iter().enumerate() {
        for more in 1..=4 {
            let client = Client::open(node.mcp_url().unwrap()).await;
            assert_eq!(held(node).await, more, "{}", node.name());
            let elsewhere = nodes[(at + 1) % nodes.len()].mcp_url().unwrap();
            client.echo_patiently(1).await;
            client.at(elsewhere).echo_patiently(2).await;
        }
    }
    assert_eq!(lookups(&cluster).await, 0);
}

#[tokio::test]
async fn a_cold_edge_reaches_the_owner_without_the_store() {
    let cluster = start(small()).await;
    let [first, second] = cluster.edges()[..] else {
        panic!("two edges")
    };
    for _ in 0..4 {
        let client = Client::open(first.mcp_url().unwrap()).await;
        client.at(second.mcp_url().unwrap()).echo_patiently(1).await;
        client.echo_patiently(2).await;
    }
    assert_eq!(lookups(&cluster).await, 0);
    let client = Client::open(first.mcp_url().unwrap()).await;
    let (random, tag) = client.session().split_once('-').unwrap();
    for (looks, forged) in [
        (
            1,
            format!("{}-{tag}", random.chars().rev().collect::<String>()),
        ),
        (
            2,
            format!("{random}-{:08x}", !u32::from_str_radix(tag, 16).unwrap()),
        ),
        (3, format!("{random}{tag}")),
    ] {
        let forged = client
            .with_session(&forged)
            .call(3, "echo", &json!({ "nonce": "n" }))
            .await;
        assert_eq!(forged.status, 404, "{forged:?}");
        assert_eq!(
            lookups(&cluster).await,
            looks,
            "the store says so, asked once"
        );
    }
    client.echo_patiently(4).await;
}

#[tokio::test]
async fn a_hint_to_a_node_that_has_left_is_none() {
    let cluster = start(small()).await;
    let client = Client::open(cluster.edges()[0].mcp_url().unwrap()).await;
    let left = owner(&cluster).await;
    left.terminate(LEASE * 10).await.unwrap();
    let cold = client.at(cluster.edges()[1].mcp_url().unwrap());
    cold.echo_patiently(1).await;
    client.echo_patiently(2).await;
    left.start_again().await.unwrap();
    left.wait_until_ready(LEASE * 10).await.unwrap();
    cold.echo_patiently(3).await;
}

#[tokio::test]
async fn sessions_of_a_release_without_hints_go_on() {
    let cluster = start(small()).await;
    let client = Client::open(cluster.edges()[0].mcp_url().unwrap()).await;
    let owned_by = owner(&cluster).await;
    owned_by.terminate(LEASE * 10).await.unwrap();
    // An older release's id has no hint.
    let redis = cluster.redis().unwrap();
    let (plain, _) = client.session().split_once('-').unwrap();
    let key = |id: &str| format!("shoal:{{{id}}}:s");
    let (before, after) = (key(client.session()), key(plain));
    let renamed = redis.command(&["RENAME", &before, &after]).await;
    assert_eq!(renamed.unwrap(), "OK");
    owned_by.start_again().await.unwrap();
    let old = client.with_session(plain);
    for edge in cluster.edges() {
        within(old.at(edge.mcp_url().unwrap()).echo_patiently(1)).await;
    }
}
