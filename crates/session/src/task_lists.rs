use std::collections::HashMap;

use parking_lot::Mutex;
use shoal_ports::{Principal, SessionId};
use tokio::sync::Notify;

const TOLD_AT_ONCE: usize = 500;

#[derive(Default)]
pub(crate) struct TaskLists {
    changes: Mutex<HashMap<SessionId, TaskListChange>>,
    pub(crate) added: Notify,
}

#[derive(Clone)]
pub(crate) enum TaskListChange {
    Enlist(Principal),
    Delist,
}

impl TaskLists {
    pub(crate) fn begin(&self, task: &SessionId, principal: &Principal) {
        self.note(task, TaskListChange::Enlist(principal.clone()));
    }

    pub(crate) fn end(&self, task: &SessionId) {
        self.note(task, TaskListChange::Delist);
    }

    fn note(&self, task: &SessionId, change: TaskListChange) {
        self.changes.lock().insert(task.clone(), change);
        self.added.notify_one();
    }

    pub(crate) fn take_some(&self) -> Vec<(SessionId, TaskListChange)> {
        let mut changes = self.changes.lock();
        let some: Vec<_> = changes.keys().take(TOLD_AT_ONCE).cloned().collect();
        let some = some.into_iter();
        some.filter_map(|task| changes.remove_entry(&task))
            .collect()
    }

    /// Queues changes again that could not be stored, except those that newer changes replace.
    pub(crate) fn put_back(&self, changes: Vec<(SessionId, TaskListChange)>) {
        let mut waiting = self.changes.lock();
        for (task, change) in changes {
            waiting.entry(task).or_insert(change);
        }
    }
}
