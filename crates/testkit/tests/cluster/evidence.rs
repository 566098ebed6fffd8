//! Some leases here outlast every wait of a test, so an early take-over needs evidence. The
//! session's epoch shows whether a take-over happened.

use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::cluster::{Builder, Cluster, Member};
use shoal_testkit::fault_proxy::Fault;
use tokio::time::Instant;

use crate::client::{Client, progress_of, text_of};
use crate::session::{outlives_its_owner, owner};
use crate::{LEASE, small, start};

const LONGER: Duration = Duration::from_secs(120);

fn patient() -> Builder {
    small().lease(LONGER)
}

pub(crate) async fn taken_over(cluster: &Cluster) -> u64 {
    let mut all = 0;
    for node in cluster.sessions() {
        let status: Value = node.admin().status().await.unwrap();
        all += status["sessions"]["taken_over"].as_u64().unwrap();
    }
    all
}

#[tokio::test]
async fn a_killed_owner_is_replaced_long_before_its_lease_ends() {
    let cluster = start(patient()).await;
    outlives_its_owner(&cluster).await;
}

#[tokio::test]
async fn a_killed_owner_is_replaced_over_tls_too() {
    let cluster = start(patient().tls()).await;
    outlives_its_owner(&cluster).await;
}

#[tokio::test]
async fn an_owner_that_is_started_again_where_it_was_is_another() {
    // With one session node, only the restarted process can take the sessions.
    let cluster = start(patient().sessions(1)).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 30, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    let node = cluster.sessions()[0];
    node.kill().await.unwrap();
    node.start_again().await.unwrap();
    messages.extend(events.rest().await);
    assert_eq!(progress_of(&messages), (1..=30).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "once");
}

#[tokio::test]
async fn a_stopped_owner_keeps_its_session_until_its_lease_ends() {
    let lease = LEASE * 2;
    let cluster = start(small().lease(lease).setting("cluster.silence", "500ms")).await;
    let client = Client::open(cluster.url()).await;
    client.echo_patiently(1).await;
    let paused = owner(&cluster).await;
    // At least two thirds of the lease remain.
    paused.pause().await.unwrap();
    let begun = Instant::now();
    client.echo_patiently(2).await;
    let waited = begun.elapsed();
    paused.resume().await.unwrap();
    assert!(waited >= lease / 2, "its lease lived: {waited:?}");
    for id in 3..8 {
        client.echo_patiently(id).await;
    }
}

async fn reset_again_and_again(cluster: &Cluster, owner: &Member, times: u32) {
    for _ in 0..times {
        for other in cluster.members() {
            if other.name() != owner.name() {
                cluster.between(owner, other, Fault::Cut);
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        cluster.heal();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn links_that_are_reset_again_and_again_cause_no_take_over() {
    let cluster = start(patient().fault_proxies()).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 60, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    let node = owner(&cluster).await;
    let calling = async {
        for id in 10..30 {
            client.echo_patiently(id).await;
        }
    };
    tokio::join!(reset_again_and_again(&cluster, node, 20), calling);
    messages.extend(events.rest().await);
    assert_eq!(progress_of(&messages), (1..=60).collect::<Vec<_>>());
    assert!(cluster.disturbed() > 0);
    assert_eq!(taken_over(&cluster).await, 0);
}

#[tokio::test]
async fn a_node_that_is_killed_over_and_over_loses_nothing() {
    let cluster = start(small()).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 100, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    for id in 0..4 {
        let node = owner(&cluster).await;
        node.kill().await.unwrap();
        client.echo_patiently(100 + id).await;
        node.start_again().await.unwrap();
    }
    messages.extend(events.rest().await);
    assert_eq!(progress_of(&messages), (1..=100).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "once");
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    assert_eq!(ledger.lines().count(), 1, "executed once: {ledger}");
}
