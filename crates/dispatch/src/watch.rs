use std::sync::{Arc, Weak};

use shoal_ports::{Announcement, ListScope, OwnLists, ResourceUpdated, Worker};
use shoal_protocol::RawJson;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use crate::shared::DispatchState;
use crate::subscriptions::Subscriptions;

/// Follows a worker's announcements. A worker that disappears stays registered as not ready until it is removed.
pub(crate) async fn announcements(
    shared: Weak<DispatchState>,
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
            said.detail = Some("the worker is gone".to_owned());
        }
        let pool = said.pool.clone();
        tracing::debug!(worker = %said.worker, %pool, ready = said.catalog.is_some(), "a worker spoke");
        let appears = shared.hear(&worker, said);
        Subscriptions::follow(&shared, &pool, worker.as_ref(), appears).await;
        if gone {
            return;
        }
    }
}

pub(crate) async fn own_lists(
    shared: Weak<DispatchState>,
    worker: Arc<dyn Worker>,
    mut own: watch::Receiver<OwnLists>,
) {
    own.mark_changed();
    while own.changed().await.is_ok() {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let now = own.borrow_and_update().clone();
        shared.hear_own(&worker, now);
    }
}

/// If updates were missed, reports every subscribed resource, because each may have changed.
pub(crate) async fn resource_updates(
    shared: Weak<DispatchState>,
    pool: Arc<str>,
    mut updates: broadcast::Receiver<ResourceUpdated>,
) {
    loop {
        let update = updates.recv().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let is_own = shared.view().own.scope(&pool) == ListScope::Principal;
        match update {
            Ok(_) | Err(RecvError::Lagged(_)) if is_own => {}
            Ok(update) => drop(shared.updates.send(update)),
            Err(RecvError::Lagged(_)) => {
                for uri in shared.subscriptions.of(&pool, true) {
                    let params = RawJson::of(&serde_json::json!({ "uri": uri }));
                    let _ = shared.updates.send(ResourceUpdated { uri, params });
                }
            }
            Err(RecvError::Closed) => return,
        }
    }
}
