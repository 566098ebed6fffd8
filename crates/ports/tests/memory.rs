//! The embedded engines keep the contract.

use std::time::Duration;

use shoal_ports::memory::{MemoryLimits, MemoryStore};
use shoal_ports::{Epoch, LogError, NodeId, SessionId, StoreError, contract};

fn limits() -> MemoryLimits {
    MemoryLimits {
        events_per_stream: 100,
        ..MemoryLimits::default()
    }
}

#[tokio::test]
async fn the_embedded_engines_keep_the_contract() {
    contract::all(|| async { MemoryStore::new(limits()).into_store() }, 100).await;
}

#[tokio::test(start_paused = true)]
async fn limits_hold_and_freed_room_is_used_again() {
    let engine = MemoryStore::new(MemoryLimits {
        bytes_per_session: 1000,
        retention: Duration::from_secs(60),
        ..limits()
    });
    let store = engine.clone().into_store();
    let (session, node) = (SessionId::random(), NodeId::new("a"));
    let hour = Duration::from_secs(3600);
    let epoch: Epoch = store
        .directory
        .create(&session, &node, bytes::Bytes::new(), hour)
        .await
        .unwrap();
    let event = || vec![bytes::Bytes::from(vec![b'x'; 400])];
    let running = store.log.open(&session, epoch).await.unwrap().stream;
    store
        .log
        .append(&session, epoch, running, event(), false)
        .await
        .unwrap();
    store
        .log
        .append(&session, epoch, running, event(), false)
        .await
        .unwrap();
    let full = store
        .log
        .append(&session, epoch, running, event(), false)
        .await;
    assert!(
        matches!(full, Err(LogError::Store(StoreError::Full(_)))),
        "{full:?}"
    );
    assert_eq!(engine.event_bytes(), 800);

    // A finished stream makes room for others when the session is full.
    store
        .log
        .append(&session, epoch, running, Vec::new(), true)
        .await
        .unwrap();
    let next = store.log.open(&session, epoch).await.unwrap().stream;
    store
        .log
        .append(&session, epoch, next, event(), true)
        .await
        .unwrap();
    assert_eq!(engine.event_bytes(), 400);

    // And retention ends by time.
    tokio::time::advance(Duration::from_secs(61)).await;
    store.directory.sweep().await.unwrap();
    assert_eq!(engine.event_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_standalone_stream_forgets_what_is_old() {
    let engine = MemoryStore::new(limits());
    let store = engine.clone().into_store();
    let (session, node) = (SessionId::random(), NodeId::new("a"));
    let hour = Duration::from_secs(3600);
    let directory = &store.directory;
    let epoch = directory
        .create(&session, &node, bytes::Bytes::new(), hour)
        .await
        .unwrap();
    let stream = shoal_protocol::StreamId::STANDALONE;
    let start = store.log.beginning(&session, stream).await.unwrap();
    let append = || {
        let events = vec![bytes::Bytes::from_static(b"news")];
        store.log.append(&session, epoch, stream, events, false)
    };
    let first = append().await.unwrap().last;
    directory.sweep().await.unwrap();
    tokio::time::advance(Duration::from_secs(59)).await;
    directory.sweep().await.unwrap();
    assert_eq!(
        store
            .log
            .read(&session, start, 9)
            .await
            .unwrap()
            .events
            .len(),
        1,
        "kept for its time"
    );
    append().await.unwrap();
    tokio::time::advance(Duration::from_secs(2)).await;
    directory.sweep().await.unwrap();
    let gone = store.log.read(&session, start, 9).await;
    assert!(
        matches!(gone, Err(LogError::Gone(_))),
        "a reader of old news is told: {gone:?}"
    );
    assert_eq!(
        store
            .log
            .read(&session, first, 9)
            .await
            .unwrap()
            .events
            .len(),
        1
    );
    for _ in 0..2 {
        tokio::time::advance(Duration::from_secs(61)).await;
        directory.sweep().await.unwrap();
    }
    assert_eq!(engine.event_bytes(), 0);
}
