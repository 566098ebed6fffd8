use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::client::{Client, within};
use crate::{small, start};

const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[tokio::test]
async fn a_call_whose_worker_is_killed_ends_with_one_honest_error() {
    let cluster = start(small()).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "long", "ms": 60_000 });
    let mut events = client.stream(1, "long", &arguments).await;
    events.primed().await;
    within(async {
        let ledger = cluster.ledger();
        while std::fs::read_to_string(&ledger)
            .unwrap_or_default()
            .is_empty()
        {
            sleep(LOOK_AGAIN).await;
        }
    })
    .await;
    cluster.workers()[0].kill().await.unwrap();
    let rest = events.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0]["error"]["code"], 50002, "{rest:?}");
}

#[tokio::test]
async fn a_call_that_is_safe_to_repeat_runs_again_elsewhere() {
    let cluster = start(small().workers(2)).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "again", "count": 30, "ms": 100 });
    let mut events = client.stream(1, "steps", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    let busy = async {
        loop {
            for worker in cluster.workers() {
                let status = worker.admin().status().await.unwrap();
                let pools = status["pools"].as_array().unwrap();
                let workers = pools
                    .iter()
                    .flat_map(|pool| pool["workers"].as_array().unwrap());
                if workers
                    .map(|worker| worker["running"].as_u64().unwrap())
                    .sum::<u64>()
                    > 0
                {
                    return worker;
                }
            }
            sleep(LOOK_AGAIN).await;
        }
    };
    within(busy).await.kill().await.unwrap();
    messages.extend(events.rest().await);
    let response = messages.last().unwrap();
    assert_eq!(crate::client::text_of(response), "again");
    let progress = crate::client::progress_of(&messages);
    assert!(
        progress.is_sorted_by(|one, next| one < next),
        "{progress:?}"
    );
}
