use std::sync::Arc;

use shoal_ports::{GatewayError, NodeId, Principal, SessionGateway as _, SessionId, SessionRef};

use crate::open::open;
use crate::test_cluster::{ScriptedNode, TestCluster};

async fn two(cluster: &TestCluster) -> (Arc<ScriptedNode>, Arc<ScriptedNode>) {
    (cluster.node("a").await, cluster.node("b").await)
}

#[tokio::test(start_paused = true)]
async fn a_cold_edge_finds_the_owner_without_the_store() {
    let cluster = TestCluster::new();
    let (a, b) = two(&cluster).await;
    let opener = cluster.edge("e").await;
    for _ in 0..10 {
        let to = open(&opener).await.unwrap();
        let owner = cluster.owner(&to).await.unwrap().to_string();
        let cold = cluster.edge("f").await;
        for _ in 0..3 {
            assert_eq!(cold.answer(&to).await.unwrap(), owner);
        }
        let listening = cluster.edge("g").await;
        listening.routed.listen(&to, None).await.unwrap();
        let closing = cluster.edge("h").await;
        closing.routed.close(&to).await.unwrap();
        let edges = [&cold, &listening, &closing];
        assert!(edges.iter().all(|edge| edge.access.lookups() == 0));
    }
    assert_eq!(a.hinted() + b.hinted(), 30, "once at each cold edge");
}

#[tokio::test(start_paused = true)]
async fn the_owner_itself_may_be_the_cold_edge() {
    let cluster = TestCluster::new();
    let (a, _b) = two(&cluster).await;
    let id = SessionId::opened_by(&a.id);
    let to = cluster.session_called(id, &a).await;
    assert_eq!(a.joined().answer(&to).await.unwrap(), "a");
    assert_eq!(a.joined().access.lookups(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hint_works_while_the_store_is_away() {
    let cluster = TestCluster::new();
    let (a, _b) = two(&cluster).await;
    let id = SessionId::opened_by(&a.id);
    let to = cluster.session_called(id, &a).await;
    let edge = cluster.edge("e").await;
    edge.access.set_away(true);
    assert_eq!(edge.answer(&to).await.unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_hint_costs_one_hop_and_one_look() {
    let cluster = TestCluster::new();
    let (a, b) = two(&cluster).await;
    let id = SessionId::opened_by(&b.id);
    let to = cluster.session_called(id, &a).await;
    let edge = cluster.edge("e").await;
    for _ in 0..3 {
        assert_eq!(edge.answer(&to).await.unwrap(), "a");
    }
    assert_eq!((b.hinted(), edge.access.lookups()), (1, 1));
    assert!(b.posts().is_empty());
    assert!(a.posts().iter().all(|(_, repeated)| !repeated));
    assert_eq!(cluster.owner(&to).await, Some(a.id.clone()));
}

#[tokio::test(start_paused = true)]
async fn a_hint_claims_nothing() {
    let cluster = TestCluster::new();
    let (a, b) = two(&cluster).await;
    let edge = cluster.edge("e").await;
    let mut taken = Vec::new();
    for _ in 0..20 {
        let id = SessionId::opened_by(&b.id);
        let to = cluster.session_called(id, &a).await;
        a.joined().answer(&to).await.unwrap();
        a.release().await;
        taken.push(edge.answer(&to).await.unwrap());
    }
    assert_eq!(b.hinted(), 20);
    for node in ["a", "b"] {
        let taken = taken.iter().filter(|by| *by == node).count();
        assert!(taken > 0, "as if no hint led to b: {taken:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_store_says_that_there_is_no_such_session() {
    let cluster = TestCluster::new();
    let (a, _b) = two(&cluster).await;
    let edge = cluster.edge("e").await;
    let forged = SessionRef::new(SessionId::opened_by(&a.id), Principal::anonymous());
    assert_eq!(edge.answer(&forged).await, Err(GatewayError::NotFound));
    assert_eq!((a.hinted(), edge.access.lookups()), (1, 1));
    let mallory = Principal::new("mallory");
    let to = cluster
        .session_called(SessionId::opened_by(&a.id), &a)
        .await;
    let foreign = SessionRef::new(to.session, mallory);
    assert_eq!(edge.answer(&foreign).await, Err(GatewayError::NotFound));
    assert_eq!((a.hinted(), edge.access.lookups()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_hint_to_a_node_that_has_left_is_none() {
    let cluster = TestCluster::new();
    let (a, b) = two(&cluster).await;
    let id = SessionId::opened_by(&a.id);
    let to = cluster.session_called(id, &a).await;
    a.joined().answer(&to).await.unwrap();
    a.drain().await;
    a.joined().members.leave().await;
    let edge = cluster.edge("e").await;
    assert_eq!(edge.answer(&to).await.unwrap(), "b");
    assert_eq!((a.hinted(), b.hinted()), (1, 0), "at its own edge, before");
    assert_eq!(edge.access.lookups(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hint_to_a_node_that_has_died_changes_nothing() {
    let cluster = TestCluster::new();
    let (a, _b) = two(&cluster).await;
    let edge = cluster.edge("e").await;
    edge.sees(3).await;
    let to = cluster
        .session_called(SessionId::opened_by(&a.id), &a)
        .await;
    a.die();
    assert_eq!(edge.answer(&to).await.unwrap(), "b");
}

#[tokio::test(start_paused = true)]
async fn ids_without_a_hint_are_looked_up() {
    let cluster = TestCluster::new();
    let (a, b) = two(&cluster).await;
    let to = cluster.session(&a).await;
    let edge = cluster.edge("e").await;
    assert_eq!(edge.answer(&to).await.unwrap(), "a");
    assert_eq!((a.hinted(), b.hinted()), (0, 0));
    assert_eq!(edge.access.lookups(), 1);
    let unknown = SessionId::new(format!("{}-{}", to.session, NodeId::new("gone").tag()));
    let unknown = SessionRef::new(unknown, Principal::anonymous());
    assert_eq!(edge.answer(&unknown).await, Err(GatewayError::NotFound));
    assert_eq!((a.hinted(), b.hinted()), (0, 0));
}
