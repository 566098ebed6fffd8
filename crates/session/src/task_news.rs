//! Announces changed tasks to all nodes, best effort.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{ClusterEvent, SessionId};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::sessions::Node;

const PAUSE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct TaskNews {
    waiting: Mutex<HashSet<SessionId>>,
    added: Notify,
}

impl TaskNews {
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

pub(crate) async fn publish_task_news(node: Arc<Node>, stop: CancellationToken) {
    let bus = &node.driver.store.bus;
    let publishing = async {
        loop {
            let task = node.task_news.next().await;
            // Removed first, so that a change meanwhile is announced again.
            node.task_news.waiting.lock().remove(&task);
            let event = ClusterEvent::TaskChanged { task: task.clone() };
            if let Err(error) = bus.publish(event).await {
                tracing::debug!(%task, %error, "cannot announce that a task has changed");
                // The next owner announces a moved task.
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
