//! `tasks/get`, `tasks/result`, `tasks/cancel` and `tasks/list` of a session (2025-11-25, Tasks).
//!
//! Its session says whether it is offered tasks, and which it has made. How each is, its own owner says, wherever that is: a task
//! is a session of its own. What a task asks goes out with `tasks/result`, and the answer goes to its owner too.

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

/// Tasks of a list that are asked for at the same time.
const AT_ONCE: usize = 4;
/// How long a task that was told to stop may take for that until its client is told to ask again.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
/// The pauses between two looks at it: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// When clients ask again.
const LATER: Duration = Duration::from_secs(1);

/// A body that asks something of tasks, where there are any.
///
/// # Errors
/// Any other body.
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

/// A client's answer to what a task asks.
pub(super) struct Answered {
    task: SessionId,
    /// As the task's session knows the question.
    response: Response,
}

/// A body that answers what a task asks, where there are any.
///
/// # Errors
/// Any other body.
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

/// Takes an answer to the owner of its task, from any session that is offered tasks. Nobody is told of one that nobody waits
/// for.
///
/// # Errors
/// As the gateway has them, about the session or the task's owner. Cancellation safe: the answer is taken, or not.
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

/// Answers a request about tasks.
///
/// # Errors
/// As the gateway has them, about the session or the task's owner. Cancellation safe: at most a task was told to stop.
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
                "params.cursor is none that was given out: all tasks are on the first page",
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

/// What a session says of its tasks.
enum Own {
    Tasks(OwnTasks),
    /// It has none to speak of, and this is the answer to whoever asks.
    Answer(Delivered),
}

struct OwnTasks {
    ids: Vec<String>,
    /// What its client can be asked; nothing where a session node of an earlier release does not say.
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
        // The refusal went to the session's stream.
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

/// The task that a request names.
fn named(request: &Request) -> Result<SessionId, RpcError> {
    let params = request.params.as_ref();
    let id = params.and_then(|params| params.member("taskId")?.string());
    let id = id.ok_or_else(|| RpcError::invalid_params("params.taskId must be a string"))?;
    task_of(id).ok_or_else(no_such_task)
}

/// A task in the name of whoever visits.
fn to(visit: &Visit<'_>, task: &SessionId) -> SessionRef {
    SessionRef {
        trace: visit.trace.clone(),
        ..SessionRef::new(task.clone(), visit.principal.clone())
    }
}

/// Asks a task's owner for it, in the name of whoever visits; it answers in the shape of the revision.
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

/// The tasks of a session that there still are.
async fn list(visit: &Visit<'_>, id: &RequestId, own: Vec<String>) -> Result<Bytes, GatewayError> {
    let asked = own.into_iter().filter_map(task_of).map(async |task| {
        let found = ask(visit, &task, Method::TasksGet).await?;
        // What is not found has expired.
        Ok::<_, GatewayError>(found.ok())
    });
    // What is asked is gathered first, since a stream of closures is not general enough for the compiler.
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

/// Has a task stopped, and waits until it has: then only may its client be told.
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
            // Its call has ended before it heard of this.
            Some(status) if is_over(&now) => return Ok(Err(legacy::is_over_already(status))),
            _ if Instant::now() < until => sleep(pause).await,
            _ => {
                return Err(GatewayError::Unavailable {
                    reason: "the task was told to stop, and its tool has not stopped yet"
                        .to_owned(),
                    retry_after: LATER,
                });
            }
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
