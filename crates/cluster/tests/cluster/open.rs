use std::time::Duration;

use futures::future::join_all;
use shoal_cluster::NodeLoad;
use shoal_ports::{
    GatewayError, OpenSession, Principal, SessionGateway as _, SessionRef, SessionTransport,
};

use crate::test_cluster::{LEASE, TestCluster, TestNode};

pub(crate) async fn open(edge: &TestNode) -> Result<SessionRef, GatewayError> {
    let open = OpenSession {
        principal: Principal::anonymous(),
        transport: SessionTransport::Streamable,
        initialize: None,
        trace: None,
    };
    let opened = edge.routed.open(open).await?;
    Ok(SessionRef::new(opened.session, Principal::anonymous()))
}

const SOON: Duration = Duration::from_secs(2);

pub(crate) fn full() -> GatewayError {
    GatewayError::TooManySessions {
        limit: 1,
        retry_after: Duration::from_secs(7),
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_spread_before_anybody_announces_them() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    for _ in 0..10 {
        open(&edge).await.unwrap();
    }
    assert_eq!((a.opens(), b.opens()), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn sessions_that_are_opened_at_once_spread_too() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let opened = join_all((0..100).map(|_| open(&edge))).await;
    assert!(opened.iter().all(Result::is_ok));
    assert_eq!((a.opens(), b.opens()), (50, 50));
}

#[tokio::test(start_paused = true)]
async fn a_node_keeps_what_it_opens() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    a.joined().sees(2).await;
    for _ in 0..100 {
        open(a.joined()).await.unwrap();
    }
    assert_eq!((a.opens(), b.opens()), (100, 0));
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_node_opens_elsewhere_until_it_is_none_any_more() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let load = |sessions| NodeLoad {
        sessions,
        in_flight: 0,
    };
    a.joined().members.report_load(move || load(5_000));
    b.joined().members.report_load({
        let b = b.clone();
        move || load(3 * u64::try_from(b.opens()).unwrap())
    });
    tokio::time::sleep(LEASE).await;
    for _ in 0..1_000 {
        open(a.joined()).await.unwrap();
    }
    assert_eq!((a.opens(), b.opens()), (0, 1_000));
    tokio::time::sleep(LEASE).await;
    for _ in 0..100 {
        open(a.joined()).await.unwrap();
    }
    assert_eq!((a.opens(), b.opens()), (100, 1_000));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_drains_or_is_full_opens_elsewhere() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    a.joined().sees(2).await;
    a.refuse_to_open(full());
    let to = open(a.joined()).await.unwrap();
    assert_eq!(cluster.owner(&to).await, Some(b.id.clone()));
    assert_eq!(a.opens(), 1, "it was asked first");
    a.drain().await;
    open(a.joined()).await.unwrap();
    assert_eq!((a.opens(), b.opens()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn an_opened_session_is_found_without_the_store() {
    let cluster = TestCluster::new();
    let _a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let to = open(&edge).await.unwrap();
    assert_eq!(edge.answer(&to).await.unwrap(), "a");
    assert_eq!(edge.access.lookups(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dead_node_is_passed_over() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    a.die();
    for _ in 0..4 {
        open(&edge).await.unwrap();
    }
    assert_eq!(b.opens(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_full_node_is_passed_over_once() {
    let cluster = TestCluster::new();
    let nodes = [
        cluster.node("a").await,
        cluster.node("b").await,
        cluster.node("c").await,
    ];
    let edge = cluster.edge("e").await;
    nodes[0].refuse_to_open(full());
    for _ in 0..4 {
        open(&edge).await.unwrap();
    }
    for node in &nodes {
        node.refuse_to_open(full());
    }
    let asked = |count: usize| nodes.iter().map(|node| node.opens()).sum::<usize>() - count;
    let before = asked(0);
    assert_eq!(open(&edge).await.unwrap_err(), full());
    assert_eq!(asked(before), 2, "two full nodes are enough to know");
}

#[tokio::test(start_paused = true)]
async fn a_cap_of_the_principal_is_the_answer() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let capped = GatewayError::TooManySessionsOfPrincipal {
        limit: 1,
        retry_after: Duration::from_secs(1),
    };
    for node in [&a, &b] {
        node.refuse_to_open(capped.clone());
    }
    assert_eq!(open(&edge).await.unwrap_err(), capped);
    assert_eq!(a.opens() + b.opens(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_node_the_client_comes_back() {
    let cluster = TestCluster::new();
    let edge = cluster.edge("e").await;
    let error = open(&edge).await.unwrap_err();
    assert!(error.retry_after().is_some(), "{error}");
    assert!(error.to_string().starts_with("no session node"), "{error}");
    let a = cluster.node("a").await;
    a.drain().await;
    edge.sees(2).await;
    assert!(open(&edge).await.is_err());
    let b = cluster.node("b").await;
    edge.sees(3).await;
    open(&edge).await.unwrap();
    b.die();
    let error = open(&edge).await.unwrap_err();
    assert!(error.retry_after().is_some(), "{error}");
    assert!(error.to_string().starts_with("no session node"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_new_session_waits_for_a_node() {
    let cluster = TestCluster::new();
    let edge = cluster.edge("e").await;
    let waiting = tokio::spawn({
        let edge = edge.clone();
        async move { open(&edge).await }
    });
    tokio::time::sleep(SOON).await;
    assert!(!waiting.is_finished());
    let a = cluster.node("a").await;
    waiting.await.unwrap().unwrap();
    a.die();
    let waiting = tokio::spawn(async move { open(&edge).await });
    tokio::time::sleep(SOON).await;
    assert!(!waiting.is_finished());
    let b = cluster.node("b").await;
    waiting.await.unwrap().unwrap();
    assert_eq!((a.opens(), b.opens()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_new_session_waits_for_no_room() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    a.refuse_to_open(full());
    assert_eq!(open(&edge).await.unwrap_err(), full());
    assert_eq!(a.opens(), 1, "it was asked once");
}
