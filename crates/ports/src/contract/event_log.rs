//! Streams: numbering, resuming, trimming, fencing.
#![allow(
    clippy::unwrap_used,
    reason = "a failed step of the suite is the report"
)]

use shoal_protocol::{EventId, StreamId};

use super::{LONG, events, node, session};
use crate::{LogError, Store, StoreError};

pub(super) async fn numbering(store: &Store) {
    let (id, epoch) = session(store).await;
    let (a, b) = (
        store.log.open(&id, epoch).await.unwrap(),
        store.log.open(&id, epoch).await.unwrap(),
    );
    assert_ne!(a.stream, b.stream);
    assert_ne!(a.stream, StreamId::STANDALONE);
    assert_eq!(a.sequence, 0, "a stream begins before its first event");
    let last = store
        .log
        .append(&id, epoch, a.stream, events(&["1", "2"]), false)
        .await
        .unwrap()
        .last;
    assert_eq!(last, EventId { sequence: 2, ..a });
    let same = store
        .log
        .append(&id, epoch, a.stream, Vec::new(), false)
        .await
        .unwrap()
        .last;
    assert_eq!(
        same, last,
        "an append of nothing tells where the stream stands"
    );
    let other = store
        .log
        .append(&id, epoch, b.stream, events(&["x"]), false)
        .await
        .unwrap()
        .last;
    assert_eq!(other.sequence, 1, "streams are numbered apart");
    let standalone = store
        .log
        .beginning(&id, StreamId::STANDALONE)
        .await
        .unwrap();
    assert_eq!(standalone.sequence, 0);
}

pub(super) async fn resuming(store: &Store) {
    let (id, epoch) = session(store).await;
    let start = store.log.open(&id, epoch).await.unwrap();
    store
        .log
        .append(&id, epoch, start.stream, events(&["1", "2", "3"]), false)
        .await
        .unwrap();
    let page = store
        .log
        .read(
            &id,
            EventId {
                sequence: 1,
                ..start
            },
            1,
        )
        .await
        .unwrap();
    assert_eq!(page.events.len(), 1, "no more than asked for");
    assert_eq!(
        (page.events[0].id.sequence, page.events[0].data.as_ref()),
        (2, b"2".as_slice())
    );
    assert!(!page.finished);
    store
        .log
        .append(&id, epoch, start.stream, events(&["end"]), true)
        .await
        .unwrap();
    let part = store.log.read(&id, start, 2).await.unwrap();
    assert!(!part.finished, "finished only where the end is reached");
    let rest = store.log.read(&id, part.events[1].id, 10).await.unwrap();
    assert_eq!(rest.events.len(), 2);
    assert!(rest.finished);
    let after = store.log.read(&id, rest.events[1].id, 10).await.unwrap();
    assert!(
        after.events.is_empty() && after.finished,
        "the end can be read again and again"
    );
}

pub(super) async fn trimming(store: &Store, capacity: usize) {
    let (id, epoch) = session(store).await;
    let start = store.log.open(&id, epoch).await.unwrap();
    for _ in 0..capacity * 4 {
        store
            .log
            .append(&id, epoch, start.stream, events(&["e"]), false)
            .await
            .unwrap();
    }
    let lost = store.log.read(&id, start, 10).await;
    assert!(
        matches!(lost, Err(LogError::Gone(_))),
        "a trimmed history is told, got {lost:?}"
    );
    let newest = EventId {
        sequence: capacity as u64 * 4 - 1,
        ..start
    };
    assert_eq!(
        store.log.read(&id, newest, 10).await.unwrap().events.len(),
        1
    );
}

pub(super) async fn fencing(store: &Store) {
    let (id, old) = session(store).await;
    let start = store.log.open(&id, old).await.unwrap();
    store.directory.end_lease(&node("a")).await.unwrap();
    let new = store.directory.claim(&id, &node("b")).await.unwrap().epoch;
    let stale = store
        .log
        .append(&id, old, start.stream, events(&["late"]), false)
        .await;
    assert_eq!(stale, Err(LogError::Store(StoreError::Stale)));
    assert_eq!(
        store.log.open(&id, old).await,
        Err(LogError::Store(StoreError::Stale))
    );
    store
        .log
        .append(&id, new, start.stream, events(&["new"]), false)
        .await
        .unwrap();
    let page = store.log.read(&id, start, 10).await.unwrap();
    assert_eq!(
        page.events.len(),
        1,
        "nothing of the former owner was written"
    );
    store.directory.remove(&id, new).await.unwrap();
    assert!(
        store.log.read(&id, start, 10).await.is_err(),
        "streams go with their session"
    );
}

pub(super) async fn concurrent_appends(store: &Store) {
    let (id, epoch) = session(store).await;
    let start = store.log.open(&id, epoch).await.unwrap();
    let appends = (0..16).map(|_| {
        let (log, id) = (store.log.clone(), id.clone());
        tokio::spawn(async move {
            log.append(&id, epoch, start.stream, events(&["a", "b"]), false)
                .await
                .unwrap()
                .last
        })
    });
    let mut last: Vec<u64> = Vec::new();
    for append in appends.collect::<Vec<_>>() {
        last.push(append.await.unwrap().sequence);
    }
    last.sort_unstable();
    assert_eq!(
        last,
        (1..=16).map(|n| n * 2).collect::<Vec<_>>(),
        "each append is one piece"
    );
}

pub(super) async fn foreign_cursors(store: &Store, restarted: &Store) {
    let (id, epoch) = session(store).await;
    let start = store.log.open(&id, epoch).await.unwrap();
    store
        .log
        .append(&id, epoch, start.stream, events(&["1"]), false)
        .await
        .unwrap();
    let gone = |read: Result<_, LogError>, what: &str| {
        assert!(matches!(read, Err(LogError::Gone(_))), "{what}: {read:?}");
    };
    gone(
        store
            .log
            .read(
                &id,
                EventId {
                    sequence: 9,
                    ..start
                },
                1,
            )
            .await,
        "a cursor ahead of the log",
    );
    let unknown = EventId {
        stream: StreamId(999),
        ..start
    };
    gone(store.log.read(&id, unknown, 1).await, "an unknown stream");
    let earlier = EventId {
        epoch: start.epoch.wrapping_add(1),
        ..start
    };
    gone(store.log.read(&id, earlier, 1).await, "another incarnation");

    let owner = node("a");
    restarted.directory.renew_lease(&owner, LONG).await.unwrap();
    restarted
        .directory
        .create(&id, &owner, bytes::Bytes::new(), LONG)
        .await
        .unwrap();
    gone(
        restarted.log.read(&id, start, 1).await,
        "a log that was lost",
    );
}
