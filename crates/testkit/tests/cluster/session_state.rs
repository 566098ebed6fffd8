//! What tools keep in a session, when nodes and workers are lost.

use serde_json::json;
use shoal_testkit::cluster::{Cluster, Tools};

use crate::client::Client;
use crate::session::owner;
use crate::{small, start};

async fn remember(client: &Client, id: u64, value: &str) {
    let arguments = json!({ "key": "k", "value": value });
    let said = client.text(id, "remember", &arguments).await;
    assert_eq!(said, "remembered k");
}

async fn recall(client: &Client, id: u64) -> String {
    client.text(id, "recall", &json!({ "key": "k" })).await
}

fn at_edges(client: &Client, cluster: &Cluster) -> [Client; 2] {
    let [first, second] = cluster.edges()[..] else {
        panic!("two edges")
    };
    [first, second].map(|edge| client.at(edge.mcp_url().unwrap()))
}

#[tokio::test]
async fn what_is_remembered_at_one_edge_is_recalled_at_another_after_its_owner_was_killed() {
    let cluster = start(small().tools(Tools::Demo)).await;
    let client = Client::open(cluster.url()).await;
    let [first, second] = at_edges(&client, &cluster);
    remember(&first, 1, "before").await;
    assert_eq!(recall(&second, 2).await, "before");
    remember(&second, 3, "v").await;
    owner(&cluster).await.kill().await.unwrap();
    assert_eq!(recall(&second, 4).await, "v");
    assert_eq!(recall(&first, 5).await, "v");
    remember(&first, 6, "after").await;
    assert_eq!(recall(&second, 7).await, "after");
    // Nobody else sees it.
    let stranger = Client::open(second.url()).await;
    assert_eq!(recall(&stranger, 1).await, "nothing is remembered by k");
}

#[tokio::test]
async fn what_one_worker_remembers_another_recalls() {
    let cluster = start(small().workers(2).tools(Tools::Demo)).await;
    let client = Client::open(cluster.url()).await;
    let [first, second] = cluster.workers()[..] else {
        panic!("two workers")
    };
    // Only one of them is there at a time.
    second.kill().await.unwrap();
    remember(&client, 1, "v").await;
    second.start_again().await.unwrap();
    first.kill().await.unwrap();
    assert_eq!(recall(&client, 2).await, "v");
}
