//! `tasks/result`: waits for a task's end, and asks the client the task's questions meanwhile.
//!
//! The wait ends with its connection and lasts at most as long as a call. A disconnected client
//! asks again at any edge.

use std::collections::{HashSet, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use shoal_ports::{
    Caller, Delivered, EventStream, ForwardedHeaders, GatewayError, SessionId, SessionRef,
    StreamItem, StreamItems,
};
use shoal_protocol::task::legacy::{self, Question};
use shoal_protocol::task::{is_over, no_such_task};
use shoal_protocol::{
    EventId, RawJson, RequestId, Revision, RpcError, StreamId, code, error_response,
};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::subscriptions::{Filter, News, Subscription};
use crate::tasks::TaskWatch;
use crate::visit::Visit;

const SOON: Duration = Duration::from_millis(200);

/// Waits for the task's end. Answers at once, or with a stream of questions and the result. Cancel safe.
pub(super) async fn serve(
    visit: &Visit<'_>,
    session: &SessionRef,
    (id, capabilities): (&RequestId, RawJson),
    task: &SessionId,
) -> Result<Delivered, GatewayError> {
    let task = task.to_string();
    let Some(watched) = Watched::begin(visit, session, &task).await else {
        return Ok(Delivered::Json(error_response(id, &no_such_task())));
    };
    let timing = &visit.edge.config.timing;
    let limit = timing.call_deadline;
    let mut waiter = Waiter {
        watched,
        id: id.clone(),
        task,
        capabilities,
        limit,
        input: timing.input,
        until: Instant::now() + limit,
        asked: HashSet::new(),
        due: VecDeque::new(),
        answered: false,
        sent_away: Box::pin(visit.edge.load.waits_end().cancelled_owned()),
    };
    match timeout(SOON, waiter.next()).await {
        Ok(Some(Said::Answer(text))) => return Ok(Delivered::Json(text)),
        Ok(Some(Said::Question(question))) => waiter.due.push_front(question),
        Ok(None) | Err(_) => {}
    }
    let items = stream::unfold(waiter, async |mut waiter| {
        let (Said::Question(data) | Said::Answer(data)) = waiter.next().await?;
        Some((StreamItem::Passing { data }, waiter))
    });
    Ok(Delivered::Stream(EventStream {
        items: StreamItems::polled(items.fuse()),
        // The event log does not have this stream.
        cursor: EventId {
            epoch: 0,
            stream: StreamId::STANDALONE,
            sequence: 0,
        },
    }))
}

struct Waiter {
    watched: Watched,
    id: RequestId,
    task: String,
    capabilities: RawJson,
    /// The maximum wait. It grows while the task waits for input.
    limit: Duration,
    input: Duration,
    until: Instant,
    /// Keys of questions that the client has received. After the loss of the task's node, the next node
    /// repeats an open question unchanged.
    asked: HashSet<String>,
    due: VecDeque<Bytes>,
    answered: bool,
    sent_away: Pin<Box<WaitForCancellationFutureOwned>>,
}

enum Said {
    Question(Bytes),
    Answer(Bytes),
}

impl Waiter {
    /// Returns the next message, of which the answer is the last. Cancel safe.
    async fn next(&mut self) -> Option<Said> {
        loop {
            if let Some(question) = self.due.pop_front() {
                return Some(Said::Question(question));
            }
            if self.answered {
                return None;
            }
            let next = timeout_at(self.until, self.watched.next());
            let next = tokio::select! {
                biased;
                next = next => Some(next),
                () = self.sent_away.as_mut() => None,
            };
            let answer = match next {
                None => error_response(&self.id, &shutting_down()),
                Some(Ok(Some(task))) if is_over(&task) => {
                    legacy::response_of(&self.id, &self.task, &task)
                }
                Some(Ok(Some(task))) => {
                    self.told(&task);
                    continue;
                }
                Some(Ok(None)) => error_response(&self.id, &no_such_task()),
                Some(Err(_)) => error_response(&self.id, &runs_on(self.limit)),
            };
            self.answered = true;
            return Some(Said::Answer(answer));
        }
    }

    fn told(&mut self, task: &RawJson) {
        let asks = task.member("inputRequests").is_some();
        let more = if asks { self.input } else { Duration::ZERO };
        self.until = Instant::now() + self.limit + more;
        for Question { key, message } in legacy::questions_of(&self.task, task, &self.capabilities)
        {
            if self.asked.insert(key) {
                self.due.push_back(message);
            }
        }
    }
}

fn shutting_down() -> RpcError {
    let message = "this node is shutting down; the task continues: request its result again now";
    RpcError::new(code::NOT_EXECUTED, message)
}

fn runs_on(limit: Duration) -> RpcError {
    let message = format!(
        "the task has not ended within {} s and continues: request its result again later",
        limit.as_secs()
    );
    RpcError::new(code::DEADLINE_EXCEEDED, message)
}

struct Watched {
    tasks: TaskWatch,
    news: Subscription,
    /// Whether the hub delivers changes of the task. If not, this edge polls the task.
    is_told: bool,
}

impl Watched {
    async fn begin(visit: &Visit<'_>, session: &SessionRef, task: &str) -> Option<Self> {
        let caller = caller(visit, &session.session);
        let mut filter = Filter {
            task_ids: vec![task.to_owned()],
            ..Filter::default()
        };
        let hub = &visit.edge.hub;
        let news = hub.join(&caller, &mut filter, 1).await;
        // Begun after joining the hub, so that the watch sees all changes.
        let tasks = TaskWatch::begin(visit, &mut filter.task_ids).await;
        (!tasks.is_over()).then_some(Self {
            tasks,
            news,
            is_told: true,
        })
    }

    /// Returns the task as of 2026-07-28 whenever it changes. Cancel safe.
    async fn next(&mut self) -> Option<RawJson> {
        poll_fn(|cx| {
            while self.is_told
                && let Poll::Ready(news) = self.news.listener.poll_news(cx)
            {
                match news {
                    Some(News::Task(task)) => self.tasks.changed(task),
                    Some(_) => {}
                    None => self.is_told = false,
                }
            }
            if let Poll::Ready(task) = self.tasks.poll_told(cx) {
                return Poll::Ready(Some(task));
            }
            match self.tasks.is_over() {
                true => Poll::Ready(None),
                false => Poll::Pending,
            }
        })
        .await
    }
}

fn caller(visit: &Visit<'_>, session: &SessionId) -> Caller {
    Caller {
        principal: visit.principal.clone(),
        session: Some(session.clone()),
        revision: Revision::LATEST_LEGACY,
        client_info: None,
        capabilities: RawJson::from_static("{}"),
        headers: ForwardedHeaders::default(),
        grant: visit.grant.clone(),
    }
}
