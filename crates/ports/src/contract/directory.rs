//! Ownership, leases, records.
#![allow(
    clippy::unwrap_used,
    reason = "a failed step of the suite is the report"
)]

use std::time::Duration;

use bytes::Bytes;

use super::{LONG, node, session};
use crate::{SessionId, Store, StoreError};

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
    assert!(
        !directory.renew_lease(&node("b"), LONG).await.unwrap(),
        "begun"
    );
    assert!(
        directory.renew_lease(&node("b"), brief).await.unwrap(),
        "renewed"
    );
    tokio::time::sleep(brief * 3).await;
    directory
        .claim(&id, &node("c"))
        .await
        .expect("the lease has lapsed");
    let alive = directory.renew_lease(&node("b"), LONG).await.unwrap();
    assert!(!alive, "a node learns that its lease had lapsed");
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
