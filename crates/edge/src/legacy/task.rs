//! Requests of a session about tasks (2025-11-25, Tasks).
//!
//! The session knows its tasks, and each task's owner knows its state. A task's questions go out with `tasks/result`.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use shoal_ports::{
    Delivered, GatewayError, SessionId, SessionRef, SessionTasks, TaskAnswer, TaskMark, TaskRequest,
};
use shoal_protocol::task::{Task, TaskEnd, TaskState, legacy, no_such_task};
use shoal_protocol::{
    Body, Message, Method, RawJson, RawObject, Request, RequestId, RpcError, error_response,
    response,
};
use tokio::time::{Instant, timeout_at};

use super::task_result;
use crate::tasks::{named, task_of, to};
use crate::visit::Visit;

const AT_ONCE: usize = 4;
/// How long a cancelled task may take to stop before the edge tells the client to ask again.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
const LATER: Duration = Duration::from_secs(1);

/// Returns any other body as the error.
pub(super) fn asked(visit: &Visit<'_>, body: Body) -> Result<Request, Body> {
    match body {
        Body::Single(Message::Request(request))
            if visit.edge.config.tasks.enabled && request.method.is_of_legacy_task() =>
        {
            Ok(request)
        }
        body => Err(body),
    }
}

pub(super) struct AnsweredTask {
    task: SessionId,
    answer: TaskAnswer,
}

/// Returns any other body as the error.
pub(super) fn answered(visit: &Visit<'_>, body: Body) -> Result<AnsweredTask, Body> {
    let Body::Single(Message::Response(response)) = body else {
        return Err(body);
    };
    let question = legacy::question_of(&response.id).filter(|_| visit.edge.config.tasks.enabled);
    match question.and_then(|(task, key)| Some((task_of(task)?, key))) {
        Some((task, key)) => {
            let outcome = response.outcome;
            let answer = TaskAnswer { key, outcome };
            Ok(AnsweredTask { task, answer })
        }
        None => Err(Body::Single(Message::Response(response))),
    }
}

/// Ignores an answer to a question that is not open. Cancel safe: the answer was delivered or not.
///
/// # Errors
/// The gateway's errors about the session or the task's owner.
pub(super) async fn answer(
    visit: &Visit<'_>,
    session: &SessionRef,
    answered: AnsweredTask,
) -> Result<Delivered, GatewayError> {
    let gateway = &visit.edge.gateway;
    if gateway.tasks_of(session).await?.is_none() {
        return Ok(Delivered::Accepted);
    }
    let answer = TaskRequest::Answer {
        answers: vec![answered.answer],
        // The client does not repeat its answer.
        awaits_question: true,
    };
    match gateway.ask_task(&to(visit, answered.task), answer).await {
        Ok(_) | Err(GatewayError::NotFound) => Ok(Delivered::Accepted),
        Err(error) => Err(error),
    }
}

/// `own` are the tasks that the session has made. Cancel safe: if the future is dropped, the owner may have told a
/// task to stop.
pub(super) async fn serve(
    visit: &Visit<'_>,
    own: SessionTasks,
    request: Request,
) -> Result<Delivered, GatewayError> {
    let refused = |error: &RpcError| Ok(Delivered::Json(error_response(&request.id, error)));
    if request.method == Method::TasksList {
        let params = request.params.as_ref();
        return match params.is_some_and(|params| params.cursor().is_some()) {
            false => list(visit, &request.id, own.tasks)
                .await
                .map(Delivered::Json),
            true => refused(&RpcError::invalid_params(
                "params.cursor is unknown: all tasks are on the first page",
            )),
        };
    }
    let task = match named(request.params.as_ref()) {
        Ok(task) => task,
        Err(error) => return refused(&error),
    };
    let answer = match request.method {
        Method::TasksResult => {
            let waiter = (&request.id, own.capabilities);
            return task_result::serve(visit, waiter, &task).await;
        }
        Method::TasksCancel => cancel(visit, &task).await?,
        _ => ask(visit, &task, TaskRequest::Get).await?,
    };
    match answer {
        Ok(task) => Ok(Delivered::Json(response(&request.id, &task.to_legacy()))),
        Err(error) => refused(&error),
    }
}

async fn ask(
    visit: &Visit<'_>,
    task: &SessionId,
    request: TaskRequest,
) -> Result<Result<Task, RpcError>, GatewayError> {
    let to = to(visit, task.clone());
    match visit.edge.gateway.ask_task(&to, request).await {
        Ok(task) => Ok(Ok(task)),
        Err(GatewayError::NotFound) => Ok(Err(no_such_task())),
        Err(error) => Err(error),
    }
}

async fn list(
    visit: &Visit<'_>,
    id: &RequestId,
    own: Vec<SessionId>,
) -> Result<Bytes, GatewayError> {
    let asked = own.into_iter().map(async |task| {
        let found = ask(visit, &task, TaskRequest::Get).await?;
        // Without the result, because many tasks may have large ones.
        Ok::<_, GatewayError>(found.ok().map(|task| task.to_legacy()))
    });
    // The compiler rejects a stream of these closures.
    let asked: Vec<_> = asked.collect();
    let found: Vec<Option<RawJson>> = futures::stream::iter(asked)
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let tasks: Vec<RawJson> = found.into_iter().flatten().collect();
    let mut listed = RawObject::default();
    listed.set("tasks", RawJson::of(&tasks));
    Ok(response(id, &listed.to_json()))
}

/// Waits until the task has stopped, because only then may the edge tell the client.
async fn cancel(
    visit: &Visit<'_>,
    task: &SessionId,
) -> Result<Result<Task, RpcError>, GatewayError> {
    let over = |task: &Task| Ok(Err(legacy::is_over_already(task.legacy_status())));
    let mut seen = match ask(visit, task, TaskRequest::Cancel).await? {
        Ok(before) if before.is_over() => return over(&before),
        Ok(before) => TaskMark::of(&before),
        Err(error) => return Ok(Err(error)),
    };
    let until = Instant::now() + STOPS_WITHIN;
    loop {
        let watch = TaskRequest::Watch { seen };
        let Ok(now) = timeout_at(until, ask(visit, task, watch)).await else {
            return Err(GatewayError::Unavailable {
                reason: "the task was told to stop, but its tool has not stopped yet".to_owned(),
                retry_after: LATER,
            });
        };
        match now? {
            Ok(now) if now.state == TaskState::Ended(TaskEnd::Cancelled) => return Ok(Ok(now)),
            Ok(now) if now.is_over() => return over(&now),
            Ok(now) => seen = TaskMark::of(&now),
            Err(error) => return Ok(Err(error)),
        }
    }
}
