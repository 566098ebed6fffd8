use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use async_trait::async_trait;
use shoal_ports::memory::MemoryStore;
use shoal_ports::{
    EventLog, LogError, OpenSession, Page, SessionGateway as _, SessionId, SessionRef,
    SessionTransport, Store, StreamSettings,
};
use shoal_protocol::EventId;
use shoal_session::SessionConfig;

use crate::support::over::{EventLogOver, Over};
use crate::support::{Bench, Read, initialize, read};

fn store(events_per_stream: usize) -> Store {
    let limits = StreamSettings {
        events_per_stream,
        ..StreamSettings::default()
    };
    MemoryStore::new(limits).into_store()
}

fn bench(store: Store) -> Bench {
    let config = SessionConfig {
        streams: StreamSettings {
            tail_events: 2,
            buffer: 2,
            ..StreamSettings::default()
        },
        ..SessionConfig::default()
    };
    Bench::on(store, config)
}

async fn open(bench: &Bench) -> SessionRef {
    let open = OpenSession {
        transport: SessionTransport::SingleStream,
        ..initialize("alice", "2025-11-25")
    };
    let principal = open.principal.clone();
    let session = bench.sessions.open(open).await.unwrap().session;
    SessionRef::new(session, principal)
}

async fn ping(bench: &Bench, to: &SessionRef, ids: std::ops::RangeInclusive<u64>) {
    for id in ids {
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        bench.post(to, &ping).await;
    }
}

fn answered(read: &Read) -> Vec<u64> {
    let id = |text: &String| {
        let message: serde_json::Value = serde_json::from_str(text).unwrap();
        message["id"].as_u64().unwrap()
    };
    read.events.iter().map(|(_, text)| id(text)).collect()
}

fn expect_told(read: &Read, gone: u64) {
    let [notice] = &read.passing[..] else {
        panic!("one notice: {read:?}")
    };
    assert!(notice.contains(r#""method":"notifications/message""#));
    let text = format!("{gone} earlier messages of this session");
    assert!(notice.contains(&text), "{notice}");
}

#[tokio::test]
async fn a_client_without_an_id_gets_what_is_kept_and_all_that_follows() {
    let bench = bench(store(4));
    let alice = open(&bench).await;
    ping(&bench, &alice, 1..=10).await;
    for _ in 0..2 {
        let mut stream = bench.sessions.listen(&alice, None).await.unwrap();
        let kept = read(&mut stream, 5).await;
        expect_told(&kept, 6);
        assert_eq!(answered(&kept), [7, 8, 9, 10]);
    }
    let mut stream = bench.sessions.listen(&alice, None).await.unwrap();
    read(&mut stream, 5).await;
    ping(&bench, &alice, 11..=11).await;
    let next = read(&mut stream, 1).await;
    assert_eq!(answered(&next), [11], "it is not behind any more");
    let cursor = next.cursor();
    let mut resumed = bench.sessions.listen(&alice, Some(cursor)).await.unwrap();
    ping(&bench, &alice, 12..=12).await;
    assert_eq!(answered(&read(&mut resumed, 1).await), [12]);
}

#[tokio::test]
async fn a_client_that_was_too_slow_goes_on_after_the_gap() {
    let bench = bench(store(4));
    let alice = open(&bench).await;
    let mut stream = bench.sessions.listen(&alice, None).await.unwrap();
    ping(&bench, &alice, 1..=3).await;
    let first = read(&mut stream, 1).await;
    assert_eq!(answered(&first), [1]);
    ping(&bench, &alice, 4..=40).await;
    let mut rest = Read::default();
    while answered(&rest).last() != Some(&40) {
        let one = read(&mut stream, 1).await;
        assert!(!one.texts.is_empty(), "the connection has ended: {rest:?}");
        rest.events.extend(one.events);
        rest.passing.extend(one.passing);
    }
    assert!(!rest.passing.is_empty(), "{rest:?}");
    let ids = answered(&rest);
    assert!(
        ids.is_sorted() && ids.ends_with(&[37, 38, 39, 40]),
        "{ids:?}"
    );
    let gone: u64 = 39 - ids.len() as u64;
    let told = rest.passing.iter().map(|notice| {
        let (_, after) = notice.split_once(r#""data":""#).unwrap();
        let (count, _) = after.split_once(' ').unwrap();
        count.parse::<u64>().unwrap()
    });
    assert_eq!(told.sum::<u64>(), gone, "each is counted: {rest:?}");
}

#[tokio::test]
async fn a_client_that_wants_errors_only_is_told_nothing_else() {
    let bench = bench(store(4));
    let alice = open(&bench).await;
    let level =
        r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}"#;
    bench.post(&alice, level).await;
    ping(&bench, &alice, 2..=10).await;
    let mut stream = bench.sessions.listen(&alice, None).await.unwrap();
    let kept = read(&mut stream, 4).await;
    assert_eq!(
        (answered(&kept), kept.passing.len()),
        (vec![7, 8, 9, 10], 0)
    );
}

struct Forgetful {
    inner: Arc<dyn EventLog>,
    forgets: AtomicBool,
}

#[async_trait]
impl EventLogOver for Forgetful {
    fn log(&self) -> &dyn EventLog {
        &*self.inner
    }

    async fn read(
        &self,
        session: &SessionId,
        cursor: EventId,
        limit: usize,
    ) -> Result<Page, LogError> {
        if self.forgets.load(SeqCst) {
            return Ok(Page {
                events: Vec::new(),
                finished: false,
            });
        }
        self.inner.read(session, cursor, limit).await
    }
}

#[tokio::test]
async fn what_a_store_has_lost_is_skipped_and_what_is_at_hand_follows() {
    let mut store = store(1000);
    let log = Arc::new(Forgetful {
        inner: store.log.clone(),
        forgets: AtomicBool::new(false),
    });
    store.log = Arc::new(Over(log.clone()));
    let bench = bench(store);
    let alice = open(&bench).await;
    ping(&bench, &alice, 1..=10).await;
    log.forgets.store(true, SeqCst);
    let mut stream = bench.sessions.listen(&alice, None).await.unwrap();
    let kept = read(&mut stream, 3).await;
    expect_told(&kept, 8);
    assert_eq!(answered(&kept), [9, 10]);
}
