//! One test suite for each storage trait.
//!
//! The tests wait in real time, because engines may use their own clocks.

mod cluster_bus;
mod directory;
mod event_log;
mod intercepted;
mod journal;
mod membership;

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;

use shoal_protocol::{EventId, RawJson, RequestId};

pub use self::intercepted::Intercepted;

use crate::{
    Append, Begin, Begun, CallId, CallProgress, DeliveryId, Epoch, JournalEntry, LedgerNumber,
    NewSession, NodeId, Principal, SessionId, Store, WorkerId,
};

/// Runs every suite, each on a new store. The stores must keep finished streams for a second, and `events_per_stream`
/// events (at least 32) of each stream.
pub async fn all<F, S>(store: F, events_per_stream: usize)
where
    F: Fn() -> S,
    S: Future<Output = Store>,
{
    directory::ownership(&store().await).await;
    directory::a_session_is_created_once(&store().await).await;
    directory::leases(&store().await).await;
    directory::evidence_against_an_owner(&store().await).await;
    directory::nodes_do_not_fight_over_a_session(&store().await).await;
    directory::an_owner_that_is_gone_is_not_given_a_lease(&store().await).await;
    directory::records_expire(&store().await).await;
    event_log::numbering(&store().await).await;
    event_log::resuming(&store().await).await;
    event_log::trimming(&store().await, events_per_stream).await;
    event_log::fencing(&store().await).await;
    event_log::concurrent_appends(&store().await).await;
    event_log::cursors_of_other_sessions(&store().await).await;
    event_log::foreign_cursors(&store().await, &store().await).await;
    event_log::repeated_appends(&store().await).await;
    event_log::late_repetitions(&store().await).await;
    event_log::finished_streams(&store().await).await;
    event_log::forgotten_streams(&store().await).await;
    journal::entries(&store().await).await;
    journal::deliveries(&store().await).await;
    journal::existing_streams(&store().await).await;
    journal::one_stream_a_delivery(&store().await).await;
    journal::rebound_calls(&store().await).await;
    journal::repeated_begins(&store().await).await;
    journal::repeated_ends(&store().await).await;
    membership::coming_and_going(&store().await).await;
    membership::remembered_pools(&store().await).await;
    membership::remembered_catalogs(&store().await).await;
    membership::settled_names(&store().await).await;
    cluster_bus::delivery(&store().await).await;
}

const LONG: Duration = Duration::from_secs(60);

fn node(name: &str) -> NodeId {
    NodeId::new(name)
}

async fn session(store: &Store) -> (SessionId, Epoch) {
    let (id, owner) = (SessionId::random(), node("a"));
    store
        .directory
        .renew_lease(&owner, LONG)
        .await
        .expect("a lease");
    let epoch = store
        .directory
        .create(new_session(&id, &owner))
        .await
        .expect("a session");
    (id, epoch)
}

fn new_session(session: &SessionId, owner: &NodeId) -> NewSession {
    NewSession {
        session: session.clone(),
        principal: Principal::new("somebody"),
        owner: owner.clone(),
        record: Bytes::from_static(b"record"),
        idle: LONG,
    }
}

fn entry(request: u64) -> JournalEntry {
    JournalEntry {
        call: CallId::generate(),
        request: RequestId::from_number(request),
        worker: Some(WorkerId::new("w")),
        ledger: Some(LedgerNumber {
            incarnation: u64::MAX,
            number: 7,
        }),
        start: RawJson::from_static(r#"{"method":"tools/call"}"#),
    }
}

async fn begin(
    store: &Store,
    session: &SessionId,
    epoch: Epoch,
    entries: Vec<JournalEntry>,
) -> EventId {
    let begin = Begin {
        delivery: DeliveryId::generate(),
        stream: None,
        running: false,
        entries,
    };
    let begun = store.journal.begin(session, epoch, begin).await;
    match begun.expect("a stream") {
        Begun::Now(id) => id,
        Begun::Before(_) => panic!("a delivery of its own"),
    }
}

fn append(after: EventId, texts: &[&str]) -> Append {
    Append {
        after,
        events: events(texts),
        progress: None,
    }
}

fn ending(after: EventId, texts: &[&str], call: CallId) -> Append {
    Append {
        progress: Some(CallProgress {
            call,
            seen: 9,
            ended: true,
        }),
        ..append(after, texts)
    }
}

fn events(texts: &[&str]) -> Vec<Bytes> {
    texts
        .iter()
        .map(|text| Bytes::copy_from_slice(text.as_bytes()))
        .collect()
}
