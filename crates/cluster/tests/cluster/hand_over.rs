use std::time::Duration;

use shoal_cluster::RoutingConfig;
use shoal_ports::GatewayError;
use tokio::time::Instant;

use crate::test_cluster::{Death, LEASE, Reply, TestCluster, waiting};

#[tokio::test(start_paused = true)]
async fn a_drained_nodes_sessions_are_taken_at_once() {
    let cluster = TestCluster::new();
    let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    edge.answer(&to).await.unwrap();
    a.drain().await;
    let begun = Instant::now();
    assert_eq!(edge.answer(&to).await.unwrap(), "b");
    assert!(begun.elapsed() < LEASE / 3, "{:?}", begun.elapsed());
    assert_eq!(edge.routed.status().routing.redelivered, 0);
    a.joined().members.leave().await;
    edge.sees(2).await;
    assert_eq!(edge.answer(&to).await.unwrap(), "b");
}

#[tokio::test(start_paused = true)]
async fn sessions_that_a_leaving_node_keeps_are_taken_when_it_has_left() {
    let cluster = TestCluster::new();
    let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    edge.answer(&to).await.unwrap();
    for _ in 0..10 {
        a.then(Reply::Error(GatewayError::Moved { owner: None }));
    }
    let leaving = tokio::spawn({
        let a = a.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            a.joined().members.leave().await;
        }
    });
    let begun = Instant::now();
    assert_eq!(edge.answer(&to).await.unwrap(), "b");
    assert!(begun.elapsed() < LEASE, "nobody waited for the lease");
    leaving.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_draining_node_passes_its_own_clients_on() {
    let cluster = TestCluster::new();
    let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
    a.joined().sees(2).await;
    let to = cluster.session(&a).await;
    assert_eq!(a.joined().answer(&to).await.unwrap(), "a");
    a.drain().await;
    assert_eq!(a.joined().answer(&to).await.unwrap(), "b");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_hears_soon_that_a_node_has_gone() {
    let hour = Duration::from_secs(3600);
    for tenths in 0..10 {
        let cluster = TestCluster::with(RoutingConfig {
            resolve_every: hour,
            resolve_at_most: hour,
            ..waiting(hour * 2)
        });
        let leased = Instant::now();
        let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
        tokio::time::sleep(Duration::from_millis(100) * tenths).await;
        let edge = cluster.edge("e").await;
        let to = cluster.session(&a).await;
        edge.answer(&to).await.unwrap();
        a.die_by(Death::Unrouted);
        assert_eq!(edge.answer(&to).await.unwrap(), "b");
        let waited = leased.elapsed();
        assert!(waited < LEASE + Duration::from_millis(300), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_left_is_not_asked_any_more() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    edge.answer(&to).await.unwrap();
    a.joined().members.leave().await;
    edge.sees(2).await;
    assert_eq!(edge.answer(&to).await.unwrap(), "b");
    assert_eq!(a.posts().len(), 1);
    assert!(!b.posts()[0].1);
}
