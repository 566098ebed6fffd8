use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::memory::MemoryStore;
use shoal_ports::{
    Append, Appended, Delivered, Epoch, EventLog, Journal, LogError, NodeId, OpenSession,
    OpenStream, SessionGateway as _, SessionId, SessionRef, SessionTransport, Store, StoreError,
    StreamSettings,
};
use shoal_session::SessionConfig;

use crate::support::over::{EventLogOver, JournalOver, Over};
use crate::support::{Bench, call, initialize, post, read, within};

/// A log whose appends fail with `says` until a stream is restored.
struct Lossy {
    store: Store,
    says: Mutex<Option<StoreError>>,
    said: AtomicUsize,
    told: Mutex<Vec<OpenStream>>,
}

#[async_trait]
impl EventLogOver for Lossy {
    fn log(&self) -> &dyn EventLog {
        &*self.store.log
    }

    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError> {
        if let Some(error) = self.says.lock().clone() {
            self.said.fetch_add(1, SeqCst);
            return Err(error.into());
        }
        self.store.log.append(session, epoch, append).await
    }
}

#[async_trait]
impl JournalOver for Lossy {
    fn journal(&self) -> &dyn Journal {
        &*self.store.journal
    }

    async fn restore(&self, _: &SessionId, _: Epoch, stream: OpenStream) -> Result<(), StoreError> {
        self.told.lock().push(stream);
        *self.says.lock() = None;
        Ok(())
    }
}

fn lossy(config: SessionConfig) -> (Bench, Arc<Lossy>) {
    let store = MemoryStore::new(StreamSettings::default()).into_store();
    let lossy = Arc::new(Lossy {
        store: store.clone(),
        says: Mutex::default(),
        said: AtomicUsize::new(0),
        told: Mutex::default(),
    });
    let store = Store {
        log: Arc::new(Over(lossy.clone())),
        journal: Arc::new(Over(lossy.clone())),
        ..store
    };
    (Bench::on(store, config), lossy)
}

#[tokio::test]
async fn the_next_owner_finds_what_the_store_had_lost() {
    let (bench, lossy) = lossy(SessionConfig::default());
    let open = OpenSession {
        transport: SessionTransport::SingleStream,
        ..initialize("alice", "2025-11-25")
    };
    let principal = open.principal.clone();
    let session = bench.sessions.open(open).await.unwrap().session;
    let to = SessionRef::new(session, principal);
    let mut stream = bench.sessions.listen(&to, None).await.unwrap();
    for (id, tool) in [(1, "stream-1"), (2, "stream-2")] {
        let delivered = bench.sessions.deliver(&to, post(&call(id, tool))).await;
        assert!(
            matches!(delivered, Ok(Delivered::Accepted)),
            "{delivered:?}"
        );
    }
    bench.script.call("stream-1").await.finish("{}").await;
    let answer = read(&mut stream, 1).await;
    assert!(answer.texts[0].contains(r#""id":1"#), "{answer:?}");

    *lossy.says.lock() = Some(StoreError::Forgotten);
    assert_eq!(bench.sessions.hand_over().await.sessions, 1);
    let told = lossy.told.lock();
    let [open] = &told[..] else {
        panic!("one stream is entered again: {told:?}")
    };
    assert_eq!(open.last, answer.cursor(), "with what the client has");
    assert_eq!((open.ended.len(), open.calls.len()), (1, 1));
    assert_ne!(open.ended[0], open.calls[0].entry.call);
}

#[tokio::test]
async fn a_store_that_is_away_while_streams_are_confirmed_is_waited_for() {
    let long = Duration::from_secs(60);
    let (bench, lossy) = lossy(SessionConfig {
        begin_patience: long,
        ..SessionConfig::default()
    });
    for node in ["test", "b"] {
        let directory = &bench.store.directory;
        directory
            .renew_lease(&NodeId::new(node), long)
            .await
            .unwrap();
    }
    let second = bench.another_node("b");
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    bench.script.call("stream").await.progress(1).await;
    let seen = read(&mut stream, 1).await;

    *lossy.says.lock() = Some(StoreError::Away("the test says so".to_owned()));
    let back = async {
        while lossy.said.load(SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        *lossy.says.lock() = None;
    };
    let (handed_over, ()) = within(async { tokio::join!(bench.sessions.hand_over(), back) }).await;
    assert_eq!(handed_over.sessions, 1);
    let taken = second.listen(&alice, Some(seen.cursor())).await;
    assert!(taken.is_ok(), "{:?}", taken.err());
}
