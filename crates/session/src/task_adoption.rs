//! Keeps tasks running when their node dies. Each node lists its running tasks in the store, and other nodes take over
//! the list of a dead node.
//!
//! A list only names tasks to look at: the record of each task's session decides.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use shoal_ports::{
    Backoff, GatewayError, NodeId, Principal, SessionId, SessionRef, SessionTransport, StoreError,
};
use shoal_telemetry::metrics::metrics;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::live::LiveSession;
use crate::sessions::Node;
use crate::task_lists::TaskListChange;

/// How often a node writes its whole list again, because the store may have lost it.
const LISTED_EVERY: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);
/// How often a node looks for dead nodes while there are up to [`CLOSE`] lists.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const CLOSE: usize = 100;
const AGAIN: Duration = Duration::from_secs(1);
const BATCH: usize = 64;
const AT_ONCE: usize = 8;

#[derive(PartialEq, Eq)]
enum Found {
    Adopted,
    Settled,
    Waits,
}

/// Keeps this node's list in the store until `stop` fires. The list then stays for other nodes.
pub(crate) async fn keep_list(node: Arc<Node>, stop: CancellationToken) {
    let keeping = async {
        let mut all_due = Instant::now() + LISTED_EVERY;
        loop {
            tokio::select! {
                () = node.task_lists.added.notified() => {}
                () = sleep_until(all_due) => {
                    all_due = Instant::now() + LISTED_EVERY;
                    node.list_all();
                }
            }
            while let changes = node.task_lists.take_some()
                && !changes.is_empty()
            {
                if let Err(error) = node.tell_list(&changes).await {
                    tracing::debug!(%error, "cannot list this node's tasks");
                    node.task_lists.put_back(changes);
                    sleep(PAUSE).await;
                }
            }
        }
    };
    stop.run_until_cancelled(keeping).await;
}

pub(crate) async fn adopt_tasks(node: Arc<Node>, stop: CancellationToken) {
    let adopting = async {
        let mut pause = LOOK_EVERY;
        loop {
            sleep(Backoff::new(pause, pause).pause()).await;
            pause = node.adopt().await.unwrap_or_else(|error| {
                tracing::debug!(%error, "cannot look for tasks of lost nodes");
                LOOK_EVERY
            });
        }
    };
    stop.run_until_cancelled(adopting).await;
}

pub(crate) fn runs(live: &LiveSession) -> bool {
    !live.is_lost() && has_end(live) == Some(false)
}

pub(crate) fn has_ended(live: &LiveSession) -> bool {
    has_end(live) == Some(true)
}

fn has_end(live: &LiveSession) -> Option<bool> {
    let has_end = live.read(|record| record.task.as_ref().map(|task| task.end.is_some()));
    has_end.flatten()
}

impl Node {
    fn list_all(&self) {
        for live in self.all_live() {
            if runs(&live) {
                self.task_lists.begin(&live.id, &live.principal);
            }
        }
    }

    async fn tell_list(&self, changes: &[(SessionId, TaskListChange)]) -> Result<(), StoreError> {
        let (mut begun, mut over) = (Vec::new(), Vec::new());
        for (task, change) in changes {
            match change {
                TaskListChange::Enlist(principal) => begun.push((task.clone(), principal.clone())),
                TaskListChange::Delist => over.push(task.clone()),
            }
        }
        let directory = &self.driver.store.directory;
        if !begun.is_empty() {
            directory.enlist(&self.id, &begun, self.list_life()).await?;
        }
        if !over.is_empty() {
            directory.delist(&self.id, &over).await?;
        }
        Ok(())
    }

    /// The store keeps the list at least as long as the tasks' records.
    fn list_life(&self) -> Duration {
        let records = self.config.record_life(SessionTransport::Task);
        records.max(3 * LISTED_EVERY)
    }

    async fn adopt(self: &Arc<Self>) -> Result<Duration, StoreError> {
        let Some(liveness) = self.liveness.get() else {
            return Ok(LOOK_EVERY);
        };
        if self.handing_over.load(Ordering::Acquire) {
            return Ok(LOOK_EVERY);
        }
        let listing = self.driver.store.directory.listing().await?;
        let mut remain = false;
        for gone in &listing {
            if *gone != self.id && !liveness.is_present(gone) {
                remain |= self.adopt_some_of(gone).await?;
            }
        }
        Ok(match remain {
            true => AGAIN,
            false => LOOK_EVERY.mul_f64(listing.len().max(CLOSE) as f64 / CLOSE as f64),
        })
    }

    /// Returns whether the dead node may have more tasks.
    async fn adopt_some_of(self: &Arc<Self>, gone: &NodeId) -> Result<bool, StoreError> {
        let directory = &self.driver.store.directory;
        let batch = directory.enlisted(gone, BATCH).await?;
        if batch.is_empty() {
            directory.forget_list(gone).await?;
            return Ok(false);
        }
        let found: Vec<_> = futures::stream::iter(batch)
            .map(|(task, principal)| self.adopt_one(gone, task, principal))
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let (mut adopted, mut over) = (Vec::new(), Vec::new());
        for (task, principal, found) in found {
            if found == Found::Adopted {
                adopted.push((task.clone(), principal));
            }
            if found != Found::Waits {
                over.push(task);
            }
        }
        // The tasks enter this node's list before they leave the dead node's list, so that after a crash they are on
        // one.
        if !adopted.is_empty() {
            directory
                .enlist(&self.id, &adopted, self.list_life())
                .await?;
        }
        if !over.is_empty() {
            directory.delist(gone, &over).await?;
        }
        for (task, _) in &adopted {
            if !self.live(task).is_some_and(|live| runs(&live)) {
                self.task_lists.end(task);
            }
        }
        Ok(true)
    }

    async fn adopt_one(
        self: &Arc<Self>,
        gone: &NodeId,
        task: SessionId,
        principal: Principal,
    ) -> (SessionId, Principal, Found) {
        if self.live(&task).is_some_and(|live| !live.is_lost()) {
            return (task, principal, Found::Adopted);
        }
        let to = SessionRef::new(task.clone(), principal.clone());
        let found = match self.find(&to).await {
            Ok(_) => {
                metrics().tasks.adopted();
                tracing::info!(%task, node = %gone, "a task of a lost node continues on this node");
                Found::Adopted
            }
            Err(GatewayError::NotFound) => Found::Settled,
            Err(GatewayError::Moved { owner: Some(owner) }) if owner != *gone => Found::Settled,
            Err(error) => {
                tracing::debug!(%task, node = %gone, %error, "a task cannot be taken over yet");
                Found::Waits
            }
        };
        (task, principal, found)
    }
}
