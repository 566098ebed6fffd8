//! One test suite for each storage seam; every engine runs all of it.
//!
//! A suite takes a fresh store. Times are real and short: an engine may keep its own clock.

mod bus;
mod directory;
mod event_log;
mod journal;

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;

use crate::{Epoch, NodeId, SessionId, Store};

/// Runs every suite; `store` makes a fresh one each time, whose finished streams are kept for at least
/// a second and whose streams hold `events_per_stream` events.
pub async fn all<F, S>(store: F, events_per_stream: usize)
where
    F: Fn() -> S,
    S: Future<Output = Store>,
{
    directory::ownership(&store().await).await;
    directory::leases(&store().await).await;
    directory::records_expire(&store().await).await;
    event_log::numbering(&store().await).await;
    event_log::resuming(&store().await).await;
    event_log::trimming(&store().await, events_per_stream).await;
    event_log::fencing(&store().await).await;
    event_log::concurrent_appends(&store().await).await;
    event_log::foreign_cursors(&store().await, &store().await).await;
    journal::entries(&store().await).await;
    bus::delivery(&store().await).await;
}

const LONG: Duration = Duration::from_secs(60);

fn node(name: &str) -> NodeId {
    NodeId::new(name)
}

/// A session owned by node `a`, whose lease lives.
async fn session(store: &Store) -> (SessionId, Epoch) {
    let (id, owner) = (SessionId::random(), node("a"));
    store
        .directory
        .renew_lease(&owner, LONG)
        .await
        .expect("a lease");
    let epoch = store
        .directory
        .create(&id, &owner, Bytes::from_static(b"record"), LONG)
        .await
        .expect("a session");
    (id, epoch)
}

fn events(texts: &[&str]) -> Vec<Bytes> {
    texts
        .iter()
        .map(|text| Bytes::copy_from_slice(text.as_bytes()))
        .collect()
}
