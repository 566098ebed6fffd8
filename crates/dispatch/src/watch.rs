//! Following one worker: its announcements into the registry, its news onto the bus.

use std::sync::{Arc, Weak};

use shoal_ports::{Announcement, BusEvent, Worker};
use tokio::sync::{broadcast, watch};

use crate::shared::Shared;

/// Keeps the registry up to date with what a worker says. A worker that has gone without a word stays
/// registered, as not ready, until it is removed.
pub(crate) async fn announcements(
    shared: Weak<Shared>,
    worker: Arc<dyn Worker>,
    mut announcements: watch::Receiver<Announcement>,
) {
    loop {
        let gone = announcements.changed().await.is_err();
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let mut said = announcements.borrow_and_update().clone();
        if gone {
            said.catalog = None;
            said.detail = Some("the worker has gone".to_owned());
        }
        let pool = said.pool.clone();
        tracing::debug!(worker = %said.worker, %pool, ready = said.catalog.is_some(), "a worker spoke");
        if shared.hear(&worker, said) {
            shared.subscriptions.restore(&pool, worker.as_ref()).await;
        }
        if gone {
            return;
        }
    }
}

/// Passes what a worker's backend reports on to every node.
pub(crate) async fn news(shared: Weak<Shared>, mut news: broadcast::Receiver<BusEvent>) {
    loop {
        let event = match news.recv().await {
            Ok(event) => event,
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "news of a worker came faster than the bus takes it");
                continue;
            }
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if let Err(error) = shared.bus.publish(event).await {
            tracing::warn!(%error, "news of a worker did not reach the bus");
        }
    }
}
