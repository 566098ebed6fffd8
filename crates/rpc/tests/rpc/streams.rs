use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{
    Delivered, EventStream, GatewayError, NodeId, Period, SessionGateway, StreamItem,
};
use shoal_rpc::{LinkConfig, RemoteGateway};

use crate::gateway::{edge, ping, session};
use crate::proxy::Proxy;
use crate::scripted_gateway::{Answer, Asked, event_id};
use crate::setting::{Node, config, until, within};

fn event(sequence: u64, bytes: usize) -> StreamItem {
    StreamItem::Event {
        id: event_id(sequence),
        data: Bytes::from(vec![b'1'; bytes]),
    }
}

async fn rest(stream: &mut EventStream) -> Vec<String> {
    let mut items = Vec::new();
    while let Some(item) = stream.items.recv().await {
        items.push(format!("{item:?}"));
    }
    items
}

#[tokio::test]
async fn every_item_arrives_in_order_up_to_the_end() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        let sent = [
            StreamItem::Prime { id: event_id(1) },
            event(2, 10),
            event(3, 300_000),
            event(4, 0),
            StreamItem::Passing {
                data: Bytes::from_static(b"{}"),
            },
            StreamItem::Retry(Duration::from_millis(20)),
            StreamItem::Moved,
        ];
        let items = node.routing.will_stream();
        for item in sent.clone() {
            items.send(item).await.unwrap();
        }
        drop(items);
        let delivered = edge.deliver(&session(), ping()).await.unwrap();
        let Delivered::Stream(mut stream) = delivered else {
            panic!("a stream");
        };
        assert_eq!(stream.cursor, event_id(0));
        let expected: Vec<String> = sent.iter().map(|item| format!("{item:?}")).collect();
        assert_eq!(rest(&mut stream).await, expected);
    })
    .await;
}

#[tokio::test]
async fn a_stream_is_resumed_from_its_cursor() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        let items = node.routing.will_stream();
        let stream = edge.listen(&session(), Some(event_id(41))).await.unwrap();
        let Asked::Listen(cursor) = node.routing.first().await else {
            panic!("a listener");
        };
        assert_eq!(cursor, Some(event_id(41)));
        drop(stream);
        items.closed().await;
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_has_moved() {
    within(async {
        let node = Node::start(config()).await;
        let proxy = Proxy::start(node.address).await;
        let edge = RemoteGateway::new(NodeId::new("e"), None, &proxy.address(), config());
        let items = node.routing.will_stream();
        let mut stream = edge.listen(&session(), None).await.unwrap();
        items.send(event(1, 5)).await.unwrap();
        let first = stream.items.recv().await.unwrap();
        assert!(matches!(first, StreamItem::Event { .. }));
        proxy.cut();
        assert!(matches!(stream.items.recv().await, Some(StreamItem::Moved)));
        assert!(stream.items.recv().await.is_none());
        items.closed().await;
    })
    .await;
}

#[tokio::test]
async fn a_node_that_is_stopped_is_noticed() {
    within(async {
        let node = Node::start(config()).await;
        let proxy = Proxy::start(node.address).await;
        let mut quick = config();
        quick.cluster.silence = Period::millis(100);
        let edge = RemoteGateway::new(NodeId::new("e"), None, &proxy.address(), quick);
        let _items = node.routing.will_stream();
        let mut stream = edge.listen(&session(), None).await.unwrap();
        node.routing.will(Answer::Never);
        proxy.freeze();
        let to = session();
        let (moved, waiting) = tokio::join!(stream.items.recv(), edge.deliver(&to, ping()));
        assert!(matches!(moved, Some(StreamItem::Moved)));
        assert!(matches!(waiting, Err(GatewayError::Unreachable { .. })));
    })
    .await;
}

#[tokio::test]
async fn a_node_that_leaves_moves_its_streams() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        let _items = node.routing.will_stream();
        let mut stream = edge.listen(&session(), None).await.unwrap();
        node.shutdown.cancel();
        assert!(matches!(stream.items.recv().await, Some(StreamItem::Moved)));
        assert!(stream.items.recv().await.is_none());
    })
    .await;
}

#[tokio::test]
async fn a_listener_that_does_not_read_stalls_only_itself() {
    within(async {
        let node = Node::start(config()).await;
        let address = node.address.to_string();
        let tight = LinkConfig {
            credit: 16 * 1024,
            ..config()
        };
        let edge = RemoteGateway::new(NodeId::new("e"), None, &address, tight);
        let slow_items = node.routing.will_stream();
        let mut slow = edge.listen(&session(), None).await.unwrap();
        for number in 0..1000 {
            slow_items.send(event(number, 1000)).await.unwrap();
        }
        let items = node.routing.will_stream();
        let mut quick = edge.listen(&session(), None).await.unwrap();
        for number in 0..500 {
            items.send(event(number, 1000)).await.unwrap();
        }
        drop(items);
        assert_eq!(rest(&mut quick).await.len(), 500);
        assert!(slow_items.room() < 9_200, "{}", slow_items.room());
        drop(slow_items);
        assert_eq!(rest(&mut slow).await.len(), 1000);
    })
    .await;
}

#[tokio::test]
async fn an_event_that_no_link_carries_ends_its_stream() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        let items = node.routing.will_stream();
        let mut stream = edge.listen(&session(), None).await.unwrap();
        items.send(event(1, 20 << 20)).await.unwrap();
        items.send(event(2, 1)).await.unwrap();
        assert!(rest(&mut stream).await.is_empty());
        until(|| items.is_closed()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_share_a_link() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        let mut streams = Vec::new();
        for _ in 0..200 {
            let items = node.routing.will_stream();
            let stream = edge.listen(&session(), None).await.unwrap();
            streams.push((items, stream));
        }
        assert_eq!(node.links.connected(), 1);
        for round in 0..20 {
            for (items, _) in &streams {
                items.send(event(round, 100)).await.unwrap();
            }
        }
        for (items, mut stream) in streams {
            drop(items);
            assert_eq!(rest(&mut stream).await.len(), 20);
        }
    })
    .await;
}
