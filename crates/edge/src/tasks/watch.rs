//! Tells a listener about its tasks' status.
//!
//! The watch waits at each task's owner, in the name of the listener's principal. If the owner is lost, the gateway
//! finds the next one, so news after a takeover come without polling.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use shoal_ports::{GatewayError, SessionGateway, SessionRef, TaskMark, TaskRequest};
use shoal_protocol::task::Task;
use tokio::time::{Instant, sleep, sleep_until};

use super::{task_of, to};
use crate::places::TakenPlace;
use crate::state::EdgeState;
use crate::visit::Visit;

const AT_ONCE: usize = 4;
/// The least time between two requests to an owner that cannot be reached or has no news.
const PAUSE: Duration = Duration::from_secs(1);

/// How often the watch asks about a task if its principal watches as many as it may.
const POLL: Duration = Duration::from_secs(10);
/// Maximum waits of one principal at this edge. Each takes some kilobytes here and at the task's owner.
const WAITS_OF_PRINCIPAL: usize = 1024;

pub(crate) struct TaskWatch {
    edge: Arc<EdgeState>,
    /// Tasks whose state is not reported yet, with the mark of the reported one.
    due: VecDeque<(SessionRef, Option<TaskMark>)>,
    /// The task whose state is being read. One at a time, because a state may have a large result.
    reading: Option<BoxFuture<'static, (WatchedTask, Result<Task, GatewayError>)>>,
    /// One wait for each running task.
    waits: FuturesUnordered<BoxFuture<'static, Option<WatchedTask>>>,
}

/// A task with the mark of the state that was reported.
type WatchedTask = (SessionRef, Option<TaskMark>);

impl TaskWatch {
    /// Removes tasks that the caller may not see from `ids`.
    pub(crate) async fn begin(visit: &Visit<'_>, ids: &mut Vec<String>) -> Self {
        let gateway = &visit.edge.gateway;
        let tasks = ids.iter().filter_map(|id| task_of(id.clone()));
        let asked: Vec<_> = tasks
            .map(|task| can_see(Arc::clone(gateway), to(visit, task)))
            .collect();
        let due: VecDeque<WatchedTask> = futures::stream::iter(asked)
            .buffered(AT_ONCE)
            .filter_map(|seen| futures::future::ready(seen.map(|to| (to, None))))
            .collect()
            .await;
        *ids = due.iter().map(|(to, _)| to.session.to_string()).collect();
        Self {
            edge: Arc::clone(visit.edge),
            due,
            reading: None,
            waits: FuturesUnordered::new(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.due.is_empty() && self.reading.is_none() && self.waits.is_empty()
    }

    /// Returns a task's state whenever it has changed, first the present one. Reports a finished task once.
    pub(crate) fn poll_told(&mut self, cx: &mut Context<'_>) -> Poll<Task> {
        loop {
            while let Poll::Ready(Some(news)) = self.waits.poll_next_unpin(cx) {
                self.due.extend(news);
            }
            if self.reading.is_none() {
                let Some(due) = self.due.pop_front() else {
                    return Poll::Pending;
                };
                self.reading = Some(read(Arc::clone(&self.edge.gateway), due).boxed());
            }
            let Some(reading) = &mut self.reading else {
                continue;
            };
            let ((to, reported), read) = ready!(reading.poll_unpin(cx));
            self.reading = None;
            let task = match read {
                Ok(task) => task,
                Err(GatewayError::NotFound) => continue,
                Err(error) => {
                    unreadable(&to, &error);
                    // The other tasks do not wait for this one's owner.
                    self.waits.push(later((to, reported)).boxed());
                    continue;
                }
            };
            let mark = TaskMark::of(&task);
            if !task.is_over() {
                self.wait(to, mark);
            }
            // The task may have changed back while it was being read.
            if reported != Some(mark) {
                return Poll::Ready(task);
            }
        }
    }

    fn wait(&mut self, to: SessionRef, seen: TaskMark) {
        let place = (self.edge.task_waits).take(&to.principal, WAITS_OF_PRINCIPAL);
        let wait = wait(Arc::clone(&self.edge.gateway), to, seen, place);
        self.waits.push(wait.boxed());
    }
}

/// A task whose owner is unreachable may be visible later.
async fn can_see(gateway: Arc<dyn SessionGateway>, to: SessionRef) -> Option<SessionRef> {
    // An answer to `Get` could have a large result.
    let seen = TaskMark(0);
    match gateway.ask_task(&to, TaskRequest::Watch { seen }).await {
        Err(GatewayError::NotFound) => None,
        Err(error) => {
            unreadable(&to, &error);
            Some(to)
        }
        Ok(_) => Some(to),
    }
}

async fn read(
    gateway: Arc<dyn SessionGateway>,
    watched: WatchedTask,
) -> (WatchedTask, Result<Task, GatewayError>) {
    let read = gateway.ask_task(&watched.0, TaskRequest::Get).await;
    (watched, read)
}

async fn later(watched: WatchedTask) -> Option<WatchedTask> {
    sleep(PAUSE).await;
    Some(watched)
}

/// The owner bounds each wait. Without a `place`, asks from time to time. `None` if the listener can no longer see
/// the task.
async fn wait(
    gateway: Arc<dyn SessionGateway>,
    to: SessionRef,
    seen: TaskMark,
    place: Option<TakenPlace>,
) -> Option<WatchedTask> {
    loop {
        let asked = Instant::now();
        let (request, pause) = match &place {
            Some(_) => (TaskRequest::Watch { seen }, PAUSE),
            None => {
                let seen = seen.of_another();
                (TaskRequest::Watch { seen }, POLL)
            }
        };
        match gateway.ask_task(&to, request).await {
            Ok(task) if seen != TaskMark::of(&task) => return Some((to, Some(seen))),
            Ok(_) => {}
            Err(GatewayError::NotFound) => return None,
            Err(error) => unreadable(&to, &error),
        }
        sleep_until(asked + pause).await;
    }
}

fn unreadable(to: &SessionRef, error: &GatewayError) {
    tracing::debug!(task = %to.session, %error, "cannot read a task for its listener");
}
