use bytes::Bytes;
use shoal_ports::{Delivered, GatewayError, SessionGateway as _};

use crate::streams::{read, read_to_end};
use crate::test_cluster::{LEASE, Reply, TestCluster, post};

#[tokio::test(start_paused = true)]
async fn a_cut_way_is_gone_around() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    b.joined().sees(2).await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    edge.answer(&to).await.unwrap();
    cluster.cut("e", "a");
    let begun = tokio::time::Instant::now();
    assert_eq!(edge.answer(&to).await.unwrap(), "a");
    assert!(begun.elapsed() < LEASE, "nobody waited for the lease");
    let (_, repeated) = a.posts()[1];
    assert!(repeated, "the first attempt may have arrived");
    assert_eq!(edge.answer(&to).await.unwrap(), "a");
    let (_, repeated) = a.posts()[2];
    assert!(!repeated, "the broken way was not tried again so soon");
    assert!(b.posts().is_empty());
    assert_eq!(edge.routed.status().routing.relayed, 2);
    assert!(!unreachable_nodes(&edge).is_empty());

    cluster.mend();
    tokio::time::sleep(LEASE).await;
    assert_eq!(edge.answer(&to).await.unwrap(), "a");
    assert_eq!(edge.routed.status().routing.relayed, 2);
    assert!(unreachable_nodes(&edge).is_empty());
}

fn unreachable_nodes(edge: &crate::test_cluster::TestNode) -> Vec<String> {
    let nodes = edge.routed.status().nodes.into_iter();
    nodes
        .filter(|node| !node.reachable)
        .map(|node| node.info.id.to_string())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn there_is_one_hop_only() {
    let cluster = TestCluster::new();
    let (a, b, c) = (
        cluster.node("a").await,
        cluster.node("b").await,
        cluster.node("c").await,
    );
    b.joined().sees(3).await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    edge.answer(&to).await.unwrap();
    cluster.cut("e", "a");
    cluster.cut("b", "a");
    for _ in 0..10 {
        assert_eq!(edge.answer(&to).await.unwrap(), "a", "by way of c");
    }
    assert_eq!(b.joined().routed.status().routing.relayed, 0);
    assert!(b.posts().is_empty() && c.posts().is_empty());
}

#[tokio::test(start_paused = true)]
async fn streams_come_by_the_same_way() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    b.joined().sees(2).await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    cluster.cut("e", "a");
    a.then(Reply::Stream);
    let Delivered::Stream(mut stream) = edge.routed.deliver(&to, post()).await.unwrap() else {
        panic!("a stream")
    };
    cluster.log.append(3);
    assert_eq!(read(&mut stream, 3).await, [1, 2, 3]);
    a.drop_readers();
    cluster.log.append(2);
    cluster.log.finish();
    assert_eq!(read_to_end(&mut stream).await, [4, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_node_in_between_follows_one_hint_and_waits_for_nothing() {
    let cluster = TestCluster::new();
    let (a, b, c) = (
        cluster.node("a").await,
        cluster.node("b").await,
        cluster.node("c").await,
    );
    b.joined().sees(3).await;
    let to = cluster.session(&a).await;
    b.joined().answer(&to).await.unwrap();
    a.release().await;
    let claim = cluster.store.directory.claim(&to.session, &c.id).await;
    let epoch = claim.unwrap().epoch;
    let relay = b.joined().routed.relay();
    let relayed = relay.deliver(&to, post()).await.unwrap();
    assert!(matches!(relayed, Delivered::Json(by) if by == "c"));

    c.die();
    let error = relay.deliver(&to, post()).await.unwrap_err();
    assert!(matches!(error, GatewayError::Unreachable { .. }), "{error}");
    let directory = &cluster.store.directory;
    let released = directory.release(&to.session, epoch, Bytes::new(), LEASE * 9);
    released.await.unwrap();
    tokio::time::sleep(LEASE * 3).await;
    let error = relay.deliver(&to, post()).await.unwrap_err();
    let nobody = GatewayError::Moved { owner: None };
    assert_eq!(error, nobody, "whoever asked decides who takes it");
    let claim = cluster.store.directory.claim(&to.session, &a.id);
    claim.await.unwrap();
    let relayed = relay.deliver(&to, post()).await.unwrap();
    assert!(matches!(relayed, Delivered::Json(by) if by == "a"));
}
