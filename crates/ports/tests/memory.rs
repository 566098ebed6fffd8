//! The embedded engines keep the contract.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step is the report"
)]

use std::time::Duration;

use bytes::Bytes;
use shoal_ports::memory::MemoryStore;
use shoal_ports::{
    Append, Begin, Begun, CallId, CallProgress, ClusterEvent, DeliveryId, Epoch, JournalEntry,
    LogError, NewSession, NodeId, Principal, SessionId, Store, StoreError, StreamSettings,
    contract,
};
use shoal_protocol::{EventId, RawJson, RequestId, StreamId};

fn limits() -> StreamSettings {
    StreamSettings {
        events_per_stream: 100,
        ..StreamSettings::default()
    }
}

#[tokio::test]
async fn the_embedded_engines_keep_the_contract() {
    contract::all(|| async { MemoryStore::new(limits()).into_store() }, 100).await;
}

#[tokio::test]
async fn clones_have_one_bus() {
    let engine = MemoryStore::new(limits());
    let [one, other] = [(); 2].map(|()| engine.clone().into_store().bus);
    let mut subscription = other.subscribe();
    let node = NodeId::new("n");
    let event = ClusterEvent::NodeLeft { node };
    one.publish(event.clone()).await.unwrap();
    assert_eq!(subscription.next().await, Some(Ok(event)));
}

struct Steps {
    engine: MemoryStore,
    store: Store,
    session: SessionId,
    epoch: Epoch,
}

impl Steps {
    async fn new(limits: StreamSettings) -> Self {
        let engine = MemoryStore::new(limits);
        let store = engine.clone().into_store();
        let session = SessionId::random();
        let new = NewSession {
            session: session.clone(),
            principal: Principal::anonymous(),
            owner: NodeId::new("a"),
            record: Bytes::new(),
            idle: Duration::from_secs(3600),
        };
        let epoch = store.directory.create(new).await.unwrap();
        Self {
            engine,
            store,
            session,
            epoch,
        }
    }

    async fn begin(&self) -> (EventId, CallId) {
        let entry = JournalEntry {
            call: CallId::generate(),
            request: RequestId::from_number(1),
            worker: None,
            ledger: None,
            start: RawJson::from_static("{}"),
        };
        let call = entry.call;
        let begin = Begin {
            delivery: DeliveryId::generate(),
            stream: None,
            running: false,
            entries: vec![entry],
        };
        let begun = self.store.journal.begin(&self.session, self.epoch, begin);
        match begun.await.unwrap() {
            Begun::Now(id) => (id, call),
            Begun::Before(_) => panic!("a delivery of its own"),
        }
    }

    async fn append(
        &self,
        after: EventId,
        event: &[u8],
        ends: Option<CallId>,
    ) -> Result<EventId, LogError> {
        let append = Append {
            after,
            events: vec![Bytes::copy_from_slice(event)],
            progress: ends.map(|call| CallProgress {
                call,
                seen: 1,
                ended: true,
            }),
        };
        let log = &self.store.log;
        let appended = log.append(&self.session, self.epoch, append).await?;
        Ok(appended.last)
    }

    async fn sweep_after(&self, seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        self.store.directory.sweep().await.unwrap();
    }

    async fn read(&self, cursor: EventId) -> Result<usize, LogError> {
        let page = self.store.log.read(&self.session, cursor, 9).await?;
        Ok(page.events.len())
    }
}

#[tokio::test(start_paused = true)]
async fn limits_hold_and_freed_room_is_used_again() {
    let steps = Steps::new(StreamSettings {
        bytes_per_session: 1000,
        retention: Duration::from_secs(60).into(),
        ..limits()
    })
    .await;
    let (running, call) = steps.begin().await;
    let large = [b'x'; 400];
    let one = steps.append(running, &large, None).await.unwrap();
    let two = steps.append(one, &large, None).await.unwrap();
    let full = steps.append(two, &large, None).await;
    let expected = matches!(full, Err(LogError::Store(StoreError::Full(_))));
    assert!(expected, "{full:?}");
    assert_eq!(steps.engine.event_bytes(), 800);

    steps.append(two, b"", Some(call)).await.unwrap();
    let (next, call) = steps.begin().await;
    steps.append(next, &large, Some(call)).await.unwrap();
    assert_eq!(steps.engine.event_bytes(), 400);

    steps.sweep_after(61).await;
    assert_eq!(steps.engine.event_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_can_end_when_the_store_is_full_but_none_can_begin() {
    let steps = Steps::new(StreamSettings {
        bytes: 100,
        ..limits()
    })
    .await;
    let (running, call) = steps.begin().await;
    let last = steps.append(running, &[b'x'; 100], None).await.unwrap();
    let full = steps.append(last, b"more", None).await;
    let expected = matches!(full, Err(LogError::Store(StoreError::Full(_))));
    assert!(expected, "{full:?}");
    let begin = Begin {
        delivery: DeliveryId::generate(),
        stream: None,
        running: false,
        entries: Vec::new(),
    };
    let journal = &steps.store.journal;
    let full = journal.begin(&steps.session, steps.epoch, begin).await;
    let expected = matches!(full, Err(LogError::Store(StoreError::Full(_))));
    assert!(expected, "{full:?}");
    steps.append(last, b"result", Some(call)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_standalone_stream_forgets_what_is_old() {
    let steps = Steps::new(limits()).await;
    let start = steps.store.log.last(&steps.session, StreamId::STANDALONE);
    let start = start.await.unwrap();
    let first = steps.append(start, b"news", None).await.unwrap();
    steps.sweep_after(0).await;
    steps.sweep_after(59).await;
    assert_eq!(steps.read(start).await.unwrap(), 1, "kept for its time");
    steps.append(first, b"news", None).await.unwrap();
    steps.sweep_after(2).await;
    let gone = steps.read(start).await;
    let told = matches!(gone, Err(LogError::Gone(_)));
    assert!(told, "a reader of old news is told: {gone:?}");
    assert_eq!(steps.read(first).await.unwrap(), 1);
    steps.sweep_after(61).await;
    steps.sweep_after(61).await;
    assert_eq!(steps.engine.event_bytes(), 0);
}
