//! A journal that is away for longer than a call to be started would wait: what runs already waits for it.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use shoal_ports::memory::{MemoryLimits, MemoryStore};
use shoal_ports::{
    Begin, Begun, Binding, CallId, Delivered, DeliveryId, Epoch, Journal, LogError, RunningStream,
    SessionGateway, SessionId, StoreError,
};
use shoal_protocol::EventId;
use shoal_session::SessionConfig;
use support::{Bench, call, post, read_all, within};

/// A journal that begins nothing while it is away.
struct Away {
    inner: Arc<dyn Journal>,
    away: AtomicBool,
    tried: AtomicUsize,
    /// Whether somebody could believe that it did.
    unconfirmed: bool,
}

#[async_trait]
impl Journal for Away {
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        begin: Begin,
    ) -> Result<Begun, LogError> {
        if self.away.load(Ordering::SeqCst) {
            self.tried.fetch_add(1, Ordering::SeqCst);
            let why = "the test says so".to_owned();
            return Err(LogError::Store(match self.unconfirmed {
                true => StoreError::Unavailable(why),
                false => StoreError::Away(why),
            }));
        }
        self.inner.begin(session, epoch, begin).await
    }

    async fn rebind(
        &self,
        session: &SessionId,
        epoch: Epoch,
        call: CallId,
        binding: &Binding,
    ) -> Result<(), StoreError> {
        self.inner.rebind(session, epoch, call, binding).await
    }

    async fn running(
        &self,
        session: &SessionId,
        epoch: Epoch,
    ) -> Result<Vec<RunningStream>, LogError> {
        self.inner.running(session, epoch).await
    }

    async fn delivered(
        &self,
        session: &SessionId,
        delivery: DeliveryId,
    ) -> Result<Option<EventId>, LogError> {
        self.inner.delivered(session, delivery).await
    }
}

async fn what_runs_waits(unconfirmed: bool) {
    let config = SessionConfig {
        grace: Duration::ZERO,
        begin_patience: Duration::ZERO,
        ..SessionConfig::default()
    };
    let mut store = MemoryStore::new(MemoryLimits::default()).into_store();
    let journal = Arc::new(Away {
        inner: store.journal.clone(),
        away: AtomicBool::new(true),
        tried: AtomicUsize::new(0),
        unconfirmed,
    });
    store.journal = journal.clone();
    let bench = Bench::on(store, config);
    let alice = bench.open("alice", "2025-11-25").await;
    let (sessions, session) = (bench.sessions.clone(), alice.clone());
    let answering = tokio::spawn(async move {
        sessions
            .deliver(&session, post(&call(1, "reads")))
            .await
            .map(|delivered| match delivered {
                Delivered::Stream(stream) => stream,
                other => panic!("{other:?}"),
            })
    });
    let tool = within(bench.script.call("reads")).await;
    tool.progress(1).await;
    within(async {
        while journal.tried.load(Ordering::SeqCst) < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    journal.away.store(false, Ordering::SeqCst);
    within(async {
        let journal = &bench.store.journal;
        let running = || journal.running(&alice.session, Epoch(1));
        while running().await.expect("it is there").is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    tool.finish(r#"{"content":[]}"#).await;
    let answered = within(answering).await.expect("it did not panic");
    let mut stream = answered.expect("the call goes on");
    let read = within(read_all(&mut stream)).await;
    assert_eq!(read.events.len(), 2, "progress and the result: {read:?}");
    assert!(read.events[1].1.contains(r#""content""#), "{read:?}");
}

#[tokio::test]
async fn a_call_that_runs_waits_for_a_journal_that_is_away() {
    what_runs_waits(false).await;
}

#[tokio::test]
async fn a_call_that_runs_waits_for_a_journal_that_confirms_nothing() {
    what_runs_waits(true).await;
}
