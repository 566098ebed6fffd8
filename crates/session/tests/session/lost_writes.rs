//! A store that has lost its newest writes, and an owner that hands its sessions over before it has written anything since.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::memory::{MemoryLimits, MemoryStore};
use shoal_ports::{
    Append, Appended, Delivered, Epoch, EventLog, Journal, LogError, OpenSession, OpenStream,
    SessionGateway as _, SessionId, SessionRef, SessionTransport, Store, StoreError,
};
use shoal_session::SessionConfig;

use crate::support::over::{EventLogOver, JournalOver, Over};
use crate::support::{Bench, call, initialize, post, read};

/// A store that says that it knows less than it was told, until it is told again.
struct Lossy {
    store: Store,
    lost: AtomicBool,
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
        if self.lost.load(SeqCst) {
            return Err(StoreError::Forgotten.into());
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
        self.lost.store(false, SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn the_next_owner_finds_what_the_store_had_lost() {
    let store = MemoryStore::new(MemoryLimits::default()).into_store();
    let lossy = Arc::new(Lossy {
        store: store.clone(),
        lost: AtomicBool::new(false),
        told: Mutex::default(),
    });
    let store = Store {
        log: Arc::new(Over(lossy.clone())),
        journal: Arc::new(Over(lossy.clone())),
        ..store
    };
    let bench = Bench::on(store, SessionConfig::default());
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

    lossy.lost.store(true, SeqCst);
    assert_eq!(bench.sessions.hand_over().await.sessions, 1);
    let told = lossy.told.lock();
    let [open] = &told[..] else {
        panic!("one stream is entered again: {told:?}")
    };
    assert_eq!(open.last, answer.cursor(), "with what the client has");
    assert_eq!((open.ended.len(), open.calls.len()), (1, 1));
    assert_ne!(open.ended[0], open.calls[0].entry.call);
}
