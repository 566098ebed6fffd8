//! A node takes over a session under a valid lease only if it has found the owner gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use shoal_cluster::Ownership;
use shoal_ports::{Evidence, NodeId, SessionRef, StoreError};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::test_cluster::{Death, LEASE, Reply, TestCluster};

const MOMENT: Duration = Duration::from_millis(500);
const SECOND: Duration = Duration::from_secs(1);

async fn claims(cluster: &TestCluster, to: &SessionRef) -> u64 {
    let placed = cluster.store.directory.lookup(&to.session).await.unwrap();
    placed.unwrap().epoch.0 - 1
}

#[tokio::test(start_paused = true)]
async fn all_that_a_killed_node_was_doing_is_taken_over_at_once() {
    let cluster = TestCluster::new();
    let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
    let edges = [cluster.edge("e").await, cluster.edge("f").await];
    let mut answers = Vec::new();
    for at in 0..100 {
        let to = cluster.session(&a).await;
        let edge = edges[at % 2].clone();
        a.then(Reply::Hang);
        answers.push(tokio::spawn(async move { edge.answer(&to).await }));
    }
    while a.posts().len() < answers.len() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let begun = Instant::now();
    a.die();
    for answer in answers {
        assert_eq!(answer.await.unwrap().unwrap(), "b");
    }
    assert!(begun.elapsed() < MOMENT, "{:?}", begun.elapsed());
    assert!(cluster.looks() <= 6, "looked {} times", cluster.looks());
}

#[tokio::test(start_paused = true)]
async fn what_comes_later_for_a_killed_node_was_not_delivered_before() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let (first, second) = (cluster.session(&a).await, cluster.session(&a).await);
    edge.answer(&first).await.unwrap();
    edge.answer(&second).await.unwrap();
    a.die();
    assert_eq!(edge.answer(&first).await.unwrap(), "b");
    assert_eq!(edge.answer(&second).await.unwrap(), "b");
    let repeated: Vec<bool> = b.posts().iter().map(|(_, repeated)| *repeated).collect();
    assert_eq!(repeated, [true, false]);
}

#[tokio::test(start_paused = true)]
async fn who_only_cannot_be_reached_keeps_its_sessions_until_its_lease_ends() {
    for death in [Death::Silent, Death::Unrouted] {
        let cluster = TestCluster::new();
        let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
        let edge = cluster.edge("e").await;
        let to = cluster.session(&a).await;
        edge.answer(&to).await.unwrap();
        let left = Duration::from_millis(a.joined().members.lease().remaining_ms);
        let begun = Instant::now();
        a.die_by(death);
        assert_eq!(edge.answer(&to).await.unwrap(), "b");
        assert!(begun.elapsed() >= left, "{death:?}: {:?}", begun.elapsed());
    }
}

/// A container's address disappears soon after its process.
#[tokio::test(start_paused = true)]
async fn who_was_seen_to_be_gone_stays_so_when_nobody_refuses_any_more() {
    let cluster = TestCluster::new();
    let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let to = cluster.session(&a).await;
        edge.answer(&to).await.unwrap();
        sessions.push(to);
    }
    a.die();
    assert_eq!(edge.answer(&sessions[0]).await.unwrap(), "b");
    for (to, death) in sessions[1..].iter().zip([Death::Unrouted, Death::Silent]) {
        a.die_by(death);
        tokio::time::sleep(SECOND).await;
        let begun = Instant::now();
        assert_eq!(edge.answer(to).await.unwrap(), "b");
        assert!(
            begun.elapsed() <= MOMENT,
            "{death:?}: {:?}",
            begun.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_word_of_an_edge_claims_nothing() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    b.joined().sees(2).await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    edge.answer(&to).await.unwrap();
    cluster.refuse("e", "a");
    for _ in 0..20 {
        assert_eq!(edge.answer(&to).await.unwrap(), "a", "by way of b");
        tokio::time::sleep(SECOND / 2).await;
    }
    assert_eq!(claims(&cluster, &to).await, 0);
    assert!(b.posts().is_empty());
    cluster.mend();
    tokio::time::sleep(LEASE).await;
    let relayed = edge.routed.status().routing.relayed;
    assert_eq!(edge.answer(&to).await.unwrap(), "a");
    assert_eq!(edge.routed.status().routing.relayed, relayed);
}

#[tokio::test(start_paused = true)]
async fn links_that_break_again_and_again_cause_no_take_over() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    for _ in 0..60 {
        for node in ["e", "b"] {
            cluster.cut(node, "a");
        }
        a.drop_readers();
        let answer = tokio::spawn({
            let (edge, to) = (edge.clone(), to.clone());
            async move { edge.answer(&to).await }
        });
        tokio::time::sleep(SECOND / 2).await;
        cluster.mend();
        assert_eq!(answer.await.unwrap().unwrap(), "a");
        tokio::time::sleep(SECOND / 2).await;
    }
    assert_eq!(claims(&cluster, &to).await, 0);
    assert!(b.posts().is_empty());
}

/// Both nodes refuse all connections for a quarter of each second.
#[tokio::test(start_paused = true)]
async fn a_flapping_node_is_not_fought_over() {
    let cluster = TestCluster::new();
    let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    edge.answer(&to).await.unwrap();
    let begun = Instant::now();
    for at in 0..60 {
        for node in ["a", "b"] {
            for from in ["e", "a", "b"].into_iter().filter(|from| *from != node) {
                cluster.refuse(from, node);
            }
        }
        let answer = tokio::spawn({
            let (edge, to) = (edge.clone(), to.clone());
            async move { edge.answer(&to).await }
        });
        tokio::time::sleep(SECOND / 4).await;
        cluster.mend();
        let by = answer.await.unwrap().unwrap();
        assert!(by == "a" || by == "b", "{at}: {by}");
        tokio::time::sleep(SECOND * 3 / 4).await;
    }
    let most = begun.elapsed().as_secs() / LEASE.as_secs() + 1;
    let claimed = claims(&cluster, &to).await;
    assert!(claimed <= most, "{claimed} claims in {:?}", begun.elapsed());
    drop(a);
}

struct Asked {
    asked: AtomicUsize,
    told: Notify,
    may_end: watch::Sender<bool>,
}

#[async_trait]
impl Ownership for Asked {
    async fn revalidate(&self) -> Result<(), StoreError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.told.notify_one();
        let _ = self.may_end.subscribe().wait_for(|may| *may).await;
        Ok(())
    }
}

fn asked() -> Arc<Asked> {
    Arc::new(Asked {
        asked: AtomicUsize::new(0),
        told: Notify::new(),
        may_end: watch::Sender::new(false),
    })
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_was_replaced_learns_it_with_its_next_renewal() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let ownership = asked();
    a.joined().members.guard(ownership.clone());
    let liveness = a.joined().members.liveness();
    let to = cluster.session(&a).await;
    tokio::time::sleep(LEASE * 3).await;
    assert!(liveness.is_certain());
    assert_eq!(ownership.asked.load(Ordering::SeqCst), 0);

    let evidence = Evidence {
        against: NodeId::new("a"),
        lease: LEASE,
    };
    let directory = &cluster.store.directory;
    let claim = directory.claim_on_evidence(&to.session, &b.id, &evidence);
    claim.await.unwrap();
    let begun = Instant::now();
    ownership.told.notified().await;
    assert!(begun.elapsed() <= LEASE / 3, "{:?}", begun.elapsed());
    tokio::time::sleep(LEASE).await;
    assert!(
        !liveness.is_certain(),
        "until what it holds has been looked after"
    );
    ownership.may_end.send_replace(true);
    tokio::time::sleep(SECOND).await;
    assert!(liveness.is_certain());
    let lease = a.joined().members.lease();
    assert!(lease.held && lease.lapses == 0, "{lease:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_certain_for_its_length_from_when_its_renewal_was_sent() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let ownership = asked();
    a.joined().members.guard(ownership.clone());
    let liveness = a.joined().members.liveness();
    assert!(liveness.is_certain(), "it has just been begun");
    tokio::time::sleep(LEASE * 3).await;
    a.joined().access.set_hanging(true);
    tokio::time::sleep(LEASE).await;
    assert!(!liveness.is_certain());
    a.joined().access.set_hanging(false);
    ownership.told.notified().await;
    assert!(!liveness.is_certain(), "others may have claimed meanwhile");
    ownership.may_end.send_replace(true);
    tokio::time::sleep(SECOND).await;
    assert!(liveness.is_certain());
    a.joined().members.leave().await;
    assert!(!liveness.is_certain());
}
