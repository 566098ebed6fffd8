use std::sync::{Mutex, PoisonError};

use rmcp::{
    Peer, RoleServer, model::ResourceUpdatedNotificationParam, service::SubscriptionContext,
};
use tokio::sync::watch;
use tokio::task::AbortHandle;

pub(crate) const COUNTER: &str = "asking://counter";

/// The number of changes of the resource.
#[derive(Default)]
pub(crate) struct Changes {
    count: watch::Sender<u64>,
}

impl Changes {
    pub(crate) fn count(&self) -> u64 {
        *self.count.borrow()
    }

    pub(crate) fn happen(&self) -> u64 {
        self.count.send_modify(|count| *count += 1);
        self.count()
    }

    /// Reports changes to a stream of 2026-07-28 until the stream ends. Several changes at once may
    /// be reported as one.
    pub(crate) async fn tell(&self, stream: &SubscriptionContext) {
        let mut changes = self.count.subscribe();
        loop {
            tokio::select! {
                () = stream.cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
            if stream
                .sink()
                .notify_resource_updated(COUNTER)
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

/// The task that reports changes to a session of an earlier revision. `None` if the session has not
/// subscribed.
#[derive(Default)]
pub(crate) struct Following(Mutex<Option<AbortHandle>>);

impl Following {
    pub(crate) fn begin(&self, changes: &Changes, peer: Peer<RoleServer>) {
        let mut changes = changes.count.subscribe();
        let task = tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let params = ResourceUpdatedNotificationParam::new(COUNTER);
                if peer.notify_resource_updated(params).await.is_err() {
                    break;
                }
            }
        });
        self.set(Some(task.abort_handle()));
    }

    pub(crate) fn end(&self) {
        self.set(None);
    }

    fn set(&self, task: Option<AbortHandle>) {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *own, task) {
            before.abort();
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.end();
    }
}
