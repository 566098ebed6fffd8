//! Tells a listener about its tasks' status.
//!
//! The watch waits at each task's owner, in the name of the listener's principal. If the owner is lost, the gateway
//! finds the next one, so news after a takeover come without polling.

use std::collections::VecDeque;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, Stream, StreamExt as _};
use shoal_ports::{GatewayError, SessionGateway, SessionRef, TaskMark, TaskRequest};
use shoal_protocol::task::Task;
use tokio::time::{Instant, sleep_until};

use super::{task_of, to};
use crate::visit::Visit;

const AT_ONCE: usize = 4;
/// The least time between two requests to an owner that cannot be reached or has no news.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct TaskWatch {
    gateway: Arc<dyn SessionGateway>,
    /// States that are not reported yet.
    due: VecDeque<Task>,
    /// One wait for each running task.
    waits: FuturesUnordered<BoxFuture<'static, News>>,
}

/// A task with its new state. `None` if the listener can no longer see the task.
type News = (SessionRef, Option<Task>);

impl TaskWatch {
    /// Starts to watch those tasks of `ids` that the caller may see. Removes the others from `ids`.
    pub(crate) async fn begin(visit: &Visit<'_>, ids: &mut Vec<String>) -> Self {
        let gateway = &visit.edge.gateway;
        let tasks = ids.iter().filter_map(|id| task_of(id.clone()));
        let asked: Vec<_> = tasks
            .map(|task| look(Arc::clone(gateway), to(visit, task)))
            .collect();
        let found: Vec<(SessionRef, Looked)> = futures::stream::iter(asked)
            .buffered(AT_ONCE)
            .filter(|(_, looked)| ready(!matches!(looked, Looked::Unknown)))
            .collect()
            .await;
        *ids = found.iter().map(|(to, _)| to.session.to_string()).collect();
        let mut watch = Self {
            gateway: Arc::clone(gateway),
            due: VecDeque::new(),
            waits: FuturesUnordered::new(),
        };
        for (to, looked) in found {
            match looked {
                Looked::Task(task) => watch.saw(to, *task),
                Looked::Unknown | Looked::Away => watch.wait(to, None),
            }
        }
        watch
    }

    pub(crate) fn is_over(&self) -> bool {
        self.due.is_empty() && self.waits.is_empty()
    }

    /// Returns a task's state whenever it has changed, first the present one. Reports a finished task once.
    pub(crate) fn poll_told(&mut self, cx: &mut Context<'_>) -> Poll<Task> {
        loop {
            if let Some(task) = self.due.pop_front() {
                return Poll::Ready(task);
            }
            let next = Pin::new(&mut self.waits).poll_next(cx);
            let Poll::Ready(Some((to, task))) = next else {
                return Poll::Pending;
            };
            if let Some(task) = task {
                self.saw(to, task);
            }
        }
    }

    fn saw(&mut self, to: SessionRef, task: Task) {
        if !task.is_over() {
            self.wait(to, Some(TaskMark::of(&task)));
        }
        self.due.push_back(task);
    }

    fn wait(&mut self, to: SessionRef, seen: Option<TaskMark>) {
        let wait = wait(Arc::clone(&self.gateway), to, seen);
        self.waits.push(wait.boxed());
    }
}

enum Looked {
    Task(Box<Task>),
    Unknown,
    Away,
}

async fn look(gateway: Arc<dyn SessionGateway>, to: SessionRef) -> (SessionRef, Looked) {
    let looked = match gateway.ask_task(&to, TaskRequest::Get).await {
        Ok(task) => Looked::Task(Box::new(task)),
        Err(GatewayError::NotFound) => Looked::Unknown,
        Err(error) => {
            unreadable(&to, &error);
            Looked::Away
        }
    };
    (to, looked)
}

/// Waits until the task differs from `seen`. The owner bounds each wait.
async fn wait(gateway: Arc<dyn SessionGateway>, to: SessionRef, seen: Option<TaskMark>) -> News {
    loop {
        let asked = Instant::now();
        let request = match seen {
            Some(seen) => TaskRequest::Watch { seen },
            None => TaskRequest::Get,
        };
        match gateway.ask_task(&to, request).await {
            Ok(task) if seen != Some(TaskMark::of(&task)) => return (to, Some(task)),
            Ok(_) => {}
            Err(GatewayError::NotFound) => return (to, None),
            Err(error) => unreadable(&to, &error),
        }
        sleep_until(asked + PAUSE).await;
    }
}

fn unreadable(to: &SessionRef, error: &GatewayError) {
    tracing::debug!(task = %to.session, %error, "cannot read a task for its listener");
}
