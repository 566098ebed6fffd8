//! Running calls.
#![allow(
    clippy::unwrap_used,
    reason = "a failed step of the suite is the report"
)]

use shoal_protocol::RequestId;

use super::{events, node, session};
use crate::{CallId, JournalEntry, LogError, Store, StoreError};

pub(super) async fn entries(store: &Store) {
    let (id, epoch) = session(store).await;
    let entry = |n| JournalEntry {
        call: CallId::generate(),
        request: RequestId::from_number(n),
        worker: None,
    };
    let (one, two, three) = (entry(1), entry(2), entry(3));
    let first = store
        .journal
        .begin(&id, epoch, vec![one.clone()])
        .await
        .unwrap();
    let batch = store
        .journal
        .begin(&id, epoch, vec![two.clone(), three.clone()])
        .await
        .unwrap();
    assert_ne!(first.stream, batch.stream);
    let running = store.journal.running(&id).await.unwrap();
    let expected = vec![
        (first.stream, one),
        (batch.stream, two.clone()),
        (batch.stream, three.clone()),
    ];
    assert_eq!(running, expected, "oldest first");

    store
        .log
        .append(&id, epoch, first.stream, events(&["progress"]), false)
        .await
        .unwrap();
    assert_eq!(store.journal.running(&id).await.unwrap().len(), 3);
    store
        .log
        .append(&id, epoch, first.stream, events(&["result"]), true)
        .await
        .unwrap();
    let running = store.journal.running(&id).await.unwrap();
    assert_eq!(
        running,
        vec![(batch.stream, two), (batch.stream, three)],
        "the end closes the entry"
    );

    store.directory.end_lease(&node("a")).await.unwrap();
    let new = store.directory.claim(&id, &node("b")).await.unwrap().epoch;
    let stale = store.journal.begin(&id, epoch, vec![entry(4)]).await;
    assert_eq!(stale, Err(LogError::Store(StoreError::Stale)));
    assert_eq!(
        store.journal.running(&id).await.unwrap().len(),
        2,
        "a new owner finds the calls"
    );
    store
        .log
        .append(&id, new, batch.stream, events(&["r", "r"]), true)
        .await
        .unwrap();
    assert!(store.journal.running(&id).await.unwrap().is_empty());
}
