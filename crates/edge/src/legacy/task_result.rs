//! `tasks/result`: waits for the end of a task, and answers with what its call would have been answered with.
//!
//! The wait is that of one connection: it holds what the request holds, ends with it, and may last as long as a call. Whoever
//! was cut off asks again, at any edge.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use shoal_ports::{
    Delivered, EventStream, GatewayError, SessionId, SessionRef, StreamItem, StreamItems,
};
use shoal_protocol::task::{is_over, legacy, no_such_task};
use shoal_protocol::{EventId, RawJson, RequestId, RpcError, StreamId, code, error_response};
use tokio::time::timeout;

use super::plan;
use crate::subscriptions::{Filter, News, Subscription};
use crate::tasks::TaskWatch;
use crate::visit::Visit;

/// How long an answer may take that is no stream.
const SOON: Duration = Duration::from_millis(200);

/// Answers at once, or with a stream that has the answer once it is there.
///
/// # Errors
/// None of its own. Cancellation safe: nothing is changed.
pub(super) async fn serve(
    visit: &Visit<'_>,
    session: &SessionRef,
    id: &RequestId,
    task: &SessionId,
) -> Result<Delivered, GatewayError> {
    let (id, name) = (id.clone(), task.to_string());
    let Some(mut watched) = Watched::begin(visit, session, &name).await else {
        return Ok(Delivered::Json(error_response(&id, &no_such_task())));
    };
    let limit = visit.edge.config.timing.call_deadline;
    let mut ended = Box::pin(async move {
        match timeout(limit, watched.end()).await {
            Ok(Some(task)) => legacy::response_of(&id, &name, &task),
            Ok(None) => error_response(&id, &no_such_task()),
            Err(_) => error_response(&id, &runs_on(limit)),
        }
    });
    if let Ok(text) = timeout(SOON, &mut ended).await {
        return Ok(Delivered::Json(text));
    }
    let answer = async move {
        let data: Bytes = ended.await;
        StreamItem::Passing { data }
    };
    Ok(Delivered::Stream(EventStream {
        items: StreamItems::polled(stream::once(answer)),
        // It is in no log.
        cursor: EventId {
            epoch: 0,
            stream: StreamId::STANDALONE,
            sequence: 0,
        },
    }))
}

/// That a task takes longer than a request may wait.
fn runs_on(limit: Duration) -> RpcError {
    let message = format!(
        "the task has not ended within {} s; it goes on, and its result can be asked for again",
        limit.as_secs()
    );
    RpcError::new(code::DEADLINE_EXCEEDED, message)
}

/// A task that is waited for.
struct Watched {
    tasks: TaskWatch,
    news: Subscription,
    /// Whether there may be more news. Without, it is asked for now and then.
    is_told: bool,
}

impl Watched {
    /// None where there is no such task, as far as whoever visits may know.
    async fn begin(visit: &Visit<'_>, session: &SessionRef, task: &str) -> Option<Self> {
        let caller = plan::caller(visit, &session.session);
        let mut filter = Filter {
            task_ids: vec![task.to_owned()],
            ..Filter::default()
        };
        let hub = &visit.edge.hub;
        let news = hub.join(&caller, &mut filter, 1).await;
        // After joining, so that no change is missed.
        let tasks = TaskWatch::begin(visit, &mut filter.task_ids).await;
        (!tasks.is_over()).then_some(Self {
            tasks,
            news,
            is_told: true,
        })
    }

    /// The task once it has ended, as 2026-07-28 has it; `None` if it is gone before. Cancellation safe.
    async fn end(&mut self) -> Option<RawJson> {
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
            while let Poll::Ready(task) = self.tasks.poll_told(cx) {
                if is_over(&task) {
                    return Poll::Ready(Some(task));
                }
            }
            match self.tasks.is_over() {
                true => Poll::Ready(None),
                false => Poll::Pending,
            }
        })
        .await
    }
}
