//! Members that leave in order.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::client::{Client, progress_of, text_of};
use crate::{small, start};

const ORDERLY: Duration = Duration::from_secs(30);

#[tokio::test]
async fn draining_session_nodes_hand_over_without_waiting_for_a_lease() {
    // A lease that nobody waits for within a test.
    let cluster = start(small().lease(Duration::from_secs(600))).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 60, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    for node in cluster.sessions() {
        node.terminate(ORDERLY).await.unwrap();
        client.echo_patiently(2).await;
        node.start_again().await.unwrap();
    }
    messages.extend(events.rest().await);
    assert_eq!(progress_of(&messages), (1..=60).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "once");
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    assert_eq!(ledger.lines().count(), 1, "executed once: {ledger}");
}

#[tokio::test]
async fn a_draining_worker_finishes_its_calls() {
    let cluster = start(small().workers(2)).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 20, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    for worker in cluster.workers() {
        worker.terminate(ORDERLY).await.unwrap();
        worker.start_again().await.unwrap();
    }
    messages.extend(events.rest().await);
    assert_eq!(progress_of(&messages), (1..=20).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "once");
    client.echo_patiently(2).await;
}

#[tokio::test]
async fn a_draining_worker_stays_within_reach_of_a_sessions_next_owner() {
    let cluster = start(small().lease(Duration::from_secs(600))).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 60, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    let mut owner = None;
    for node in cluster.sessions() {
        let status = node.admin().status().await.unwrap();
        if status["sessions"]["live"] == 1 {
            owner = Some(node);
        }
    }
    let owner = owner.unwrap();
    let handed_over = async {
        // The other node has seen that the worker leaves.
        sleep(Duration::from_millis(500)).await;
        owner.terminate(ORDERLY).await
    };
    let workers = cluster.workers();
    let (worker, session) = tokio::join!(workers[0].terminate(ORDERLY), handed_over);
    assert!(worker.unwrap().success() && session.unwrap().success());
    messages.extend(events.rest().await);
    assert_eq!(progress_of(&messages), (1..=60).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "once");
}
