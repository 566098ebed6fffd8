//! Real Redis servers, restarted, stopped, filled.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

use std::time::Duration;

use shoal_testkit::redis::{Data, Redis};
use shoal_testkit::redis_cluster::RedisCluster;
use tokio::time::timeout;

async fn get(redis: &Redis, key: &str) -> String {
    redis.command(&["GET", key]).await.unwrap()
}

#[tokio::test]
async fn data_outlives_a_crash_unless_it_is_not_to() {
    let redis = Redis::start().await.unwrap();
    redis.command(&["SET", "key", "value"]).await.unwrap();
    redis.kill().await.unwrap();
    assert!(redis.command(&["PING"]).await.is_err());
    redis.start_again(Data::Kept).await.unwrap();
    assert_eq!(get(&redis, "key").await, "value");
    redis.kill().await.unwrap();
    redis.start_again(Data::Lost).await.unwrap();
    assert_eq!(get(&redis, "key").await, "");
}

#[tokio::test]
async fn a_stopped_server_is_silent_and_goes_on() {
    let redis = Redis::start().await.unwrap();
    redis.pause().await.unwrap();
    let asked = timeout(Duration::from_millis(200), redis.command(&["PING"])).await;
    assert!(asked.is_err(), "{asked:?}");
    redis.resume().await.unwrap();
    assert_eq!(redis.command(&["PING"]).await.unwrap(), "PONG");
}

#[tokio::test]
async fn a_full_server_refuses_to_write() {
    let redis = Redis::start().await.unwrap();
    redis.limit_memory(1).await.unwrap();
    let refused = redis.command(&["SET", "key", "value"]).await.unwrap_err();
    assert!(refused.to_string().starts_with("OOM"), "{refused}");
    redis.limit_memory(0).await.unwrap();
    redis.command(&["SET", "key", "value"]).await.unwrap();
}

#[tokio::test]
async fn three_servers_share_the_keys() {
    let cluster = RedisCluster::start().await.unwrap();
    let (mut own, mut elsewhere) = (0, 0);
    for node in cluster.nodes() {
        match node.command(&["SET", "key", "value"]).await {
            Ok(_) => own += 1,
            Err(error) => {
                assert!(error.to_string().starts_with("MOVED"), "{error}");
                elsewhere += 1;
            }
        }
    }
    assert_eq!((own, elsewhere), (1, 2));
}
