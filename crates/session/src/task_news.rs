//! Tells everybody which tasks have changed. Best effort, as all news: who listens looks for itself now and then.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{ClusterEvent, SessionId};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::sessions::Node;

/// How long what could not be told waits.
const PAUSE: Duration = Duration::from_secs(1);

/// Tasks of which there is news to tell; each once, however often it changes before it is told.
#[derive(Default)]
pub(crate) struct TaskNews {
    waiting: Mutex<HashSet<SessionId>>,
    added: Notify,
}

impl TaskNews {
    /// The status of a task of this node has changed.
    pub(crate) fn add(&self, task: &SessionId) {
        if self.waiting.lock().insert(task.clone()) {
            self.added.notify_one();
        }
    }

    async fn next(&self) -> SessionId {
        loop {
            let next = self.waiting.lock().iter().next().cloned();
            match next {
                Some(task) => return task,
                None => self.added.notified().await,
            }
        }
    }
}

/// Publishes the news of tasks until `stop` fires.
pub(crate) async fn publish_task_news(node: Arc<Node>, stop: CancellationToken) {
    let bus = &node.driver.store.bus;
    let publishing = async {
        loop {
            let task = node.task_news.next().await;
            // Taken out before it is told: what changes meanwhile is news again.
            node.task_news.waiting.lock().remove(&task);
            let event = ClusterEvent::TaskChanged { task: task.clone() };
            if let Err(error) = bus.publish(event).await {
                tracing::debug!(%task, %error, "could not tell that a task has changed");
                // One that is not here any more is told of by its next owner, or is gone.
                if node.live(&task).is_some() {
                    node.task_news.add(&task);
                }
                sleep(PAUSE).await;
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = publishing => {}
    }
}
