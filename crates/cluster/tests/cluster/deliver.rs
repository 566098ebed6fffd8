use std::time::Duration;

use shoal_ports::{
    Delivered, GatewayError, NodeId, Principal, Repeat, SessionGateway as _, SessionRef,
};

use crate::test_cluster::{Death, LEASE, Reply, TestCluster, calling, post, waiting};

#[tokio::test(start_paused = true)]
async fn a_message_is_delivered_again_when_its_owner_dies_over_it() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    a.then(Reply::Hang);
    let post = post();
    let delivery = post.delivery;
    let delivering = tokio::spawn({
        let (edge, to) = (edge.clone(), to.clone());
        async move { edge.routed.deliver(&to, post).await }
    });
    a.has_post().await;
    a.die();
    let delivered = delivering.await.unwrap().unwrap();
    assert!(matches!(delivered, Delivered::Json(by) if by == "b"));
    assert_eq!(a.posts(), [(delivery, false)]);
    assert_eq!(
        b.posts(),
        [(delivery, true)],
        "once, and said to be repeated"
    );
    let status = edge.routed.status().routing;
    assert_eq!(status.redelivered, 1);
    assert_eq!(status.takeovers.count, 1);
    assert!(status.takeovers.max_ms < 100, "nobody waited for the lease");
    assert_eq!(edge.answer(&to).await.unwrap(), "b", "which is remembered");
}

/// Time from the end of the owner's lease to the next owner: a read of the list of nodes, a lookup, and the spread of
/// retries.
const LOOKS: Duration = Duration::from_millis(500);

#[tokio::test(start_paused = true)]
async fn a_session_is_taken_over_within_the_lease_and_one_look() {
    let deaths = [Death::Silent, Death::Unrouted];
    for (death, offset) in deaths
        .into_iter()
        .flat_map(|death| (0..20).map(move |at| (death, at)))
    {
        let cluster = TestCluster::new();
        let (a, b) = (cluster.node("a").await, cluster.node("b").await);
        let edge = cluster.edge("e").await;
        let to = cluster.session(&a).await;
        edge.answer(&to).await.unwrap();
        tokio::time::sleep(LEASE + Duration::from_millis(100 * offset)).await;
        a.then(Reply::Hang);
        let answer = tokio::spawn({
            let (edge, to) = (edge.clone(), to.clone());
            async move { edge.answer(&to).await }
        });
        while a.posts().len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let left = a.joined().members.lease().remaining_ms;
        let begun = tokio::time::Instant::now();
        a.die_by(death);
        assert_eq!(answer.await.unwrap().unwrap(), "b");
        let beyond = begun.elapsed().saturating_sub(Duration::from_millis(left));
        assert!(
            beyond < LOOKS,
            "{offset}, {death:?}: {beyond:?} longer than the lease"
        );
        drop(b);
    }
}

#[tokio::test(start_paused = true)]
async fn a_remembered_owner_needs_no_look_at_the_store() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    for _ in 0..5 {
        assert_eq!(edge.answer(&to).await.unwrap(), "a");
    }
    assert_eq!(edge.access.lookups(), 1);
    assert_eq!(edge.routed.status().routing.cached_owners, 1);
}

#[tokio::test(start_paused = true)]
async fn a_stale_memory_is_corrected_by_the_node_that_knows() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    edge.answer(&to).await.unwrap();
    a.release().await;
    cluster
        .store
        .directory
        .claim(&to.session, &b.id)
        .await
        .unwrap();
    let lookups = edge.access.lookups();
    assert_eq!(edge.answer(&to).await.unwrap(), "b");
    assert_eq!(edge.access.lookups(), lookups, "the hint was enough");
    assert_eq!(b.posts().len(), 1);
    assert!(!b.posts()[0].1, "nothing was done before");
    assert_eq!(edge.answer(&to).await.unwrap(), "b");
    assert_eq!(a.posts().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_is_wrong_costs_one_look_at_the_store() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    let elsewhere = GatewayError::Moved {
        owner: Some(NodeId::new("nowhere")),
    };
    a.then(Reply::Error(elsewhere));
    assert_eq!(edge.answer(&to).await.unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn two_edges_choose_the_same_node_for_a_session_that_nobody_owns() {
    let cluster = TestCluster::new();
    let (a, _b, _c) = (
        cluster.node("a").await,
        cluster.node("b").await,
        cluster.node("c").await,
    );
    let (one, other) = (cluster.edge("e").await, cluster.edge("f").await);
    for _ in 0..20 {
        let to = cluster.session(&a).await;
        a.joined().answer(&to).await.unwrap();
        a.release().await;
        let (first, second) = tokio::join!(one.answer(&to), other.answer(&to));
        assert_eq!(first.unwrap(), second.unwrap());
        assert_eq!(one.routed.status().routing.takeovers.count, 0, "no wait");
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_of_the_owner_are_the_answer() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    let overloaded = GatewayError::Overloaded {
        reason: "busy".to_owned(),
        retry_after: Duration::from_secs(3),
    };
    a.then(Reply::Error(overloaded.clone()));
    assert_eq!(edge.answer(&to).await.unwrap_err(), overloaded);
    assert_eq!(a.posts().len(), 1, "it was asked once");
}

#[tokio::test(start_paused = true)]
async fn sessions_that_are_not_there_or_anothers_are_not_found() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    let foreign = SessionRef {
        principal: Principal::new("mallory"),
        ..to.clone()
    };
    assert_eq!(
        edge.answer(&foreign).await.unwrap_err(),
        GatewayError::NotFound
    );
    edge.answer(&to).await.unwrap();
    assert_eq!(
        edge.answer(&foreign).await.unwrap_err(),
        GatewayError::NotFound,
        "remembered or not"
    );
    edge.routed.close(&to).await.unwrap();
    assert_eq!(edge.routed.status().routing.cached_owners, 0);
    assert_eq!(edge.answer(&to).await.unwrap_err(), GatewayError::NotFound);
    assert_eq!(
        edge.routed.close(&to).await.unwrap_err(),
        GatewayError::NotFound
    );
    let to = cluster.session(&a).await;
    let foreign = SessionRef {
        principal: Principal::new("mallory"),
        ..to
    };
    a.die();
    let error = edge.answer(&foreign).await.unwrap_err();
    assert_eq!(error, GatewayError::NotFound, "whoever owns it");
}

#[tokio::test(start_paused = true)]
async fn a_close_that_was_lost_on_the_way_back_has_been_done() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    a.then(Reply::Error(GatewayError::Unreachable {
        reason: "reset".to_owned(),
    }));
    edge.routed.close(&to).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn patience_runs_out() {
    let patience = LEASE / 3;
    let cluster = TestCluster::with(waiting(patience));
    let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    edge.answer(&to).await.unwrap();
    a.die_by(Death::Unrouted);
    let begun = tokio::time::Instant::now();
    let error = edge.answer(&to).await.unwrap_err();
    assert!(begun.elapsed() >= patience);
    assert!(matches!(error, GatewayError::Unreachable { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("may have been carried out"), "{text}");
    let error = edge.routed.close(&to).await.unwrap_err();
    assert!(error.retry_after().is_some(), "closing twice does no harm");
    assert_eq!(edge.routed.status().routing.given_up, 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_never_sent_is_safe_to_repeat() {
    let patience = Duration::from_secs(4);
    let cluster = TestCluster::with(waiting(patience));
    let a = cluster.node("a").await;
    let to = cluster.session(&a).await;
    let edge = cluster.edge("e").await;
    a.joined().answer(&to).await.unwrap();
    a.drain().await;
    let error = edge.answer(&to).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("safe to repeat"), "{text}");
    assert!(error.retry_after().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_only_node_says_at_once_that_it_is_full() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    a.joined().answer(&to).await.unwrap();
    a.release().await;
    let full = GatewayError::TooManySessions {
        limit: 1,
        retry_after: Duration::from_secs(1),
    };
    a.refuse_to_take(full.clone());
    let begun = tokio::time::Instant::now();
    assert_eq!(edge.answer(&to).await.unwrap_err(), full);
    assert!(begun.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_full_cluster_says_so_at_once() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    a.joined().answer(&to).await.unwrap();
    a.release().await;
    let full = GatewayError::TooManySessions {
        limit: 1,
        retry_after: Duration::from_secs(1),
    };
    for node in [&a, &b] {
        node.refuse_to_take(full.clone());
    }
    let begun = tokio::time::Instant::now();
    assert_eq!(edge.answer(&to).await.unwrap_err(), full);
    assert!(begun.elapsed().is_zero());
    a.take_again();
    assert_eq!(edge.answer(&to).await.unwrap(), "a", "one has room");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_have_run_is_never_told_that_it_has_not() {
    let soon = Duration::from_secs(1);
    let refusals = [
        GatewayError::NotFound,
        GatewayError::TooManyBytesOfPrincipal {
            limit: 1,
            retry_after: soon,
        },
        GatewayError::TooManySessionsOfPrincipal {
            limit: 1,
            retry_after: soon,
        },
        GatewayError::Internal("a fault".to_owned()),
        GatewayError::WorkerAway {
            reason: "cut off".to_owned(),
        },
    ];
    for refusal in refusals {
        for repeat in [Repeat::Never, Repeat::Safe] {
            let cluster = TestCluster::new();
            let (a, b) = (cluster.node("a").await, cluster.node("b").await);
            let edge = cluster.edge("e").await;
            let to = cluster.session(&a).await;
            edge.answer(&to).await.unwrap();
            let first = edge.routed.deliver(&to, calling(repeat));
            a.then(Reply::Error(refusal.clone()));
            assert_eq!(first.await.unwrap_err(), refusal, "nothing was begun");
            a.then(Reply::Error(GatewayError::Unreachable {
                reason: "reset".to_owned(),
            }));
            a.then(Reply::Error(refusal.clone()));
            let told = edge.routed.deliver(&to, calling(repeat)).await;
            let told = told.unwrap_err();
            match repeat {
                Repeat::Never => {
                    assert!(matches!(told, GatewayError::Unreachable { .. }), "{told}");
                    assert!(told.to_string().contains(&refusal.to_string()), "{told}");
                }
                Repeat::Safe => assert_eq!(told, refusal),
            }
            drop(b);
        }
    }
}
