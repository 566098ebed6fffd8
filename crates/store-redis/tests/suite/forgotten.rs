//! A Redis that has lost its newest writes.

use bytes::Bytes;
use redis::Value;
use shoal_ports::{
    Begun, Claim, Epoch, JournalEntry, JournaledCall, LogError, OpenStream, SessionId, Store,
    StoreError,
};
use shoal_protocol::{EventId, StreamId};

use crate::fixture::{LONG, append, begin, config, connect, ending, entry, node, opening, session};
use crate::server::{IN_MEMORY, Server};

const FORGOTTEN: StoreError = StoreError::Forgotten;

struct Lossy {
    server: Server,
    store: Store,
}

impl Lossy {
    async fn new() -> Self {
        let server = Server::on_socket(&IN_MEMORY).await;
        let (_, store) = connect(config(&server.url())).await;
        Self { server, store }
    }

    async fn snapshot(&self) -> Vec<(String, Vec<u8>, i64)> {
        let keys: Vec<String> = self.server.ask(&["KEYS", "*"]).await;
        let mut all = Vec::new();
        for key in keys {
            let Value::BulkString(dump) = self.server.ask(&["DUMP", &key]).await else {
                panic!("a dump of {key}")
            };
            let life: i64 = self.server.ask(&["PTTL", &key]).await;
            all.push((key, dump, life.max(0)));
        }
        all
    }

    async fn put_back(&self, snapshot: &[(String, Vec<u8>, i64)]) {
        let _: Value = self.server.ask(&["FLUSHALL"]).await;
        for (key, dump, life) in snapshot {
            self.server.restore(key, *life, dump).await;
        }
    }

    async fn append(&self, id: &SessionId, epoch: Epoch, after: EventId, text: &str) -> EventId {
        let one = append(after, &[text.as_bytes()]);
        self.store.log.append(id, epoch, one).await.unwrap().last
    }
}

fn texts(events: &[shoal_ports::LoggedEvent]) -> Vec<String> {
    let text = |event: &shoal_ports::LoggedEvent| String::from_utf8_lossy(&event.data).into_owned();
    events.iter().map(text).collect()
}

fn open(last: EventId, newest: &[&'static str], calls: &[&JournalEntry]) -> OpenStream {
    OpenStream {
        last,
        newest: newest
            .iter()
            .map(|text| Bytes::from_static(text.as_bytes()))
            .collect(),
        delivery: None,
        calls: calls
            .iter()
            .map(|entry| JournaledCall {
                entry: (*entry).clone(),
                seen: 2,
            })
            .collect(),
        ended: Vec::new(),
    }
}

#[tokio::test]
async fn no_stream_gets_the_number_of_one_that_was_forgotten() {
    let lossy = Lossy::new().await;
    let (id, epoch) = session(&lossy.store).await;
    let before = lossy.snapshot().await;
    let mut lost = Vec::new();
    for _ in 0..9 {
        lost.push(begin(&lossy.store, &id, epoch).await.0);
    }
    lossy.put_back(&before).await;
    for _ in 0..9 {
        let (anew, _) = begin(&lossy.store, &id, epoch).await;
        assert!(lost.iter().all(|lost| lost.stream != anew.stream));
    }
    for lost in lost {
        let read = lossy.store.log.read(&id, lost, 9).await;
        assert!(matches!(read, Err(LogError::Gone(_))), "{read:?}");
    }
}

#[tokio::test]
async fn an_owner_is_told_that_its_events_were_forgotten_and_enters_them_again() {
    let lossy = Lossy::new().await;
    let (log, journal) = (&lossy.store.log, &lossy.store.journal);
    let (id, epoch) = session(&lossy.store).await;
    let known = entry();
    let start = journal
        .begin(&id, epoch, opening(&known))
        .await
        .unwrap()
        .id();
    let one = lossy.append(&id, epoch, start, "1").await;
    let before = lossy.snapshot().await;
    let two = lossy.append(&id, epoch, one, "2").await;
    let lost = entry();
    let lost_opening = opening(&lost);
    let delivery = lost_opening.delivery;
    let lost_start = journal.begin(&id, epoch, lost_opening).await.unwrap().id();
    let lost_one = lossy.append(&id, epoch, lost_start, "a").await;
    lossy.put_back(&before).await;

    for after in [two, lost_one] {
        let refused = log.append(&id, epoch, append(after, &[b"x"])).await;
        assert_eq!(refused, Err(FORGOTTEN.into()));
        let refused = log.append(&id, epoch, append(after, &[])).await;
        assert_eq!(refused, Err(FORGOTTEN.into()));
    }
    let restored = journal.restore(&id, epoch, open(two, &["1", "2"], &[&known]));
    restored.await.unwrap();
    let stream = OpenStream {
        delivery: Some(delivery),
        ..open(lost_one, &["a"], &[&lost])
    };
    journal.restore(&id, epoch, stream.clone()).await.unwrap();
    journal.restore(&id, epoch, stream).await.unwrap();

    let page = log.read(&id, start, 9).await.unwrap();
    assert_eq!(texts(&page.events), ["1", "2"]);
    assert_eq!(page.events[1].id, two, "under the ids that clients have");
    assert_eq!(journal.delivered(&id, delivery).await, Ok(Some(lost_start)));
    let running = journal.running(&id, epoch).await.unwrap();
    let calls: Vec<_> = running.iter().flat_map(|stream| &stream.calls).collect();
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().all(|call| call.seen == 2));
    assert_eq!(calls[1].entry, lost);
    for (last, call) in [(two, known.call), (lost_one, lost.call)] {
        let end = ending(last, &[b"end"], call);
        assert!(log.append(&id, epoch, end).await.unwrap().finished);
    }
    assert_eq!(journal.running(&id, epoch).await, Ok(Vec::new()));
    let page = log.read(&id, lost_one, 9).await.unwrap();
    assert_eq!(
        (texts(&page.events), page.finished),
        (vec!["end".to_owned()], true)
    );
}

#[tokio::test]
async fn a_call_whose_end_was_forgotten_is_not_open_once_its_owner_has_entered_it_again() {
    let lossy = Lossy::new().await;
    let (id, epoch) = session(&lossy.store).await;
    let (log, journal) = (&lossy.store.log, &lossy.store.journal);
    let (first, second) = (entry(), entry());
    let mut start = None;
    for call in [&first, &second] {
        let opening = shoal_ports::Begin {
            stream: Some(StreamId::STANDALONE),
            ..opening(call)
        };
        start = Some(journal.begin(&id, epoch, opening).await.unwrap().id());
    }
    let before = lossy.snapshot().await;
    let end = ending(start.unwrap(), &[b"end"], first.call);
    let last = log.append(&id, epoch, end).await.unwrap().last;
    lossy.put_back(&before).await;
    let stream = OpenStream {
        ended: vec![first.call],
        ..open(last, &["end"], &[&second])
    };
    for _ in 0..2 {
        journal.restore(&id, epoch, stream.clone()).await.unwrap();
        let running = journal.running(&id, epoch).await.unwrap();
        let calls: Vec<_> = running.iter().flat_map(|stream| &stream.calls).collect();
        let calls: Vec<_> = calls.iter().map(|known| known.entry.call).collect();
        assert_eq!(calls, [second.call]);
    }
    let end = ending(last, &[b"end"], second.call);
    log.append(&id, epoch, end).await.unwrap();
    assert_eq!(journal.running(&id, epoch).await, Ok(Vec::new()));
}

#[tokio::test]
async fn what_nobody_knows_any_more_is_gone_and_not_silently_missing() {
    let lossy = Lossy::new().await;
    let (id, epoch) = session(&lossy.store).await;
    let call = entry();
    let journal = &lossy.store.journal;
    let start = journal
        .begin(&id, epoch, opening(&call))
        .await
        .unwrap()
        .id();
    let one = lossy.append(&id, epoch, start, "1").await;
    let before = lossy.snapshot().await;
    let two = lossy.append(&id, epoch, one, "2").await;
    let three = lossy.append(&id, epoch, two, "3").await;
    lossy.put_back(&before).await;
    let restored = journal.restore(&id, epoch, open(three, &["3"], &[&call]));
    restored.await.unwrap();
    let end = ending(three, &[b"end"], call.call);
    lossy.store.log.append(&id, epoch, end).await.unwrap();
    for lost in [start, one] {
        let read = lossy.store.log.read(&id, lost, 9).await;
        assert!(matches!(read, Err(LogError::Gone(_))), "{read:?}");
    }
    let oldest = lossy.store.log.oldest(&id, start.stream).await;
    assert_eq!(
        oldest,
        Ok(two),
        "whoever has no id begins after what is gone"
    );
    let page = lossy.store.log.read(&id, two, 9).await.unwrap();
    assert_eq!(texts(&page.events), ["3", "end"]);
    let page = lossy.store.log.read(&id, three, 9).await.unwrap();
    assert_eq!(texts(&page.events), ["end"]);
}

#[tokio::test]
async fn the_next_owner_gives_no_event_the_id_of_one_that_was_forgotten() {
    let lossy = Lossy::new().await;
    let log = &lossy.store.log;
    let (id, epoch) = session(&lossy.store).await;
    let (start, call) = begin(&lossy.store, &id, epoch).await;
    let one = lossy.append(&id, epoch, start, "1").await;
    let standalone = log.last(&id, StreamId::STANDALONE).await.unwrap();
    let news = lossy.append(&id, epoch, standalone, "news").await;
    let before = lossy.snapshot().await;
    let lost = [
        lossy.append(&id, epoch, one, "lost").await,
        lossy.append(&id, epoch, news, "lost").await,
    ];
    lossy.put_back(&before).await;
    let directory = &lossy.store.directory;
    directory.end_lease(&node("a")).await.unwrap();
    let new = directory.claim(&id, &node("b")).await.unwrap().epoch;

    let running = lossy.store.journal.running(&id, new).await.unwrap();
    assert_eq!(running[0].last, one);
    let two = lossy.append(&id, new, one, "other").await;
    let other = lossy.append(&id, new, news, "other").await;
    assert!(![two, other].iter().any(|id| lost.contains(id)));
    for lost in lost {
        let read = log.read(&id, lost, 9).await;
        assert!(matches!(read, Err(LogError::Gone(_))), "{read:?}");
    }
    for (cursor, next) in [(one, two), (news, other)] {
        let page = log.read(&id, cursor, 9).await.unwrap();
        assert_eq!(texts(&page.events), ["other"]);
        assert_eq!(page.events[0].id, next);
    }
    let page = log.read(&id, start, 9).await.unwrap();
    assert_eq!(texts(&page.events), ["1", "other"]);
    assert_eq!(page.events[0].id, one, "ids stay");
    let end = ending(two, &[b"end"], call);
    let last = log.append(&id, new, end).await.unwrap().last;
    let page = log.read(&id, last, 9).await.unwrap();
    assert!(page.finished && page.events.is_empty());
    let third = directory.claim(&id, &node("b")).await.unwrap().epoch;
    let latest = lossy.append(&id, third, other, "latest").await;
    let page = log.read(&id, news, 9).await.unwrap();
    let ids: Vec<_> = page.events.iter().map(|event| event.id).collect();
    assert_eq!(ids, [other, latest]);
    let nonces = [news.epoch, other.epoch, latest.epoch];
    assert!(nonces[0] != nonces[1] && nonces[1] != nonces[2]);
}

#[tokio::test]
async fn a_claim_that_was_forgotten_is_entered_again_unless_there_is_a_newer_one() {
    let lossy = Lossy::new().await;
    let (directory, journal) = (&lossy.store.directory, &lossy.store.journal);
    let (id, first) = session(&lossy.store).await;
    directory.end_lease(&node("a")).await.unwrap();
    let before = lossy.snapshot().await;
    directory.renew_lease(&node("b"), LONG).await.unwrap();
    let claim = directory.claim(&id, &node("b")).await.unwrap();
    let kept = Bytes::from_static(b"what a tool has kept");
    directory
        .save(&id, claim.epoch, kept.clone(), LONG)
        .await
        .unwrap();
    lossy.put_back(&before).await;

    let asked = [(id.clone(), claim.epoch)];
    assert_eq!(
        directory.held(&asked).await,
        Ok(vec![true]),
        "by nobody newer"
    );
    let record = || Bytes::from_static(b"x");
    let epoch = claim.epoch;
    assert_eq!(
        directory.save(&id, epoch, record(), LONG).await,
        Err(FORGOTTEN)
    );
    assert_eq!(
        directory.release(&id, epoch, record(), LONG).await,
        Err(FORGOTTEN)
    );
    let begun = journal.begin(&id, epoch, opening(&entry())).await;
    assert_eq!(begun, Err(FORGOTTEN.into()));
    assert_eq!(journal.running(&id, epoch).await, Err(FORGOTTEN.into()));

    let claim = Claim {
        record: kept.clone(),
        ..claim
    };
    let owner = node("b");
    let restored = directory.restore(&id, claim.clone(), &owner, LONG);
    restored.await.unwrap();
    directory.renew_lease(&node("b"), LONG).await.unwrap();
    let placed = directory.lookup(&id).await.unwrap().unwrap();
    assert_eq!((placed.owner, placed.epoch), (Some(node("b")), epoch));
    let stale = directory.save(&id, first, record(), LONG).await;
    assert_eq!(
        stale,
        Err(StoreError::Stale),
        "the owner before is fenced again"
    );
    let begun = journal.begin(&id, epoch, opening(&entry())).await;
    assert!(matches!(begun, Ok(Begun::Now(_))));
    let newer = directory.claim(&id, &node("b")).await.unwrap();
    assert!(newer.epoch > epoch);
    assert_eq!(newer.record, kept, "with what the owner knew");
    let late = directory.restore(&id, claim, &node("b"), LONG).await;
    assert_eq!(late, Err(StoreError::Stale));
    directory.remove(&id, newer.epoch).await.unwrap();
}

#[tokio::test]
async fn two_claims_from_the_same_past_get_different_epochs() {
    let lossy = Lossy::new().await;
    let (id, _) = session(&lossy.store).await;
    let keys: Vec<String> = lossy.server.ask(&["KEYS", "*:s"]).await;
    let _: Value = lossy
        .server
        .ask(&["HSET", &keys[0], "e", "4000000000000000"])
        .await;
    let before = lossy.snapshot().await;
    let claim = async || {
        lossy
            .store
            .directory
            .claim(&id, &node("a"))
            .await
            .unwrap()
            .epoch
    };
    let first = claim().await;
    lossy.put_back(&before).await;
    assert_ne!(claim().await, first);
}
