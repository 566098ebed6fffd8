use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use shoal_cluster::{NodeLoad, Ownership};
use shoal_ports::{ClusterEvent, StoreError};
use tokio::sync::Notify;

use crate::test_cluster::{LEASE, TestCluster};

#[derive(Default)]
struct Revalidations {
    count: AtomicUsize,
    fail: AtomicUsize,
    called: Notify,
}

#[async_trait]
impl Ownership for Revalidations {
    async fn revalidate(&self) -> Result<(), StoreError> {
        let fails = self
            .fail
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        if fails.is_ok() {
            return Err(StoreError::Unavailable("not yet".to_owned()));
        }
        self.count.fetch_add(1, Ordering::SeqCst);
        self.called.notify_one();
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_kept_and_ended() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let to = cluster.session(&a).await;
    tokio::time::sleep(LEASE * 20).await;
    let lease = a.joined().members.lease();
    assert!(lease.held && lease.lapses == 0, "{lease:?}");
    assert_eq!(cluster.owner(&to).await, Some(a.id.clone()));
    a.joined().members.leave().await;
    assert_eq!(cluster.owner(&to).await, None);
    assert!(!a.joined().members.lease().held);
    tokio::time::sleep(LEASE).await;
    assert_eq!(cluster.owner(&to).await, None, "and not begun anew");
}

#[tokio::test(start_paused = true)]
async fn a_lapse_has_ownership_revalidated() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let ownership = Arc::new(Revalidations::default());
    a.joined().members.guard(ownership.clone());
    a.joined().access.set_away(true);
    tokio::time::sleep(LEASE / 2).await;
    a.joined().access.set_away(false);
    tokio::time::sleep(LEASE).await;
    assert_eq!(ownership.count.load(Ordering::SeqCst), 0, "a short break");

    ownership.fail.store(3, Ordering::SeqCst);
    a.joined().access.set_away(true);
    tokio::time::sleep(LEASE * 2).await;
    assert!(!a.joined().members.lease().held, "by its own clock");
    a.joined().access.set_away(false);
    ownership.called.notified().await;
    assert_eq!(a.joined().members.lease().lapses, 1);
    assert_eq!(ownership.count.load(Ordering::SeqCst), 1);

    tokio::time::sleep(LEASE / 2).await;
    assert_eq!(ownership.count.load(Ordering::SeqCst), 1);
    tokio::time::sleep(LEASE).await;
    assert_eq!(ownership.count.load(Ordering::SeqCst), 2, "once more");
    tokio::time::sleep(LEASE * 3).await;
    assert_eq!(ownership.count.load(Ordering::SeqCst), 2, "and not again");
}

#[tokio::test(start_paused = true)]
async fn nodes_come_and_go() {
    let cluster = TestCluster::new();
    let edge = cluster.edge("e").await;
    let a = cluster.node("a").await;
    edge.sees(2).await;
    let b = cluster.node("b").await;
    edge.sees(3).await;
    a.die();
    edge.sees(2).await;
    let status = edge.routed.status();
    let a = status
        .nodes
        .iter()
        .find(|node| node.info.id.as_str() == "a")
        .unwrap();
    assert!(!a.present, "it may still be an owner");
    let begun = tokio::time::Instant::now();
    b.joined().members.leave().await;
    edge.sees(1).await;
    let waited = begun.elapsed();
    assert!(
        waited < Duration::from_millis(500),
        "the bus said so: {waited:?}"
    );
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(edge.routed.status().nodes.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_a_store_has_forgotten_are_back_before_they_are_dropped() {
    let cluster = TestCluster::new();
    let (a, edge) = (cluster.node("a").await, cluster.edge("e").await);
    let to = cluster.session(&a).await;
    edge.answer(&to).await.unwrap();
    cluster.store.membership.withdraw(&a.id).await.unwrap();
    edge.sees(1).await;
    assert_eq!(edge.answer(&to).await.unwrap(), "a");
    edge.sees(2).await;
}

#[tokio::test(start_paused = true)]
async fn load_and_draining_are_announced() {
    let cluster = TestCluster::new();
    let (a, edge) = (cluster.node("a").await, cluster.edge("e").await);
    a.joined().members.report_load(|| NodeLoad {
        sessions: 7,
        in_flight: 2,
    });
    tokio::time::sleep(LEASE).await;
    let status = |id: &str| {
        let nodes = edge.routed.status().nodes;
        nodes
            .into_iter()
            .find(|node| node.info.id.as_str() == id)
            .unwrap()
    };
    let seen = status("a");
    assert_eq!((seen.info.sessions, seen.info.in_flight), (7, 2));
    let mut news = cluster.store.bus.subscribe();
    a.joined().members.drain().await;
    let left = ClusterEvent::NodeLeft { node: a.id.clone() };
    assert_eq!(news.next().await, Some(Ok(left)));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(status("a").info.draining);
    tokio::time::sleep(LEASE).await;
    assert!(
        status("a").info.draining && status("a").present,
        "and stays so"
    );
}

#[tokio::test(start_paused = true)]
async fn draining_needs_no_store_here_and_is_told_when_it_is_back() {
    let cluster = TestCluster::new();
    let (a, edge) = (cluster.node("a").await, cluster.edge("e").await);
    a.joined().access.set_away(true);
    a.joined().members.drain().await;
    assert!(a.joined().routed.status().nodes[0].info.draining);
    a.joined().access.set_away(false);
    tokio::time::sleep(LEASE).await;
    let seen = &edge.routed.status().nodes[0];
    assert!(seen.info.id.as_str() == "a" && seen.info.draining && seen.present);
}

#[tokio::test(start_paused = true)]
async fn workers_are_told_of_nodes_but_not_of_their_load() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let mut announced = a.joined().members.announced();
    assert_eq!(announced.borrow_and_update().len(), 1);
    a.joined().members.report_load(|| NodeLoad {
        sessions: 7,
        in_flight: 2,
    });
    tokio::time::sleep(LEASE).await;
    assert!(!announced.has_changed().unwrap());
    let _b = cluster.node("b").await;
    announced.changed().await.unwrap();
    assert_eq!(announced.borrow().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_status_can_be_shown() {
    let cluster = TestCluster::new();
    let (_a, edge) = (cluster.node("a").await, cluster.edge("e").await);
    let status = serde_json::to_value(edge.routed.status()).unwrap();
    assert_eq!(status["node"], "e");
    assert_eq!(status["nodes"][0]["id"], "a");
    assert!(status["lease"].is_null(), "an edge owns nothing");
    assert_eq!(status["routing"]["takeovers"]["count"], 0);
}
