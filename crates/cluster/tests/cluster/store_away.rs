use std::time::Duration;

use shoal_cluster::RoutingConfig;
use shoal_ports::GatewayError;

use crate::test_cluster::{LEASE, TestCluster};

#[tokio::test(start_paused = true)]
async fn hits_are_served_and_misses_told_to_come_back() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let (known, unknown) = (cluster.session(&a).await, cluster.session(&a).await);
    edge.answer(&known).await.unwrap();
    edge.access.set_away(true);
    tokio::time::sleep(LEASE * 4).await;
    assert_eq!(
        edge.answer(&known).await.unwrap(),
        "a",
        "nodes are not dropped"
    );
    let begun = tokio::time::Instant::now();
    let error = edge.answer(&unknown).await.unwrap_err();
    assert!(matches!(error, GatewayError::Unavailable { .. }), "{error}");
    assert!(error.retry_after().is_some());
    assert!(begun.elapsed().is_zero(), "at once");
    edge.access.set_away(false);
    assert_eq!(edge.answer(&unknown).await.unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn an_old_memory_is_good_enough_then() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    edge.answer(&to).await.unwrap();
    edge.access.set_away(true);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let lookups = edge.access.lookups();
    assert_eq!(edge.answer(&to).await.unwrap(), "a");
    assert_eq!(edge.access.lookups(), lookups + 1, "it was asked first");
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_waits_for_the_store() {
    let cluster = TestCluster::new();
    let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    edge.answer(&to).await.unwrap();
    edge.access.set_away(true);
    a.die();
    let back = tokio::spawn({
        let access = edge.access.clone();
        async move {
            tokio::time::sleep(LEASE * 2).await;
            access.set_away(false);
        }
    });
    assert_eq!(edge.answer(&to).await.unwrap(), "b");
    back.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_as_good_as_away() {
    let config = RoutingConfig::default();
    let cluster = TestCluster::with(config.clone());
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    edge.access.set_hanging(true);
    a.joined().access.set_hanging(true);
    let begun = tokio::time::Instant::now();
    let asked = (0..config.lookups_at_once * 3).map(|_| {
        let (edge, to) = (edge.clone(), to.clone());
        tokio::spawn(async move { edge.answer(&to).await })
    });
    for answer in asked.collect::<Vec<_>>() {
        let error = answer.await.unwrap().unwrap_err();
        assert!(error.retry_after().is_some(), "{error}");
    }
    assert_eq!(begun.elapsed(), config.lookup_within, "for all of them");
    let at_once = edge.access.most_lookups_at_once();
    assert_eq!(at_once, config.lookups_at_once, "the others waited");
    tokio::time::sleep(LEASE * 2).await;
    assert!(!a.joined().members.lease().held);
    edge.access.set_hanging(false);
    a.joined().access.set_hanging(false);
    tokio::time::sleep(LEASE).await;
    assert!(a.joined().members.lease().held);
    assert_eq!(edge.answer(&to).await.unwrap(), "a");
}
