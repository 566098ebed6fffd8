use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{
    Append, Begin, Binding, CallId, CallProgress, DeliveryId, Epoch, JournalEntry, NewSession,
    NodeId, Period, Principal, SessionId, Store, StoreError, StreamSettings, WorkerId,
};
use shoal_protocol::{EventId, RawJson, RequestId};
use shoal_store_redis::{RedisConfig, RedisSettings, RedisStore};
use tokio::time::{Instant, sleep};

use crate::server::LONG_ENOUGH;

pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) const EVENTS: usize = 64;
pub(crate) const BYTES: usize = 64 << 10;

pub(crate) fn config(url: &str) -> RedisConfig {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    RedisConfig {
        url: url.to_owned(),
        redis: RedisSettings {
            prefix: format!("shoal:{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            response_timeout: Period::seconds(5),
            connect_timeout: Period::seconds(5),
            ..RedisSettings::default()
        },
        streams: StreamSettings {
            events_per_stream: EVENTS,
            bytes_per_session: BYTES,
            retention: Duration::from_secs(2).into(),
            ..StreamSettings::default()
        },
        longest_backoff: Duration::from_millis(100),
    }
}

pub(crate) fn config_with(url: &str, set: impl FnOnce(&mut RedisSettings)) -> RedisConfig {
    let mut config = config(url);
    set(&mut config.redis);
    config
}

pub(crate) async fn connect(config: RedisConfig) -> (RedisStore, Store) {
    let store = RedisStore::connect(config).await.expect("a store");
    (store.clone(), store.into_store())
}

pub(crate) async fn keeps_the_contract(config: impl Fn() -> RedisConfig) {
    let store = || async { connect(config()).await.1 };
    shoal_ports::contract::all(store, EVENTS).await;
}

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::new(name)
}

pub(crate) fn new_session(id: &SessionId, owner: &str) -> NewSession {
    NewSession {
        session: id.clone(),
        principal: Principal::new("somebody"),
        owner: node(owner),
        record: Bytes::from_static(b"record"),
        idle: LONG,
    }
}

pub(crate) async fn session(store: &Store) -> (SessionId, Epoch) {
    let id = SessionId::random();
    let directory = &store.directory;
    directory.renew_lease(&node("a"), LONG).await.unwrap();
    let epoch = directory.create(new_session(&id, "a")).await.unwrap();
    (id, epoch)
}

pub(crate) fn binding(worker: &str) -> Binding {
    Binding {
        worker: WorkerId::new(worker),
        ledger: None,
    }
}

pub(crate) fn entry() -> JournalEntry {
    JournalEntry {
        call: CallId::generate(),
        request: RequestId::from_number(1),
        worker: Some(WorkerId::new("w")),
        ledger: None,
        start: RawJson::from_static(r#"{"method":"tools/call"}"#),
    }
}

/// The end of a call with a multiple of 8 settles the accounts of stored bytes.
pub(crate) fn entry_with(last: u8) -> JournalEntry {
    let entry = entry();
    let mut id = *entry.call.as_bytes();
    id[15] = last;
    JournalEntry {
        call: CallId::from_bytes(id),
        ..entry
    }
}

pub(crate) fn opening(call: &JournalEntry) -> Begin {
    Begin {
        delivery: DeliveryId::generate(),
        stream: None,
        running: false,
        entries: vec![call.clone()],
    }
}

pub(crate) async fn begin(store: &Store, id: &SessionId, epoch: Epoch) -> (EventId, CallId) {
    let entry = entry();
    let begun = store.journal.begin(id, epoch, opening(&entry)).await;
    (begun.unwrap().id(), entry.call)
}

pub(crate) fn append(after: EventId, events: &[&[u8]]) -> Append {
    Append {
        after,
        events: events.iter().map(|e| Bytes::copy_from_slice(e)).collect(),
        progress: None,
    }
}

pub(crate) fn ending(after: EventId, events: &[&[u8]], call: CallId) -> Append {
    Append {
        progress: Some(CallProgress {
            call,
            seen: 9,
            ended: true,
        }),
        ..append(after, events)
    }
}

pub(crate) fn is_unavailable(error: &StoreError) -> bool {
    error.is_outage()
}

pub(crate) async fn once_available<T, F>(step: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let until = Instant::now() + LONG_ENOUGH;
    loop {
        match step().await {
            Err(error) if error.is_outage() && Instant::now() < until => {
                sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
}

pub(crate) async fn eventually<F>(what: &str, holds: impl Fn() -> F)
where
    F: Future<Output = bool>,
{
    let until = Instant::now() + LONG_ENOUGH;
    while !holds().await {
        assert!(Instant::now() < until, "never: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}
