#![allow(
    clippy::unwrap_used,
    reason = "a failed step of the suite is the report"
)]

use shoal_protocol::{EventId, StreamId};

use super::{LONG, append, begin, ending, entry, new_session, node, session};
use crate::{Append, CallProgress, LogError, Store, StoreError};

fn at(id: EventId, sequence: u64) -> EventId {
    EventId { sequence, ..id }
}

pub(super) async fn numbering(store: &Store) {
    let (id, epoch) = session(store).await;
    let a = begin(store, &id, epoch, vec![entry(1)]).await;
    let b = begin(store, &id, epoch, vec![entry(2)]).await;
    assert_ne!(a.stream, b.stream);
    assert_ne!(a.stream, StreamId::STANDALONE);
    assert_eq!(a.sequence, 0, "a stream begins before its first event");
    let log = &store.log;
    let last = log.append(&id, epoch, append(a, &["1", "2"])).await;
    let last = last.unwrap();
    assert_eq!((last.last, last.kept), (at(a, 2), 2));
    assert_eq!(log.last(&id, a.stream).await.unwrap(), at(a, 2));
    let same = log.append(&id, epoch, append(at(a, 2), &[])).await;
    assert_eq!(same.unwrap().last, at(a, 2), "an append of nothing");
    let other = log.append(&id, epoch, append(b, &["x"])).await.unwrap();
    assert_eq!(other.last.sequence, 1, "streams are numbered apart");
    assert_eq!(other.kept, 3, "bytes are counted together");
    assert_eq!(log.oldest(&id, a.stream).await.unwrap(), a);
    let standalone = log.last(&id, StreamId::STANDALONE).await.unwrap();
    assert_eq!(standalone.sequence, 0);
    assert_eq!(log.oldest(&id, StreamId::STANDALONE).await, Ok(standalone));
    for unknown in [
        log.last(&id, StreamId(999)).await,
        log.oldest(&id, StreamId(999)).await,
    ] {
        assert!(matches!(unknown, Err(LogError::Gone(_))), "{unknown:?}");
    }
}

pub(super) async fn resuming(store: &Store) {
    let (id, epoch) = session(store).await;
    let entry = entry(1);
    let start = begin(store, &id, epoch, vec![entry.clone()]).await;
    let log = &store.log;
    let three = append(start, &["1", "2", "3"]);
    log.append(&id, epoch, three).await.unwrap();
    let page = log.read(&id, at(start, 1), 1).await.unwrap();
    assert_eq!(page.events.len(), 1, "no more than asked for");
    assert_eq!(
        (page.events[0].id, page.events[0].data.as_ref()),
        (at(start, 2), b"2".as_slice())
    );
    assert!(!page.finished);
    let end = ending(at(start, 3), &["end"], entry.call);
    log.append(&id, epoch, end).await.unwrap();
    let part = log.read(&id, start, 2).await.unwrap();
    assert!(!part.finished, "finished only where the end is reached");
    let rest = log.read(&id, part.events[1].id, 10).await.unwrap();
    assert_eq!(rest.events.len(), 2);
    assert!(rest.finished);
    let after = log.read(&id, rest.events[1].id, 10).await.unwrap();
    assert!(
        after.events.is_empty() && after.finished,
        "the end can be read again and again"
    );
}

pub(super) async fn trimming(store: &Store, capacity: usize) {
    let (id, epoch) = session(store).await;
    let start = begin(store, &id, epoch, vec![entry(1)]).await;
    let last = capacity as u64 * 4;
    for after in 0..last {
        let one = append(at(start, after), &["e"]);
        let appended = store.log.append(&id, epoch, one).await.unwrap();
        assert!(
            appended.kept <= capacity as u64,
            "what is trimmed is not counted"
        );
    }
    let lost = store.log.read(&id, start, 10).await;
    assert!(
        matches!(lost, Err(LogError::Gone(_))),
        "a trimmed history is told, got {lost:?}"
    );
    let newest = store.log.read(&id, at(start, last - 1), 10).await.unwrap();
    assert_eq!(newest.events.len(), 1);

    let oldest = store.log.oldest(&id, start.stream).await.unwrap();
    assert_eq!(oldest, at(start, last - capacity as u64));
    let kept = store.log.read(&id, oldest, capacity * 2).await.unwrap();
    assert_eq!(kept.events.len(), capacity, "all that is kept");

    let many = vec!["m"; capacity * 2];
    let appended = store.log.append(&id, epoch, append(at(start, last), &many));
    let appended = appended.await.unwrap();
    let last = last + capacity as u64 * 2;
    assert_eq!(
        (appended.last.sequence, appended.kept),
        (last, capacity as u64)
    );
    let kept = store
        .log
        .read(&id, at(start, last - capacity as u64), capacity);
    assert_eq!(kept.await.unwrap().events.len(), capacity);
    let again = store.log.append(
        &id,
        epoch,
        append(at(start, last - capacity as u64 * 2), &many),
    );
    assert_eq!(
        again.await,
        Ok(appended),
        "what was trimmed is not stored again"
    );
}

pub(super) async fn fencing(store: &Store) {
    let (id, old) = session(store).await;
    let start = begin(store, &id, old, vec![entry(1)]).await;
    store.directory.end_lease(&node("a")).await.unwrap();
    let new = store.directory.claim(&id, &node("b")).await.unwrap().epoch;
    let stale = store.log.append(&id, old, append(start, &["late"])).await;
    assert_eq!(stale, Err(LogError::Store(StoreError::Stale)));
    let nothing = store.log.append(&id, old, append(start, &[])).await;
    assert_eq!(nothing, Err(LogError::Store(StoreError::Stale)));
    let fresh = append(start, &["new"]);
    store.log.append(&id, new, fresh).await.unwrap();
    // The ids of a recreated stream would have another epoch.
    let oldest = store.log.oldest(&id, start.stream).await;
    assert_eq!(oldest, Ok(start));
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

pub(super) async fn repeated_appends(store: &Store) {
    let (id, epoch) = session(store).await;
    let entry = entry(1);
    let start = begin(store, &id, epoch, vec![entry.clone()]).await;
    let log = &store.log;
    let progress = Append {
        progress: Some(CallProgress {
            call: entry.call,
            seen: 2,
            ended: false,
        }),
        ..append(start, &["1", "2"])
    };
    let first = log.append(&id, epoch, progress.clone()).await.unwrap();
    let again = log.append(&id, epoch, progress).await.unwrap();
    assert_eq!(first, again);
    let other = log.append(&id, epoch, append(start, &["x"])).await;
    assert_eq!(
        other,
        Err(LogError::Store(StoreError::Stale)),
        "another writer's events are not taken for one's own"
    );
    let ahead = log.append(&id, epoch, append(at(start, 7), &["x"])).await;
    assert_eq!(ahead, Err(LogError::Store(StoreError::Forgotten)));
    let end = ending(at(start, 2), &["end"], entry.call);
    let first = log.append(&id, epoch, end.clone()).await.unwrap();
    let again = log.append(&id, epoch, end).await.unwrap();
    assert_eq!(first, again);
    assert!(again.finished);
    let page = log.read(&id, start, 10).await.unwrap();
    assert_eq!(page.events.len(), 3, "nothing is there twice");
}

pub(super) async fn late_repetitions(store: &Store) {
    let (id, epoch) = session(store).await;
    let entry = entry(1);
    let start = begin(store, &id, epoch, vec![entry.clone()]).await;
    let log = &store.log;
    let stale = Err(LogError::Store(StoreError::Stale));
    let (first, second) = (append(start, &["1"]), append(at(start, 1), &["2"]));
    log.append(&id, epoch, first.clone()).await.unwrap();
    log.append(&id, epoch, second.clone()).await.unwrap();
    assert_eq!(log.append(&id, epoch, first.clone()).await, stale);
    let end = ending(at(start, 2), &["end"], entry.call);
    log.append(&id, epoch, end).await.unwrap();
    for late in [first, second] {
        assert_eq!(log.append(&id, epoch, late).await, stale);
    }
    let page = log.read(&id, start, 10).await.unwrap();
    assert_eq!(page.events.len(), 3);
    assert!(page.finished);
}

pub(super) async fn finished_streams(store: &Store) {
    let (id, epoch) = session(store).await;
    let (one, silent) = (entry(1), entry(2));
    let start = begin(store, &id, epoch, vec![one.clone()]).await;
    let log = &store.log;
    let end = ending(start, &["end"], one.call);
    let ended = log.append(&id, epoch, end.clone()).await.unwrap();
    let after = log.append(&id, epoch, append(ended.last, &["x"])).await;
    assert!(matches!(after, Err(LogError::Gone(_))), "{after:?}");
    assert_eq!(log.append(&id, epoch, end).await, Ok(ended));
    let page = log.read(&id, start, 10).await.unwrap();
    assert_eq!(page.events.len(), 1, "nothing comes after the end");

    let start = begin(store, &id, epoch, vec![silent.clone()]).await;
    let end = ending(start, &[], silent.call);
    for _ in 0..2 {
        let ended = log.append(&id, epoch, end.clone()).await.unwrap();
        assert_eq!((ended.last, ended.finished, ended.kept), (start, true, 3));
    }
    let page = log.read(&id, start, 10).await.unwrap();
    assert!(page.finished && page.events.is_empty());
}

pub(super) async fn forgotten_streams(store: &Store) {
    let (id, epoch) = session(store).await;
    let entry = entry(1);
    let start = begin(store, &id, epoch, vec![entry.clone()]).await;
    let nowhere = EventId {
        stream: StreamId(start.stream.0.wrapping_add(1).max(2)),
        ..start
    };
    let forgotten = Err(LogError::Store(StoreError::Forgotten));
    for append in [
        append(nowhere, &["x"]),
        append(nowhere, &[]),
        ending(nowhere, &["x"], entry.call),
        ending(at(start, 1), &["x"], entry.call),
    ] {
        let refused = store.log.append(&id, epoch, append).await;
        assert_eq!(refused, forgotten);
    }
    let running = store.journal.running(&id, epoch).await.unwrap();
    assert_eq!(running.len(), 1, "a refused end ends nothing");
    store.directory.remove(&id, epoch).await.unwrap();
    let nobodys = store.log.append(&id, epoch, append(start, &["x"])).await;
    assert_eq!(nobodys, Err(LogError::Store(StoreError::NotFound)));
}

pub(super) async fn concurrent_appends(store: &Store) {
    let (id, epoch) = session(store).await;
    let start = begin(store, &id, epoch, vec![entry(1)]).await;
    let appends = (0..16).map(|n| {
        let (log, id) = (store.log.clone(), id.clone());
        let texts = [format!("{n}-a"), format!("{n}-b")];
        tokio::spawn(async move {
            let mut after = start;
            loop {
                let piece = append(after, &[&texts[0], &texts[1]]);
                match log.append(&id, epoch, piece).await {
                    // Appends of equal length end at the same position, so the store may take this
                    // one for a repetition of another.
                    Ok(_) | Err(LogError::Store(StoreError::Stale)) => {}
                    Err(error) => panic!("{error}"),
                }
                let page = log.read(&id, start, 100).await.unwrap();
                if page.events.iter().any(|event| event.data == texts[0]) {
                    return;
                }
                after = log.last(&id, start.stream).await.unwrap();
            }
        })
    });
    for append in appends.collect::<Vec<_>>() {
        append.await.unwrap();
    }
    let page = store.log.read(&id, start, 100).await.unwrap();
    assert_eq!(page.events.len(), 32);
    for pair in page.events.chunks(2) {
        let texts = [&pair[0].data, &pair[1].data].map(|data| String::from_utf8_lossy(data));
        let [first, second] = texts;
        assert_eq!(
            first.strip_suffix("-a"),
            second.strip_suffix("-b"),
            "each append is one piece"
        );
    }
}

pub(super) async fn cursors_of_other_sessions(store: &Store) {
    let (one, epoch) = session(store).await;
    let (other, others_epoch) = session(store).await;
    let ones = begin(store, &one, epoch, vec![entry(1)]).await;
    let others = begin(store, &other, others_epoch, vec![entry(1)]).await;
    let log = &store.log;
    for (id, epoch, start) in [(&one, epoch, ones), (&other, others_epoch, others)] {
        log.append(id, epoch, append(start, &["1"])).await.unwrap();
    }
    let standalone = log.last(&one, StreamId::STANDALONE).await.unwrap();
    for cursor in [ones, at(ones, 1), standalone] {
        let foreign = log.read(&other, cursor, 10).await;
        assert!(
            matches!(foreign, Err(LogError::Gone(_))),
            "{cursor}: {foreign:?}"
        );
        log.read(&one, cursor, 10).await.unwrap();
    }
}

pub(super) async fn foreign_cursors(store: &Store, restarted: &Store) {
    let (id, epoch) = session(store).await;
    let start = begin(store, &id, epoch, vec![entry(1)]).await;
    let log = &store.log;
    log.append(&id, epoch, append(start, &["1"])).await.unwrap();
    let gone = |read: Result<_, LogError>, what: &str| {
        assert!(matches!(read, Err(LogError::Gone(_))), "{what}: {read:?}");
    };
    let ahead = log.read(&id, at(start, 9), 1).await;
    gone(ahead, "a cursor ahead of the log");
    let unknown = EventId {
        stream: StreamId(999),
        ..start
    };
    gone(log.read(&id, unknown, 1).await, "an unknown stream");
    let earlier = EventId {
        epoch: start.epoch.wrapping_add(1),
        ..start
    };
    gone(log.read(&id, earlier, 1).await, "another incarnation");

    let owner = node("a");
    restarted.directory.renew_lease(&owner, LONG).await.unwrap();
    let created = restarted.directory.create(new_session(&id, &owner)).await;
    created.unwrap();
    let lost = restarted.log.read(&id, start, 1).await;
    gone(lost, "a log that was lost");
}
