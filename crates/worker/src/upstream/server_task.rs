//! A task that a server makes of a call. Shoal follows it to its end, so the client sees an ordinary call, of
//! which Shoal may make a task of its own.
//!
//! | server | begins | ends |
//! |---|---|---|
//! | 2025-11-25 | `tools/call` with `task`, for tools that require it | `tasks/result`, with the server's questions; `tasks/get` reports whether the task runs |
//! | 2026-07-28 | the server answers `tools/call` with a task | `tasks/get`, with the questions |

mod cancelling;
mod polling;
pub(super) mod tools;
mod waiting;

use std::sync::Arc;

use shoal_ports::Call;
use shoal_protocol::{Era, Method, Outcome, RawJson, RawObject, RpcError};

pub(crate) use self::cancelling::ServerTask;
use self::waiting::Waiting;
use super::link::{RequestHandle, ServerLink};
use super::params;
use super::pending::RequestOutcome;
use crate::CallContext;

const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

pub(crate) async fn run(
    handle: &mut RequestHandle,
    link: &Arc<ServerLink>,
    (call, params): (&Call, Option<RawJson>),
    context: &CallContext,
    task: &mut ServerTask<'_>,
) -> RequestOutcome {
    let caller = Some(&call.caller);
    if link.runs_as_task(call) {
        return follow(handle, link, (call, params), task).await;
    }
    handle.send(&call.method, params.as_ref(), caller).await;
    let outcome = handle.outcome().await;
    let greeting = link.greeting();
    if greeting.era == Era::Modern && call.method == Method::ToolsCall {
        return polling::follow(outcome, link, call, context, task).await;
    }
    outcome
}

/// Follows a legacy task. The request of `handle` is not sent: it represents the call, because the server may ask or
/// report progress between requests about the task.
async fn follow(
    handle: &mut RequestHandle,
    link: &Arc<ServerLink>,
    (call, params): (&Call, Option<RawJson>),
    task: &mut ServerTask<'_>,
) -> RequestOutcome {
    let mut params = params.as_ref().and_then(RawObject::of).unwrap_or_default();
    params.set("task", RawJson::from_static("{}"));
    let created = match link.register_for(handle.id()) {
        Ok(creating) => task.create(creating, &params.to_json()).await,
        Err(reason) => return not_written(reason),
    };
    let result = match created {
        RequestOutcome::Answered(Outcome::Result(result)) => result,
        other => return other,
    };
    let Some(made) = result.member("task").filter(RawJson::is_object) else {
        return RequestOutcome::Answered(Outcome::Result(result));
    };
    let Some(id) = task_id(&made) else {
        return RequestOutcome::Answered(Outcome::Error(nameless()));
    };
    task.runs(id.clone());
    let waiting = Waiting::new(link, call, handle.id(), id);
    let end = waiting.to_the_end(&made).await;
    // After a lost connection, the task may still run.
    if !matches!(end, RequestOutcome::Lost { .. }) {
        task.is_over();
    }
    match end {
        RequestOutcome::Answered(Outcome::Result(result)) => {
            RequestOutcome::Answered(Outcome::Result(unrelated(result)))
        }
        other => other,
    }
}

fn task_id(task: &RawJson) -> Option<RawJson> {
    task.member("taskId").filter(|id| id.as_str() != "null")
}

fn nameless() -> RpcError {
    RpcError::internal("the server answered with a task that has no taskId")
}

async fn ask(
    link: &Arc<ServerLink>,
    call: &Call,
    (method, id): (Method, RawJson),
    mut asked: RawObject,
) -> RequestOutcome {
    asked.set("taskId", id);
    let asked = match link.greeting().era {
        Era::Legacy => asked.to_json(),
        Era::Modern => params::about_task(call, asked),
    };
    match link.register(None) {
        Ok(mut handle) => {
            let caller = Some(&call.caller);
            handle.send(&method, Some(&asked), caller).await;
            handle.outcome().await
        }
        Err(reason) => lost(reason),
    }
}

fn not_written(reason: Arc<str>) -> RequestOutcome {
    RequestOutcome::Lost {
        written: false,
        reason,
    }
}

fn lost(reason: Arc<str>) -> RequestOutcome {
    RequestOutcome::Lost {
        written: true,
        reason,
    }
}

/// Removes the server's task id, because the client does not know the task.
fn unrelated(result: RawJson) -> RawJson {
    let meta = result.member("_meta").and_then(|meta| RawObject::of(&meta));
    let Some(mut meta) = meta.filter(|meta| meta.has(RELATED_TASK)) else {
        return result;
    };
    meta.remove(RELATED_TASK);
    let mut result = RawObject::of(&result).unwrap_or_default();
    if meta.is_empty() {
        result.remove("_meta");
    } else {
        result.set("_meta", meta.to_json());
    }
    result.to_json()
}
