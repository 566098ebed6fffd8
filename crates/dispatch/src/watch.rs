//! Following one worker: its announcements into the registry, its updates of resources to whoever listens.

use std::sync::{Arc, Weak};

use shoal_ports::{Announcement, ResourceUpdated, Worker};
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

/// Passes on what a worker reports of resources.
pub(crate) async fn resource_updates(
    shared: Weak<Shared>,
    mut updates: broadcast::Receiver<ResourceUpdated>,
) {
    loop {
        let update = match updates.recv().await {
            Ok(update) => update,
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                tracing::warn!(
                    missed,
                    "a worker told of changed resources faster than they were passed on"
                );
                continue;
            }
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let Some(shared) = shared.upgrade() else {
            return;
        };
        // An error only says that nobody listens.
        let _ = shared.updates.send(update);
    }
}
