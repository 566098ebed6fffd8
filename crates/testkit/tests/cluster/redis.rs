use serde_json::json;
use shoal_testkit::redis::Data;

use crate::client::{Client, progress_of, text_of};
use crate::{LEASE, journaling, small, start};

#[tokio::test]
async fn while_redis_is_away_live_sessions_serve_what_needs_no_store() {
    let cluster = start(journaling()).await;
    let client = Client::open(cluster.url()).await;
    // Makes both edges learn the owner.
    for id in 10..14 {
        client.echo_patiently(id).await;
    }
    let arguments = json!({ "nonce": "waits", "count": 30, "ms": 100 });
    let mut running = client.stream(2, "steps_once", &arguments).await;
    let mut messages = vec![running.next().await.unwrap()];
    let redis = cluster.redis().unwrap();
    redis.kill().await.unwrap();

    let echo = client.call(3, "echo", &json!({ "nonce": "n" })).await;
    assert_eq!(echo.status, 200, "{echo:?}");
    let record = client
        .call(4, "record", &json!({ "nonce": "no", "ms": 0 }))
        .await;
    assert_eq!(record.status, 503, "{record:?}");
    assert!(record.retry_after.is_some(), "{record:?}");
    assert_eq!(record.body["error"]["code"], 50301, "{record:?}");
    tokio::time::sleep(LEASE * 2).await;
    let echo = client.call(5, "echo", &json!({ "nonce": "n" })).await;
    assert_eq!(echo.status, 200, "{echo:?}");

    redis.start_again(Data::Kept).await.unwrap();
    messages.extend(running.rest().await);
    assert_eq!(progress_of(&messages), (1..=30).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "waits");
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    assert_eq!(
        ledger.lines().count(),
        1,
        "the refused call did not run: {ledger}"
    );
}

#[tokio::test]
async fn a_redis_that_hangs_is_as_good_as_away() {
    let cluster = start(journaling()).await;
    let client = Client::open(cluster.url()).await;
    // Makes both edges learn the owner.
    for id in 10..14 {
        client.echo_patiently(id).await;
    }
    let redis = cluster.redis().unwrap();
    redis.pause().await.unwrap();
    let echo = client.call(1, "echo", &json!({ "nonce": "n" })).await;
    assert_eq!(echo.status, 200, "{echo:?}");
    let record = client
        .call(2, "record", &json!({ "nonce": "no", "ms": 0 }))
        .await;
    assert!(
        record.status == 503 || record.body["error"]["code"] == 50002,
        "{record:?}"
    );
    redis.resume().await.unwrap();
    client.echo_patiently(3).await;
}

#[tokio::test]
async fn when_redis_has_lost_its_data_clients_are_told() {
    let cluster = start(small()).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "n", "count": 2, "ms": 10 });
    let mut running = client.stream(1, "steps_once", &arguments).await;
    running.rest().await;
    let redis = cluster.redis().unwrap();
    redis.kill().await.unwrap();
    redis.start_again(Data::Lost).await.unwrap();
    let told = async {
        while client
            .call(2, "record", &json!({ "nonce": "m", "ms": 0 }))
            .await
            .status
            != 404
        {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    crate::client::within(told).await;
    let status = client.resume_status(&running.last_id).await;
    assert_eq!(status, 404);
    let again = Client::open(cluster.url()).await;
    again.echo_patiently(1).await;
}

#[tokio::test]
async fn a_full_redis_refuses_what_is_new_and_lets_end_what_runs() {
    let cluster = start(journaling()).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "ends", "count": 20, "ms": 100 });
    let mut running = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![running.next().await.unwrap()];
    let redis = cluster.redis().unwrap();
    redis.limit_memory(1).await.unwrap();
    let record = client
        .call(2, "record", &json!({ "nonce": "no", "ms": 0 }))
        .await;
    assert_eq!(record.status, 503, "{record:?}");
    assert_eq!(record.body["error"]["code"], 50300, "{record:?}");
    let echo = client.call(3, "echo", &json!({ "nonce": "n" })).await;
    assert_eq!(echo.status, 200, "{echo:?}");
    messages.extend(running.rest().await);
    assert_eq!(progress_of(&messages), (1..=20).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "ends");
    redis.limit_memory(0).await.unwrap();
    let mut again = client.stream(4, "steps_once", &arguments).await;
    assert_eq!(text_of(again.rest().await.last().unwrap()), "ends");
}
