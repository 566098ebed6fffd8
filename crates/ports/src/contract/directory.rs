#![allow(
    clippy::unwrap_used,
    reason = "a failed step of the suite is the report"
)]

use std::time::Duration;

use bytes::Bytes;

use super::{LONG, node, session};
use crate::{Evidence, NewSession, Principal, Renewal, SessionId, Store, StoreError};

pub(super) async fn a_session_is_created_once(store: &Store) {
    let id = SessionId::random();
    let create = |owner: &str, record: &'static [u8]| {
        store.directory.create(NewSession {
            session: id.clone(),
            principal: Principal::new("somebody"),
            owner: node(owner),
            record: Bytes::from_static(record),
            idle: LONG,
        })
    };
    for owner in ["a", "b"] {
        let renewed = store.directory.renew_lease(&node(owner), LONG).await;
        renewed.unwrap();
    }
    let first = create("a", b"one").await.unwrap();
    assert_eq!(create("b", b"two").await, Err(StoreError::Held));
    assert_eq!(
        create("a", b"two").await,
        Ok(first),
        "an owner may repeat its step"
    );
    let claim = store.directory.claim(&id, &node("a")).await.unwrap();
    assert_eq!(claim.record, Bytes::from_static(b"one"));
    assert_eq!(
        create("a", b"two").await,
        Err(StoreError::Held),
        "a claimed session is not created again"
    );
}

pub(super) async fn ownership(store: &Store) {
    let directory = &store.directory;
    let (id, first) = session(store).await;
    let placed = directory.lookup(&id).await.unwrap().expect("placed");
    assert_eq!((placed.owner, placed.epoch), (Some(node("a")), first));
    assert_eq!(placed.principal.as_str(), "somebody");

    directory.renew_lease(&node("b"), LONG).await.unwrap();
    let held = directory.claim(&id, &node("b")).await;
    assert_eq!(
        held,
        Err(StoreError::Held),
        "a live owner keeps its session"
    );

    directory
        .release(&id, first, Bytes::from_static(b"two"), LONG)
        .await
        .unwrap();
    assert_eq!(directory.lookup(&id).await.unwrap().unwrap().owner, None);
    let claim = directory.claim(&id, &node("b")).await.unwrap();
    assert!(claim.epoch > first, "a claim raises the epoch");
    assert_eq!(
        claim.record,
        Bytes::from_static(b"two"),
        "a claim brings the last record"
    );

    let stale = directory
        .save(&id, first, Bytes::from_static(b"old"), LONG)
        .await;
    assert_eq!(stale, Err(StoreError::Stale), "a former owner cannot write");
    assert_eq!(
        directory.release(&id, first, Bytes::new(), LONG).await,
        Err(StoreError::Stale)
    );
    assert_eq!(directory.remove(&id, first).await, Err(StoreError::Stale));

    let asked = [
        (id.clone(), first),
        (id.clone(), claim.epoch),
        (SessionId::random(), first),
    ];
    let held = directory.held(&asked).await.unwrap();
    assert_eq!(
        held,
        [false, true, false],
        "held under its newest epoch only"
    );
    assert_eq!(directory.held(&[]).await.unwrap(), Vec::<bool>::new());

    let again = directory.claim(&id, &node("b")).await.unwrap();
    assert!(again.epoch > claim.epoch, "an owner may claim again");
    directory.remove(&id, again.epoch).await.unwrap();
    assert_eq!(directory.lookup(&id).await.unwrap(), None);
    assert_eq!(
        directory.claim(&id, &node("b")).await,
        Err(StoreError::NotFound)
    );
    assert_eq!(directory.lookup(&SessionId::random()).await.unwrap(), None);
}

pub(super) async fn leases(store: &Store) {
    let directory = &store.directory;
    let (id, _) = session(store).await;
    directory.end_lease(&node("a")).await.unwrap();
    assert_eq!(directory.lookup(&id).await.unwrap().unwrap().owner, None);
    directory
        .claim(&id, &node("b"))
        .await
        .expect("nobody holds it");

    let brief = Duration::from_millis(30);
    let begun = directory.renew_lease(&node("b"), LONG).await;
    assert_eq!(begun, Ok(Renewal::Begun));
    let renewed = directory.renew_lease(&node("b"), brief).await;
    assert_eq!(renewed, Ok(Renewal::Kept));
    tokio::time::sleep(brief * 3).await;
    directory
        .claim(&id, &node("c"))
        .await
        .expect("the lease has lapsed");
    let lapsed = directory.renew_lease(&node("b"), LONG).await;
    assert_eq!(
        lapsed,
        Ok(Renewal::Begun),
        "a node learns that its lease had lapsed"
    );
}

fn evidence(against: &str, lease: Duration) -> Evidence {
    Evidence {
        against: node(against),
        lease,
    }
}

pub(super) async fn evidence_against_an_owner(store: &Store) {
    let directory = &store.directory;
    let (id, first) = session(store).await;
    let kept = directory.renew_lease(&node("a"), LONG).await;
    assert_eq!(kept, Ok(Renewal::Kept));
    directory.renew_lease(&node("b"), LONG).await.unwrap();

    let other = evidence("x", LONG);
    let held = directory.claim_on_evidence(&id, &node("b"), &other).await;
    assert_eq!(
        held,
        Err(StoreError::Held),
        "evidence against another node is none against the owner"
    );
    let kept = directory.renew_lease(&node("a"), LONG).await;
    assert_eq!(kept, Ok(Renewal::Kept), "nothing was claimed");

    let gone = evidence("a", LONG);
    let claim = directory.claim_on_evidence(&id, &node("b"), &gone).await;
    let claim = claim.expect("taken from a living lease");
    assert!(claim.epoch > first, "a claim raises the epoch");
    let placed = directory.lookup(&id).await.unwrap().unwrap();
    assert_eq!(placed.owner, Some(node("b")));
    let stale = directory.save(&id, first, claim.record.clone(), LONG).await;
    assert_eq!(stale, Err(StoreError::Stale), "a former owner cannot write");

    let told = directory.renew_lease(&node("a"), LONG).await;
    assert_eq!(told, Ok(Renewal::Contested), "it is told when it renews");
    let kept = directory.renew_lease(&node("a"), LONG).await;
    assert_eq!(kept, Ok(Renewal::Kept), "once");
    let kept = directory.renew_lease(&node("b"), LONG).await;
    assert_eq!(kept, Ok(Renewal::Kept), "and nobody else is");

    directory.end_lease(&node("b")).await.unwrap();
    let gone = evidence("b", LONG);
    let claim = directory.claim_on_evidence(&id, &node("c"), &gone).await;
    claim.expect("without a lease there is nothing to contest");
    assert_eq!(
        directory
            .claim_on_evidence(&SessionId::random(), &node("c"), &gone)
            .await,
        Err(StoreError::NotFound)
    );
}

pub(super) async fn nodes_do_not_fight_over_a_session(store: &Store) {
    let directory = &store.directory;
    let (id, _) = session(store).await;
    let (a, b) = (node("a"), node("b"));
    directory.renew_lease(&b, LONG).await.unwrap();
    let against_a = evidence("a", LONG);
    let claim = directory.claim_on_evidence(&id, &b, &against_a);
    claim.await.expect("a session that was opened a moment ago");

    let against_b = evidence("b", LONG);
    let held = directory.claim_on_evidence(&id, &a, &against_b);
    assert_eq!(
        held.await,
        Err(StoreError::Held),
        "it has come to its owner within a lease"
    );
    let brief = Duration::from_millis(30);
    tokio::time::sleep(brief * 2).await;
    directory.claim(&id, &b).await.unwrap();
    let against_b = evidence("b", brief);
    let claim = directory.claim_on_evidence(&id, &a, &against_b);
    claim.await.expect("a lease later");
}

pub(super) async fn an_owner_that_is_gone_is_not_given_a_lease(store: &Store) {
    let directory = &store.directory;
    let (id, _) = session(store).await;
    let (a, b) = (node("a"), node("b"));
    directory.renew_lease(&b, LONG).await.unwrap();
    let against_a = evidence("a", LONG);
    let claim = directory.claim_on_evidence(&id, &b, &against_a);
    claim.await.expect("a session that was opened a moment ago");

    // An owner with less than half of its lease left has missed a renewal.
    directory.renew_lease(&b, LONG / 3).await.unwrap();
    let against_b = evidence("b", LONG);
    let claim = directory.claim_on_evidence(&id, &a, &against_b);
    claim.await.expect("its owner has missed a renewal");
}

pub(super) async fn records_expire(store: &Store) {
    let directory = &store.directory;
    let (id, epoch) = session(store).await;
    let brief = Duration::from_millis(30);
    directory
        .save(&id, epoch, Bytes::from_static(b"brief"), brief)
        .await
        .unwrap();
    tokio::time::sleep(brief * 3).await;
    directory.sweep().await.unwrap();
    assert_eq!(directory.lookup(&id).await.unwrap(), None);
    assert_eq!(
        directory.save(&id, epoch, Bytes::new(), LONG).await,
        Err(StoreError::NotFound)
    );
}
