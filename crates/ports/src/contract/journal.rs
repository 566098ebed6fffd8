#![allow(
    clippy::unwrap_used,
    reason = "a failed step of the suite is the report"
)]

use shoal_protocol::{EventId, StreamId};

use super::{append, begin, ending, entry, node, session};
use crate::{
    Append, Begin, Begun, Binding, CallProgress, DeliveryId, JournaledCall, LedgerNumber, LogError,
    RunningStream, Store, StoreError, WorkerId,
};

fn at(id: EventId, sequence: u64) -> EventId {
    EventId { sequence, ..id }
}

pub(super) async fn entries(store: &Store) {
    let (id, epoch) = session(store).await;
    let (one, two, three) = (entry(1), entry(2), entry(3));
    let first = begin(store, &id, epoch, vec![one.clone()]).await;
    let batch = begin(store, &id, epoch, vec![two.clone(), three.clone()]).await;
    assert_eq!(first.sequence, 0, "a stream begins before its first event");
    assert_ne!(first.stream, batch.stream);
    let fresh = |entry| JournaledCall { entry, seen: 0 };
    let both = RunningStream {
        last: batch,
        calls: vec![fresh(two.clone()), fresh(three.clone())],
    };
    let expected = vec![
        RunningStream {
            last: first,
            calls: vec![fresh(one.clone())],
        },
        both.clone(),
    ];
    let running = store.journal.running(&id, epoch).await.unwrap();
    assert_eq!(running, expected, "oldest first");

    let progress = Append {
        progress: Some(CallProgress {
            call: one.call,
            seen: 4,
            ended: false,
        }),
        ..append(first, &["progress"])
    };
    let appended = store.log.append(&id, epoch, progress).await.unwrap();
    assert!(!appended.finished);
    let running = store.journal.running(&id, epoch).await.unwrap();
    assert_eq!(running[0].last, at(first, 1));
    assert_eq!(running[0].calls[0].seen, 4, "how far the call has come");
    let end = ending(at(first, 1), &["result"], one.call);
    let ended = store.log.append(&id, epoch, end).await.unwrap();
    assert!(ended.finished, "with its only call");
    let running = store.journal.running(&id, epoch).await.unwrap();
    assert_eq!(running, vec![both], "the end closes the entry");

    store.directory.end_lease(&node("a")).await.unwrap();
    let new = store.directory.claim(&id, &node("b")).await.unwrap().epoch;
    let late = Begin {
        delivery: DeliveryId::generate(),
        stream: None,
        running: false,
        entries: vec![entry(4)],
    };
    let stale = store.journal.begin(&id, epoch, late).await;
    assert_eq!(stale, Err(LogError::Store(StoreError::Stale)));
    let stale = store.journal.running(&id, epoch).await;
    assert_eq!(stale, Err(LogError::Store(StoreError::Stale)));
    let running = store.journal.running(&id, new).await.unwrap();
    assert_eq!(running.len(), 1, "a new owner finds the calls");

    let one_of_two = ending(batch, &["r2"], two.call);
    let appended = store.log.append(&id, new, one_of_two).await.unwrap();
    assert!(!appended.finished, "a call of the batch still runs");
    let running = store.journal.running(&id, new).await.unwrap();
    assert_eq!(running[0].calls, vec![fresh(three.clone())]);
    let last = ending(at(batch, 1), &["r3"], three.call);
    let appended = store.log.append(&id, new, last).await.unwrap();
    assert!(appended.finished);
    assert!(store.journal.running(&id, new).await.unwrap().is_empty());
}

pub(super) async fn deliveries(store: &Store) {
    let (id, epoch) = session(store).await;
    let entry = entry(1);
    let opening = Begin {
        delivery: DeliveryId::generate(),
        stream: None,
        running: false,
        entries: vec![entry.clone()],
    };
    let delivery = opening.delivery;
    let unknown = store.journal.delivered(&id, delivery).await.unwrap();
    assert_eq!(unknown, None);
    let begun = store.journal.begin(&id, epoch, opening).await.unwrap();
    let Begun::Now(begun) = begun else {
        panic!("nothing was begun before")
    };
    let found = store.journal.delivered(&id, delivery).await.unwrap();
    assert_eq!(found, Some(begun), "while it runs");
    let end = ending(begun, &["result"], entry.call);
    store.log.append(&id, epoch, end).await.unwrap();
    let found = store.journal.delivered(&id, delivery).await.unwrap();
    assert_eq!(found, Some(begun), "and when it has finished");
    assert!(store.log.read(&id, begun, 9).await.unwrap().finished);
}

pub(super) async fn existing_streams(store: &Store) {
    let (id, epoch) = session(store).await;
    let standalone = store.log.last(&id, StreamId::STANDALONE).await.unwrap();
    let news = append(standalone, &["news"]);
    store.log.append(&id, epoch, news).await.unwrap();
    let entry = entry(1);
    let joining = Begin {
        delivery: DeliveryId::generate(),
        stream: Some(StreamId::STANDALONE),
        running: false,
        entries: vec![entry.clone()],
    };
    let begun = store.journal.begin(&id, epoch, joining).await.unwrap();
    assert_eq!(
        begun,
        Begun::Now(at(standalone, 1)),
        "where the stream stands"
    );
    let begun = at(standalone, 1);
    let end = ending(begun, &["result"], entry.call);
    let appended = store.log.append(&id, epoch, end).await.unwrap();
    assert!(!appended.finished, "the standalone stream never is");
    assert!(store.journal.running(&id, epoch).await.unwrap().is_empty());
}

pub(super) async fn one_stream_a_delivery(store: &Store) {
    let (id, epoch) = session(store).await;
    let (first, second) = (entry(1), entry(1));
    let delivery = DeliveryId::generate();
    let begin = |entry: &crate::JournalEntry| Begin {
        delivery,
        stream: None,
        running: false,
        entries: vec![entry.clone()],
    };
    let begun = store.journal.begin(&id, epoch, begin(&first)).await;
    let Begun::Now(stream) = begun.unwrap() else {
        panic!("nothing was begun before")
    };
    let progress = append(stream, &["progress"]);
    store.log.append(&id, epoch, progress).await.unwrap();
    let again = store.journal.begin(&id, epoch, begin(&second)).await;
    assert_eq!(again, Ok(Begun::Before(stream)), "while the first runs");
    let end = ending(at(stream, 1), &["result"], first.call);
    store.log.append(&id, epoch, end).await.unwrap();
    let again = store.journal.begin(&id, epoch, begin(&second)).await;
    assert_eq!(again, Ok(Begun::Before(stream)), "and when it has ended");
    let running = store.journal.running(&id, epoch).await.unwrap();
    assert!(running.is_empty(), "the second was not begun");
}

pub(super) async fn rebound_calls(store: &Store) {
    let (id, epoch) = session(store).await;
    let entry = entry(1);
    let begun = begin(store, &id, epoch, vec![entry.clone()]).await;
    let other = Binding {
        worker: WorkerId::new("other"),
        ledger: Some(LedgerNumber {
            incarnation: u64::MAX - 1,
            number: 3,
        }),
    };
    let rebound = store.journal.rebind(&id, epoch, entry.call, &other).await;
    rebound.unwrap();
    let running = store.journal.running(&id, epoch).await.unwrap();
    assert_eq!(running[0].calls[0].entry.worker, Some(other.worker.clone()));
    assert_eq!(running[0].calls[0].entry.ledger, other.ledger);
    assert_eq!(running[0].calls[0].entry.start, entry.start);
    assert_eq!(running[0].last, begun);

    let plain = Binding {
        worker: WorkerId::new("plain"),
        ledger: None,
    };
    let rebound = store.journal.rebind(&id, epoch, entry.call, &plain).await;
    rebound.unwrap();
    let running = store.journal.running(&id, epoch).await.unwrap();
    assert_eq!(running[0].calls[0].entry.worker, Some(plain.worker));
    assert_eq!(running[0].calls[0].entry.ledger, None);

    store.directory.end_lease(&node("a")).await.unwrap();
    store.directory.claim(&id, &node("b")).await.unwrap();
    let stale = store.journal.rebind(&id, epoch, entry.call, &other).await;
    assert_eq!(stale, Err(StoreError::Stale));
}

pub(super) async fn repeated_begins(store: &Store) {
    let (id, epoch) = session(store).await;
    let (one, two) = (entry(1), entry(2));
    let opening = Begin {
        delivery: DeliveryId::generate(),
        stream: None,
        running: false,
        entries: vec![one.clone(), two.clone()],
    };
    let joining = Begin {
        delivery: DeliveryId::generate(),
        stream: Some(StreamId::STANDALONE),
        running: false,
        entries: vec![entry(3)],
    };
    let journal = &store.journal;
    for begin in [&opening, &joining] {
        let begun = journal.begin(&id, epoch, begin.clone()).await;
        assert!(matches!(begun, Ok(Begun::Now(_))), "{begun:?}");
        assert_eq!(journal.begin(&id, epoch, begin.clone()).await, begun);
    }
    let begun = journal.begin(&id, epoch, opening.clone()).await.unwrap();
    let running = journal.running(&id, epoch).await.unwrap();
    let calls = running.iter().map(|stream| stream.calls.len());
    assert_eq!(calls.sum::<usize>(), 3, "nothing is there twice");

    let progress = append(begun.id(), &["progress"]);
    let stands = store.log.append(&id, epoch, progress).await.unwrap().last;
    let again = journal.begin(&id, epoch, opening.clone()).await;
    assert_eq!(again, Ok(Begun::Now(stands)), "where the stream stands now");
    for (after, call) in [(stands, one.call), (at(stands, 2), two.call)] {
        let end = ending(after, &["result"], call);
        store.log.append(&id, epoch, end).await.unwrap();
    }
    let again = journal.begin(&id, epoch, opening).await;
    let before = Begun::Before(at(begun.id(), 0));
    assert_eq!(again, Ok(before), "what has ended is not begun");
    assert_eq!(journal.running(&id, epoch).await.unwrap().len(), 1);
}

pub(super) async fn repeated_ends(store: &Store) {
    let (id, epoch) = session(store).await;
    let (one, two, three) = (entry(1), entry(2), entry(3));
    let batch = vec![one.clone(), two.clone(), three.clone()];
    let start = begin(store, &id, epoch, batch).await;
    let ends = [
        (ending(start, &["r1"], one.call), vec![&two, &three]),
        (ending(at(start, 1), &[], two.call), vec![&three]),
        (ending(at(start, 1), &["r3"], three.call), vec![]),
    ];
    for (end, left) in ends {
        for _ in 0..2 {
            let ended = store.log.append(&id, epoch, end.clone()).await.unwrap();
            assert_eq!(ended.finished, left.is_empty());
            let running = store.journal.running(&id, epoch).await.unwrap();
            let calls = running.iter().flat_map(|stream| &stream.calls);
            let calls: Vec<_> = calls.map(|call| call.entry.call).collect();
            let left: Vec<_> = left.iter().map(|entry| entry.call).collect();
            assert_eq!(calls, left);
        }
    }
    let page = store.log.read(&id, start, 10).await.unwrap();
    assert_eq!(page.events.len(), 2);
    assert!(page.finished);
}
