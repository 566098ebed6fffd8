#![allow(missing_docs, reason = "the macros' functions are nobody's interface")]

use std::time::Duration;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use shoal_ports::memory::MemoryStore;
use shoal_ports::{
    Append, Begin, CallId, CallProgress, DeliveryId, Epoch, JournalEntry, NewSession, NodeId,
    Principal, SessionId, Store, StreamSettings,
};
use shoal_protocol::{RawJson, RequestId};
use tokio::runtime::Builder;

async fn opened(store: &Store) -> (SessionId, Epoch) {
    let (session, owner) = (SessionId::random(), NodeId::new("node"));
    let lease = Duration::from_secs(3600);
    let renewed = store.directory.renew_lease(&owner, lease).await;
    renewed.expect("memory is there");
    let new = NewSession {
        session: session.clone(),
        principal: Principal::anonymous(),
        owner,
        record: Bytes::from_static(b"{}"),
        idle: lease,
    };
    let epoch = store.directory.create(new).await.expect("it is new");
    (session, epoch)
}

async fn journaled_call(store: &Store, session: &SessionId, epoch: Epoch, answer: &Bytes) {
    let call = CallId::generate();
    let begin = Begin {
        delivery: DeliveryId::generate(),
        stream: None,
        running: false,
        entries: vec![JournalEntry {
            call,
            request: RequestId::from_json(&RawJson::from_static("7")).expect("a number is an id"),
            worker: None,
            ledger: None,
            start: RawJson::from_static("{}"),
        }],
    };
    let begun = store.journal.begin(session, epoch, begin).await;
    let begun = begun.expect("the session is owned and has room").id();
    let append = Append {
        after: begun,
        events: vec![answer.clone()],
        progress: Some(CallProgress {
            call,
            seen: 1,
            ended: true,
        }),
    };
    let appended = store.log.append(session, epoch, append).await;
    assert!(appended.expect("nobody else writes").finished);
}

fn append(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime needs nothing that is not there");
    let store = MemoryStore::new(StreamSettings::default()).into_store();
    let (session, epoch) = runtime.block_on(opened(&store));
    let answer = Bytes::from(vec![b'x'; 128]);
    let call = || runtime.block_on(journaled_call(&store, &session, epoch, &answer));
    call();
    criterion.bench_function("journal and append", |bencher| bencher.iter(call));
}

criterion_group!(benches, append);
criterion_main!(benches);
