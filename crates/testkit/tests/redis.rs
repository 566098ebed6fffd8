//! Real Redis servers that are restarted, stopped and filled.

#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

use std::time::Duration;

use shoal_testkit::redis::{Data, Redis};
use shoal_testkit::redis_cluster::RedisCluster;
use shoal_testkit::redis_sentinel::{Newest, RedisSentinel};
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
async fn a_server_whose_disk_is_full_refuses_to_write_until_there_is_room() {
    let redis = Redis::start().await.unwrap();
    redis.command(&["SET", "key", "value"]).await.unwrap();
    redis.fill_disk().await.unwrap();
    let refused = redis.command(&["SET", "key", "other"]).await.unwrap_err();
    assert!(refused.to_string().starts_with("MISCONF"), "{refused}");
    assert_eq!(get(&redis, "key").await, "value");
    redis.free_disk().await.unwrap();
    redis.command(&["SET", "key", "new"]).await.unwrap();
    redis.kill().await.unwrap();
    redis.start_again(Data::Kept).await.unwrap();
    assert_eq!(get(&redis, "key").await, "new");
}

#[tokio::test]
async fn sentinel_fails_over_again_and_again() {
    let redis = RedisSentinel::start().await.unwrap();
    for (newest, left) in [
        (Newest::Lost, ""),
        (Newest::Kept, "1"),
        (Newest::Lost, ""),
        (Newest::Kept, "1"),
    ] {
        let before = redis.master().address();
        if newest == Newest::Lost {
            redis.master().command(&["DEL", "key"]).await.unwrap();
            redis.cut_replica_off().await.unwrap();
        }
        redis.master().command(&["SET", "key", "1"]).await.unwrap();
        redis.fail_over(newest).await.unwrap();
        redis.bring_back().await.unwrap();
        assert_ne!(redis.master().address(), before);
        assert_eq!(get(redis.master(), "key").await, left, "{newest:?}");
    }
}

#[tokio::test]
async fn replicas_of_a_cluster_take_their_masters_places() {
    let cluster = RedisCluster::start().await.unwrap();
    let addresses = async || {
        let masters = cluster.masters().await.unwrap();
        assert_eq!(masters.len(), 3, "{masters:?}");
        masters.iter().map(|m| m.address()).collect::<Vec<_>>()
    };
    let before = addresses().await;
    cluster
        .fail_over(cluster.masters().await.unwrap()[0])
        .await
        .unwrap();
    let between = addresses().await;
    assert_ne!(before, between);
    cluster
        .lose(cluster.masters().await.unwrap()[0])
        .await
        .unwrap();
    assert_ne!(between, addresses().await);
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
    assert_eq!((own, elsewhere), (1, 5));
}
