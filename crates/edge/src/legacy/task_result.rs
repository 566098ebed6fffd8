//! Waits for a task's end, and asks the client the task's questions meanwhile.
//!
//! The wait ends with its connection and lasts at most as long as a call. A disconnected client asks again at any
//! edge.

use std::collections::{HashSet, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use shoal_ports::{Delivered, EventStream, GatewayError, SessionId, StreamItem, StreamItems};
use shoal_protocol::task::legacy::{self, Question};
use shoal_protocol::task::{Task, TaskState, no_such_task};
use shoal_protocol::{EventId, RawJson, RequestId, RpcError, StreamId, code, error_response};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::tasks::TaskWatch;
use crate::visit::Visit;

const SOON: Duration = Duration::from_millis(200);

/// Answers at once, or with a stream of questions and the result. Cancel safe.
pub(super) async fn serve(
    visit: &Visit<'_>,
    (id, capabilities): (&RequestId, RawJson),
    task: &SessionId,
) -> Result<Delivered, GatewayError> {
    let watched = TaskWatch::begin(visit, &mut vec![task.to_string()]).await;
    if watched.is_over() {
        return Ok(Delivered::Json(error_response(id, &no_such_task())));
    }
    let calls = &visit.edge.config.calls;
    let limit = calls.timeout.get();
    let mut waiter = TaskResultWaiter {
        watched,
        id: id.clone(),
        capabilities,
        limit,
        input: calls.input_timeout.get(),
        until: Instant::now() + limit,
        asked: HashSet::new(),
        due: VecDeque::new(),
        answered: false,
        sent_away: Box::pin(visit.edge.load.waits_end().cancelled_owned()),
    };
    match timeout(SOON, waiter.next()).await {
        Ok(Some(TaskOutput::Answer(text))) => return Ok(Delivered::Json(text)),
        Ok(Some(TaskOutput::Question(question))) => waiter.due.push_front(question),
        Ok(None) | Err(_) => {}
    }
    let items = stream::unfold(waiter, async |mut waiter| {
        let (TaskOutput::Question(data) | TaskOutput::Answer(data)) = waiter.next().await?;
        Some((StreamItem::Passing { data }, waiter))
    });
    Ok(Delivered::Stream(EventStream {
        items: StreamItems::polled(items.fuse()),
        // Not used, because the event log does not have this stream.
        cursor: EventId {
            epoch: 0,
            stream: StreamId::STANDALONE,
            sequence: 0,
        },
    }))
}

struct TaskResultWaiter {
    watched: TaskWatch,
    id: RequestId,
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

enum TaskOutput {
    Question(Bytes),
    Answer(Bytes),
}

impl TaskResultWaiter {
    /// The answer is the last message. Cancel safe.
    async fn next(&mut self) -> Option<TaskOutput> {
        loop {
            if let Some(question) = self.due.pop_front() {
                return Some(TaskOutput::Question(question));
            }
            if self.answered {
                return None;
            }
            let watched = &mut self.watched;
            let next = poll_fn(|cx| match watched.poll_told(cx) {
                Poll::Pending if watched.is_over() => Poll::Ready(None),
                told => told.map(Some),
            });
            let next = timeout_at(self.until, next);
            let next = tokio::select! {
                biased;
                next = next => Some(next),
                () = self.sent_away.as_mut() => None,
            };
            let answer = match next {
                None => error_response(&self.id, &shutting_down()),
                Some(Ok(Some(task))) => match legacy::response_of(&self.id, &task) {
                    Some(response) => response,
                    None => {
                        self.told(&task);
                        continue;
                    }
                },
                Some(Ok(None)) => error_response(&self.id, &no_such_task()),
                Some(Err(_)) => error_response(&self.id, &runs_on(self.limit)),
            };
            self.answered = true;
            return Some(TaskOutput::Answer(answer));
        }
    }

    fn told(&mut self, task: &Task) {
        let more = match task.state {
            TaskState::InputRequired(_) => self.input,
            TaskState::Working | TaskState::Ended(_) => Duration::ZERO,
        };
        self.until = Instant::now() + self.limit + more;
        for Question { key, message } in legacy::questions_of(task, &self.capabilities) {
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
