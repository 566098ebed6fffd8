//! Tells a listener about its tasks' status.
//!
//! The bus only signals changes. Shoal then asks the task's owner in the name of the listener's
//! principal, like `tasks/get`. So changes are merged, and a listener without access hears of no
//! changes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, Stream, StreamExt as _};
use shoal_ports::{
    Delivered, GatewayError, Post, SessionGateway, SessionId, SessionRef, stable_hash,
};
use shoal_protocol::task::is_over;
use shoal_protocol::{Body, Message, Method, RawJson, RawObject, Request, RequestId};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep};

use super::task_of;
use crate::visit::Visit;

const AT_ONCE: usize = 4;
/// The polling interval. Polling is needed because signals may be lost.
const ASKED_EVERY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct TaskWatch {
    gateway: Arc<dyn SessionGateway>,
    /// The principal in whose name the watch asks. Its session changes with each task.
    asker: SessionRef,
    /// Running tasks, with a fingerprint of the last report.
    tasks: HashMap<Arc<str>, Option<u64>>,
    due: VecDeque<Arc<str>>,
    asked: HashSet<Arc<str>>,
    answers: FuturesUnordered<BoxFuture<'static, (Arc<str>, Answer)>>,
    again: Interval,
}

enum Answer {
    Task(RawJson),
    Unknown,
    Away,
}

impl TaskWatch {
    /// Starts to watch those tasks of `ids` that the caller may see. Removes the others from `ids`.
    pub(crate) async fn begin(visit: &Visit<'_>, ids: &mut Vec<String>) -> Self {
        let start = Instant::now() + ASKED_EVERY;
        let mut again = interval_at(start, ASKED_EVERY);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let named = |id: &String| task_of(id.clone()).map(|task| (Arc::from(id.as_str()), task));
        let asker = |task| SessionRef {
            trace: visit.trace.clone(),
            ..SessionRef::new(task, visit.principal.clone())
        };
        let gateway = &visit.edge.gateway;
        let asked: Vec<_> = ids
            .iter()
            .filter_map(named)
            .map(|(id, task)| ask(Arc::clone(gateway), asker(task), id))
            .collect();
        let found: Vec<Arc<str>> = futures::stream::iter(asked)
            .buffered(AT_ONCE)
            .filter_map(|(id, answer)| ready((!matches!(answer, Answer::Unknown)).then_some(id)))
            .collect()
            .await;
        *ids = found.iter().map(ToString::to_string).collect();
        Self {
            gateway: Arc::clone(gateway),
            asker: asker(SessionId::new("")),
            tasks: found.iter().map(|id| (Arc::clone(id), None)).collect(),
            due: found.into(),
            asked: HashSet::new(),
            answers: FuturesUnordered::new(),
            again,
        }
    }

    pub(crate) fn changed(&mut self, task: Arc<str>) {
        if self.tasks.contains_key(&task) && !self.due.contains(&task) {
            self.due.push_back(task);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(crate) fn poll_told(&mut self, cx: &mut Context<'_>) -> Poll<RawJson> {
        loop {
            while self.again.poll_tick(cx).is_ready() {
                let all: Vec<_> = self.tasks.keys().cloned().collect();
                all.into_iter().for_each(|task| self.changed(task));
            }
            self.ask_due();
            let Poll::Ready(Some((id, answer))) = Pin::new(&mut self.answers).poll_next(cx) else {
                return Poll::Pending;
            };
            self.asked.remove(&id);
            if let Some(task) = self.news(&id, answer) {
                return Poll::Ready(task);
            }
        }
    }

    /// Asks owners about the tasks that are due. A task with an open question waits, because the answer may
    /// be older than the news.
    fn ask_due(&mut self) {
        for _ in 0..self.due.len() {
            let Some(id) = self.due.pop_front() else {
                return;
            };
            if self.asked.contains(&id) || self.asked.len() >= AT_ONCE {
                self.due.push_back(id);
                continue;
            }
            let Some(session) = task_of(id.to_string()) else {
                continue;
            };
            let to = SessionRef {
                session,
                ..self.asker.clone()
            };
            self.asked.insert(Arc::clone(&id));
            self.answers.push(ask(Arc::clone(&self.gateway), to, id));
        }
    }

    /// Reports a task if it has changed. Reports a finished task once and then drops it.
    fn news(&mut self, id: &Arc<str>, answer: Answer) -> Option<RawJson> {
        let task = match answer {
            Answer::Task(task) => task,
            Answer::Unknown => {
                self.tasks.remove(id);
                return None;
            }
            Answer::Away => {
                self.changed(Arc::clone(id));
                return None;
            }
        };
        let now = fingerprint(&task);
        if *self.tasks.get(id)? == Some(now) {
            return None;
        }
        match is_over(&task) {
            true => drop(self.tasks.remove(id)),
            false => drop(self.tasks.insert(Arc::clone(id), Some(now))),
        }
        Some(task)
    }
}

/// Hashes the parts of a task whose changes are reported: its status and its questions.
fn fingerprint(task: &RawJson) -> u64 {
    let parts = ["status", "inputRequests"].map(|name| task.member(name));
    let text = parts
        .iter()
        .flatten()
        .flat_map(|part| part.as_str().bytes());
    stable_hash(text)
}

/// Asks a task's owner for its state. Waits a while before asking an unreachable owner again.
fn ask(
    gateway: Arc<dyn SessionGateway>,
    to: SessionRef,
    id: Arc<str>,
) -> BoxFuture<'static, (Arc<str>, Answer)> {
    async move {
        let mut params = RawObject::default();
        params.set("taskId", RawJson::of(&*id));
        let get = Request {
            id: RequestId::from_string("get"),
            method: Method::TasksGet,
            params: Some(params.to_json()),
        };
        let post = Post::new(Body::Single(Message::Request(get)));
        let answer = match gateway.deliver(&to, post).await {
            Ok(Delivered::Json(text)) => {
                let answer = RawJson::from_valid(text);
                answer
                    .member("result")
                    .map_or(Answer::Unknown, Answer::Task)
            }
            Err(GatewayError::NotFound) => Answer::Unknown,
            other => {
                tracing::debug!(task = %id, ?other, "cannot read a task for its listener");
                sleep(PAUSE).await;
                Answer::Away
            }
        };
        (id, answer)
    }
    .boxed()
}
