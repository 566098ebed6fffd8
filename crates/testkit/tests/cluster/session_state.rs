use std::time::Duration;

use serde_json::json;
use shoal_testkit::cluster::{Cluster, Tools};
use shoal_testkit::redis_sentinel::{Newest, RedisSentinel};

use crate::client::Client;
use crate::session::owner;
use crate::{LEASE, small, start};

/// Two thirds of this lease, which the owner always has left, outlast a failover on a busy machine.
const OUTLIVES_FAILOVERS: Duration = Duration::from_secs(45);
const ORDERLY: Duration = Duration::from_secs(30);

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
    second.kill().await.unwrap();
    remember(&client, 1, "v").await;
    second.start_again().await.unwrap();
    first.kill().await.unwrap();
    assert_eq!(recall(&client, 2).await, "v");
}

/// The replica gets no writes after the session has remembered "old".
async fn with_lagging_replica(lease: Duration) -> (RedisSentinel, Cluster, Client) {
    let redis = RedisSentinel::start().await.unwrap();
    let builder = small().tools(Tools::Demo).store(&redis.url()).lease(lease);
    let cluster = start(builder.setting("session.passivate_after", "10m")).await;
    let client = Client::open(cluster.url()).await;
    remember(&client, 1, "old").await;
    redis.cut_replica_off().await.unwrap();
    (redis, cluster, client)
}

#[tokio::test]
async fn the_owner_writes_again_what_a_failover_lost_and_the_next_owner_finds_it() {
    let (redis, cluster, client) = with_lagging_replica(OUTLIVES_FAILOVERS).await;
    remember(&client, 2, "new").await;
    redis.fail_over(Newest::Lost).await.unwrap();
    assert_eq!(recall(&client, 3).await, "new");

    owner(&cluster).await.terminate(ORDERLY).await.unwrap();
    assert_eq!(recall(&client, 4).await, "new");
}

#[tokio::test]
async fn an_owner_whose_lease_lapses_in_a_failover_goes_back_to_what_the_replica_has() {
    let (redis, cluster, client) = with_lagging_replica(LEASE).await;
    remember(&client, 2, "new").await;
    let former = owner(&cluster).await;
    // While the owner is paused, its lease lapses.
    former.pause().await.unwrap();
    redis.fail_over(Newest::Lost).await.unwrap();
    assert_eq!(recall(&client, 3).await, "old");

    former.resume().await.unwrap();
    former.wait_until_ready(ORDERLY).await.unwrap();
    for edge in at_edges(&client, &cluster) {
        assert_eq!(recall(&edge, 4).await, "old");
    }
}
