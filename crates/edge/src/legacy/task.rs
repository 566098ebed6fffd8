//! `tasks/get`, `tasks/result`, `tasks/cancel` and `tasks/list` of a session (2025-11-25, Tasks).
//!
//! The session knows its tasks. Each task is a session of its own, whose owner reports its status.
//! A task's questions go out with `tasks/result`.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use shoal_ports::{Delivered, GatewayError, Post, SessionId, SessionRef};
use shoal_protocol::task::{is_over, legacy, no_such_task};
use shoal_protocol::{
    Body, Message, Method, RawJson, RawObject, Request, RequestId, Response, RpcError, code,
    error_response, response,
};
use tokio::time::{Instant, sleep};

use super::task_result;
use crate::tasks::task_of;
use crate::visit::Visit;

const AT_ONCE: usize = 4;
/// How long a cancelled task may take to stop before the client is told to ask again.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
const LATER: Duration = Duration::from_secs(1);

/// Extracts a request about tasks from a body.
///
/// # Errors
/// Returns any other body.
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

pub(super) struct Answered {
    task: SessionId,
    response: Response,
}

/// Extracts an answer to a task's question from a body.
///
/// # Errors
/// Returns any other body.
pub(super) fn answered(visit: &Visit<'_>, body: Body) -> Result<Answered, Body> {
    let Body::Single(Message::Response(response)) = body else {
        return Err(body);
    };
    let question = legacy::question_of(&response.id).filter(|_| visit.edge.config.tasks.enabled);
    match question.and_then(|(task, id)| Some((task_of(task)?, id))) {
        Some((task, id)) => {
            let outcome = response.outcome;
            let response = Response { id, outcome };
            Ok(Answered { task, response })
        }
        None => Err(Body::Single(Message::Response(response))),
    }
}

/// Sends an answer to its task's owner. Ignores an answer to a question that is not open. Cancel safe: the
/// answer was delivered or not.
///
/// # Errors
/// The gateway's errors about the session or the task's owner.
pub(super) async fn answer(
    visit: &Visit<'_>,
    session: &SessionRef,
    answer: Answered,
) -> Result<Delivered, GatewayError> {
    let Answered { task, response } = answer;
    let asked = RequestId::from_string("answer");
    if let Own::Answer(_) = own_tasks(visit, session, (&asked, &Method::TasksResult)).await? {
        return Ok(Delivered::Accepted);
    }
    let post = Post::new(Body::Single(Message::Response(response)));
    match visit.edge.gateway.deliver(&to(visit, &task), post).await {
        Ok(_) | Err(GatewayError::NotFound) => Ok(Delivered::Accepted),
        Err(error) => Err(error),
    }
}

/// Answers a request about tasks. Cancel safe: if the future is dropped, the owner may have told a task to
/// stop.
///
/// # Errors
/// The gateway's errors about the session or the task's owner.
pub(super) async fn serve(
    visit: &Visit<'_>,
    session: &SessionRef,
    request: Request,
) -> Result<Delivered, GatewayError> {
    let asked = (&request.id, &request.method);
    let own = match own_tasks(visit, session, asked).await? {
        Own::Tasks(own) => own,
        Own::Answer(answer) => return Ok(answer),
    };
    let refused = |error: &RpcError| Ok(Delivered::Json(error_response(&request.id, error)));
    if request.method == Method::TasksList {
        let params = request.params.as_ref();
        return match params.is_some_and(|params| params.cursor().is_some()) {
            false => list(visit, &request.id, own.ids).await.map(Delivered::Json),
            true => refused(&RpcError::invalid_params(
                "params.cursor is unknown: all tasks are on the first page",
            )),
        };
    }
    let task = match named(&request) {
        Ok(task) => task,
        Err(error) => return refused(&error),
    };
    match request.method {
        Method::TasksResult => {
            let waiter = (&request.id, own.capabilities);
            task_result::serve(visit, session, waiter, &task).await
        }
        Method::TasksCancel => match cancel(visit, &task).await? {
            Ok(task) => Ok(Delivered::Json(response(&request.id, &task))),
            Err(error) => refused(&error),
        },
        _ => match ask(visit, &task, Method::TasksGet).await? {
            Ok(task) => Ok(Delivered::Json(response(&request.id, &task))),
            Err(error) => refused(&error),
        },
    }
}

enum Own {
    Tasks(OwnTasks),
    Answer(Delivered),
}

struct OwnTasks {
    ids: Vec<String>,
    /// The client's capabilities. Empty if a session node of an older release does not report them.
    capabilities: RawJson,
}

async fn own_tasks(
    visit: &Visit<'_>,
    session: &SessionRef,
    (id, method): (&RequestId, &Method),
) -> Result<Own, GatewayError> {
    let list = Request {
        id: id.clone(),
        method: Method::TasksList,
        params: None,
    };
    let post = Post::new(Body::Single(Message::Request(list)));
    let text = match visit.edge.gateway.deliver(session, post).await? {
        Delivered::Json(text) => text,
        other => return Ok(Own::Answer(other)),
    };
    let answer = RawJson::from_valid(text.clone());
    let result = answer.member("result");
    let own = result.and_then(|result| {
        let capabilities = result.member("capabilities");
        Some(OwnTasks {
            ids: result.member("taskIds")?.read().ok()?,
            capabilities: capabilities.unwrap_or_else(|| RawJson::from_static("{}")),
        })
    });
    if let Some(own) = own {
        return Ok(Own::Tasks(own));
    }
    let unknown = answer
        .member("error")
        .is_some_and(|error| RpcError::from_json(&error).code == code::METHOD_NOT_FOUND);
    let text = match unknown {
        true => {
            let error = RpcError::method_not_found(method.as_str());
            error_response(id, &error)
        }
        false => text,
    };
    Ok(Own::Answer(Delivered::Json(text)))
}

fn named(request: &Request) -> Result<SessionId, RpcError> {
    let params = request.params.as_ref();
    let id = params.and_then(|params| params.member("taskId")?.string());
    let id = id.ok_or_else(|| RpcError::invalid_params("params.taskId must be a string"))?;
    task_of(id).ok_or_else(no_such_task)
}

fn to(visit: &Visit<'_>, task: &SessionId) -> SessionRef {
    SessionRef {
        trace: visit.trace.clone(),
        ..SessionRef::new(task.clone(), visit.principal.clone())
    }
}

async fn ask(
    visit: &Visit<'_>,
    task: &SessionId,
    method: Method,
) -> Result<Result<RawJson, RpcError>, GatewayError> {
    let request = Request {
        id: RequestId::from_string("task"),
        method,
        params: Some(legacy::params_of(task.as_str())),
    };
    let post = Post::new(Body::Single(Message::Request(request)));
    let text = match visit.edge.gateway.deliver(&to(visit, task), post).await {
        Ok(Delivered::Json(text)) => text,
        Ok(_) => {
            let odd = "the owner of a task did not answer a request about it";
            return Err(GatewayError::Internal(odd.to_owned()));
        }
        Err(GatewayError::NotFound) => return Ok(Err(no_such_task())),
        Err(error) => return Err(error),
    };
    let answer = RawJson::from_valid(text);
    Ok(match (answer.member("result"), answer.member("error")) {
        (Some(task), _) => Ok(task),
        (None, Some(error)) => Err(RpcError::from_json(&error)),
        (None, None) => Err(no_such_task()),
    })
}

async fn list(visit: &Visit<'_>, id: &RequestId, own: Vec<String>) -> Result<Bytes, GatewayError> {
    let asked = own.into_iter().filter_map(task_of).map(async |task| {
        let found = ask(visit, &task, Method::TasksGet).await?;
        Ok::<_, GatewayError>(found.ok())
    });
    // Collected first, because the compiler rejects a stream of these closures.
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

/// Cancels a task and waits until it has stopped, because only then may the client be told.
async fn cancel(
    visit: &Visit<'_>,
    task: &SessionId,
) -> Result<Result<RawJson, RpcError>, GatewayError> {
    if let Err(error) = ask(visit, task, Method::TasksCancel).await? {
        return Ok(Err(error));
    }
    let until = Instant::now() + STOPS_WITHIN;
    let mut pause = PAUSE;
    loop {
        let now = match ask(visit, task, Method::TasksGet).await? {
            Ok(now) => now,
            Err(error) => return Ok(Err(error)),
        };
        let status = now.member("status").and_then(|status| status.string());
        match status.as_deref() {
            Some("cancelled") => return Ok(Ok(now)),
            Some(status) if is_over(&now) => return Ok(Err(legacy::is_over_already(status))),
            _ if Instant::now() < until => sleep(pause).await,
            _ => {
                return Err(GatewayError::Unavailable {
                    reason: "the task was told to stop, but its tool has not stopped yet"
                        .to_owned(),
                    retry_after: LATER,
                });
            }
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
