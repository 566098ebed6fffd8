use shoal_ports::{ClusterEvent, Lagged};
use tokio::time::timeout;

use crate::fixture::{config, connect, eventually, node};
use crate::server::{IN_MEMORY, LONG_ENOUGH, Server};

fn event(n: usize) -> ClusterEvent {
    ClusterEvent::NodeLeft {
        node: node(&format!("n{n}")),
    }
}

#[tokio::test]
async fn events_reach_every_process_and_what_is_unknown_is_skipped() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = config(&server.url());
    let channel = format!("{}:{{nodes}}:news", config.redis.prefix);
    let (_, here) = connect(config.clone()).await;
    let (_, there) = connect(config).await;
    let mut subscribed = there.bus.subscribe();
    here.bus.publish(event(1)).await.unwrap();
    for unknown in [r#"{"FromTheFuture":{"x":1}}"#, "nonsense"] {
        let heard: i64 = server.ask(&["PUBLISH", &channel, unknown]).await;
        assert_eq!(heard, 2);
    }
    let left = ClusterEvent::NodeLeft { node: node("a") };
    here.bus.publish(left.clone()).await.unwrap();
    for expected in [event(1), left] {
        let next = timeout(LONG_ENOUGH, subscribed.next()).await.unwrap();
        assert_eq!(next, Some(Ok(expected)));
    }
}

#[tokio::test]
async fn a_broken_connection_may_have_missed_something() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (redis, store) = connect(config(&server.url())).await;
    let mut subscribed = store.bus.subscribe();
    store.bus.publish(event(1)).await.unwrap();
    let next = timeout(LONG_ENOUGH, subscribed.next()).await.unwrap();
    assert_eq!(next, Some(Ok(event(1))));
    let killed: i64 = server.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    assert_eq!(killed, 1);
    let next = timeout(LONG_ENOUGH, subscribed.next()).await.unwrap();
    assert_eq!(next, Some(Err(Lagged)));
    eventually("it listens again", || async { redis.status().news }).await;
    store.bus.publish(event(2)).await.unwrap();
    let next = timeout(LONG_ENOUGH, subscribed.next()).await.unwrap();
    assert_eq!(next, Some(Ok(event(2))));
}

#[tokio::test]
async fn a_subscriber_that_falls_behind_is_told() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (_, store) = connect(config(&server.url())).await;
    let (mut slow, mut quick) = (store.bus.subscribe(), store.bus.subscribe());
    for n in 0..1100 {
        store.bus.publish(event(n)).await.unwrap();
        let next = timeout(LONG_ENOUGH, quick.next()).await.unwrap();
        assert_eq!(next, Some(Ok(event(n))));
    }
    assert_eq!(slow.next().await, Some(Err(Lagged)));
    assert!(matches!(slow.next().await, Some(Ok(_))));
}
