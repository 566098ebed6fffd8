//! What a listener is told of its tasks: each in its status of now, whenever that is another than it was told last.
//!
//! The bus says only that something has changed. What there is to tell is asked of the task's owner, in the name of the listener's
//! principal, as `tasks/get` asks. So changes are conflated, and who may not ask for a task hears nothing of it.

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

/// Tasks that are asked for at the same time, for one listener.
const AT_ONCE: usize = 4;
/// How often each task is asked for, whether there is news or not: the news may be lost.
const ASKED_EVERY: Duration = Duration::from_secs(10);
/// When an owner that could not be asked is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// The tasks of one listener.
pub(crate) struct TaskWatch {
    gateway: Arc<dyn SessionGateway>,
    /// Who asks; the session is another each time.
    asker: SessionRef,
    /// Those that have not been told to be over, with what was told of each.
    tasks: HashMap<Arc<str>, Option<u64>>,
    /// Those to ask for, each once.
    due: VecDeque<Arc<str>>,
    /// Those that are being asked for.
    asked: HashSet<Arc<str>>,
    answers: FuturesUnordered<BoxFuture<'static, (Arc<str>, Answer)>>,
    again: Interval,
}

/// What the owner of a task says.
enum Answer {
    Task(RawJson),
    /// There is none, as far as the caller may know.
    Unknown,
    /// Nothing now.
    Away,
}

impl TaskWatch {
    /// Watches those of `ids` that there are, and of which the caller may know: the others fall out of `ids`.
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
            // What was found is not kept until it can be told, since it may be large.
            due: found.into(),
            asked: HashSet::new(),
            answers: FuturesUnordered::new(),
            again,
        }
    }

    /// This task may have changed.
    pub(crate) fn changed(&mut self, task: Arc<str>) {
        if self.tasks.contains_key(&task) && !self.due.contains(&task) {
            self.due.push_back(task);
        }
    }

    /// Whether there is nothing left to tell: all are over, or gone.
    pub(crate) fn is_over(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The next task to tell of, as `tasks/get` says it.
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

    /// Asks for what is due, except for what is being asked for: what comes may be older than the news.
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

    /// What there is to tell. A task that is over is told once, and never looked at again.
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

/// Stands for the part of a task that is told again when it changes: the status, and what it asks.
fn fingerprint(task: &RawJson) -> u64 {
    let parts = ["status", "inputRequests"].map(|name| task.member(name));
    let text = parts
        .iter()
        .flatten()
        .flat_map(|part| part.as_str().bytes());
    stable_hash(text)
}

/// Asks a task's owner for it. An owner that cannot be asked is given some time before that is said.
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
                tracing::debug!(task = %id, ?other, "could not look at a task for its listener");
                sleep(PAUSE).await;
                Answer::Away
            }
        };
        (id, answer)
    }
    .boxed()
}
