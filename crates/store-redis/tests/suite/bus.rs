//! News across processes, and when some is missed.

use shoal_ports::{BusEvent, Lagged};
use shoal_protocol::RawJson;
use tokio::time::timeout;

use crate::fixture::{config, connect, eventually, node};
use crate::server::{IN_MEMORY, LONG_ENOUGH, Server};

fn news(n: usize) -> BusEvent {
    BusEvent::ResourceUpdated {
        uri: format!("test://{n}"),
        params: RawJson::from_static(r#"{"uri":"test://","unknown":1.0}"#),
    }
}

#[tokio::test]
async fn news_reaches_every_process_and_what_is_unknown_is_skipped() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = config(&server.url());
    let channel = format!("{}:{{nodes}}:news", config.key_prefix);
    let (_, here) = connect(config.clone()).await;
    let (_, there) = connect(config).await;
    let mut subscribed = there.bus.subscribe();
    here.bus.publish(news(1)).await.unwrap();
    for unknown in [r#"{"FromTheFuture":{"x":1}}"#, "nonsense"] {
        let heard: i64 = server.ask(&["PUBLISH", &channel, unknown]).await;
        assert_eq!(heard, 2);
    }
    let left = BusEvent::NodeLeft { node: node("a") };
    here.bus.publish(left.clone()).await.unwrap();
    for expected in [news(1), left] {
        let next = timeout(LONG_ENOUGH, subscribed.next()).await.unwrap();
        assert_eq!(next, Some(Ok(expected)));
    }
}

#[tokio::test]
async fn a_broken_connection_may_have_missed_something() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (redis, store) = connect(config(&server.url())).await;
    let mut subscribed = store.bus.subscribe();
    store.bus.publish(news(1)).await.unwrap();
    let next = timeout(LONG_ENOUGH, subscribed.next()).await.unwrap();
    assert_eq!(next, Some(Ok(news(1))));
    let killed: i64 = server.ask(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    assert_eq!(killed, 1);
    let next = timeout(LONG_ENOUGH, subscribed.next()).await.unwrap();
    assert_eq!(next, Some(Err(Lagged)));
    eventually("it listens again", || async { redis.status().news }).await;
    store.bus.publish(news(2)).await.unwrap();
    let next = timeout(LONG_ENOUGH, subscribed.next()).await.unwrap();
    assert_eq!(next, Some(Ok(news(2))));
}

#[tokio::test]
async fn a_subscriber_that_falls_behind_is_told() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (_, store) = connect(config(&server.url())).await;
    let (mut slow, mut quick) = (store.bus.subscribe(), store.bus.subscribe());
    for n in 0..1100 {
        store.bus.publish(news(n)).await.unwrap();
        let next = timeout(LONG_ENOUGH, quick.next()).await.unwrap();
        assert_eq!(next, Some(Ok(news(n))));
    }
    assert_eq!(slow.next().await, Some(Err(Lagged)));
    assert!(matches!(slow.next().await, Some(Ok(_))));
}
