//! Tasks that nobody asks for go on without their node: each node lists in the store which run there, and the others take over
//! what is on the list of one that is gone.
//!
//! A list says where to look, and nothing else: whose a task is, and whether it may be claimed, its session says.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use parking_lot::Mutex;
use shoal_ports::{
    Backoff, GatewayError, NodeId, Principal, SessionId, SessionRef, SessionTransport, StoreError,
};
use shoal_telemetry::metrics::metrics;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::live::LiveSession;
use crate::sessions::Node;

/// Changes that are told to the store at once.
const TOLD_AT_ONCE: usize = 500;
/// How often all tasks that run here are listed anew: the store may have lost them.
const LISTED_EVERY: Duration = Duration::from_secs(60);
/// How long what could not be told waits.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a node looks for lists of nodes that are gone, where there are up to [`CLOSE`] lists; less often where there are more.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const CLOSE: usize = 100;
/// When it looks again at what could not be taken over yet.
const AGAIN: Duration = Duration::from_secs(1);
/// Tasks of one list that are looked at before all other lists have their turn.
const BATCH: usize = 64;
/// Tasks that are taken over at the same time.
const AT_ONCE: usize = 8;

/// What the store has yet to be told of this node's list; each task once.
#[derive(Default)]
pub(crate) struct TaskLists {
    changes: Mutex<HashMap<SessionId, Change>>,
    added: Notify,
}

#[derive(Clone)]
enum Change {
    Enlist(Principal),
    Delist,
}

/// What there is to do with a task of another node's list.
#[derive(PartialEq, Eq)]
enum Found {
    /// It goes on here.
    Adopted,
    /// It is over, or another node has it.
    Settled,
    /// It may not be claimed yet, or not by this node.
    Waits,
}

impl TaskLists {
    /// A task runs here.
    pub(crate) fn begin(&self, task: &SessionId, principal: &Principal) {
        self.note(task, Change::Enlist(principal.clone()));
    }

    /// A task is over here.
    pub(crate) fn end(&self, task: &SessionId) {
        self.note(task, Change::Delist);
    }

    fn note(&self, task: &SessionId, change: Change) {
        self.changes.lock().insert(task.clone(), change);
        self.added.notify_one();
    }

    fn take_some(&self) -> Vec<(SessionId, Change)> {
        let mut changes = self.changes.lock();
        let some: Vec<_> = changes.keys().take(TOLD_AT_ONCE).cloned().collect();
        let some = some.into_iter();
        some.filter_map(|task| changes.remove_entry(&task))
            .collect()
    }

    /// What could not be told is to be told later, but for what has changed again.
    fn put_back(&self, changes: Vec<(SessionId, Change)>) {
        let mut waiting = self.changes.lock();
        for (task, change) in changes {
            waiting.entry(task).or_insert(change);
        }
    }
}

/// Keeps this node's list until `stop` fires. The list stays: what was handed over is for others to take.
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
                    tracing::debug!(%error, "could not list this node's tasks");
                    node.task_lists.put_back(changes);
                    sleep(PAUSE).await;
                }
            }
        }
    };
    stop.run_until_cancelled(keeping).await;
}

/// Takes over what nodes that are gone have left, until `stop` fires.
pub(crate) async fn adopt_tasks(node: Arc<Node>, stop: CancellationToken) {
    let adopting = async {
        let mut pause = LOOK_EVERY;
        loop {
            // Not all nodes look at the same time.
            sleep(Backoff::new(pause, pause).pause()).await;
            pause = node.adopt().await.unwrap_or_else(|error| {
                tracing::debug!(%error, "could not look for tasks of nodes that are gone");
                LOOK_EVERY
            });
        }
    };
    stop.run_until_cancelled(adopting).await;
}

/// Whether a session is a task whose call has not ended.
pub(crate) fn runs(live: &LiveSession) -> bool {
    !live.is_lost() && has_end(live) == Some(false)
}

/// Whether a session is a task whose call has ended.
pub(crate) fn has_ended(live: &LiveSession) -> bool {
    has_end(live) == Some(true)
}

fn has_end(live: &LiveSession) -> Option<bool> {
    let has_end = live.read(|record| record.task.as_ref().map(|task| task.end.is_some()));
    has_end.flatten()
}

impl Node {
    /// Lists every task that runs here.
    fn list_all(&self) {
        for live in self.all_live() {
            if runs(&live) {
                self.task_lists.begin(&live.id, &live.principal);
            }
        }
    }

    async fn tell_list(&self, changes: &[(SessionId, Change)]) -> Result<(), StoreError> {
        let (mut begun, mut over) = (Vec::new(), Vec::new());
        for (task, change) in changes {
            match change {
                Change::Enlist(principal) => begun.push((task.clone(), principal.clone())),
                Change::Delist => over.push(task.clone()),
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

    /// As long as the records of its tasks, and until they have been listed again.
    fn list_life(&self) -> Duration {
        let records = self.config.record_life(SessionTransport::Task);
        records.max(3 * LISTED_EVERY)
    }

    /// Looks at the lists of all nodes that are gone, at some of each. Returns when to look again.
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

    /// Whether there may be more.
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
        // On this list before it is off the other: a node that is lost in between leaves it on one of them.
        if !adopted.is_empty() {
            directory
                .enlist(&self.id, &adopted, self.list_life())
                .await?;
        }
        if !over.is_empty() {
            directory.delist(gone, &over).await?;
        }
        // What has ended meanwhile was perhaps taken off before it was put on.
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
                tracing::info!(%task, node = %gone, "a task of a node that is gone goes on here");
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
