//! The tasks extension (2026-07-28).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{AbortHandle, Abortable};
use futures::stream::FuturesUnordered;
use shoal_ports::Call;
use shoal_protocol::{Method, Outcome, RawJson, RawObject, RpcError, code};
use tokio::time::{Instant, sleep_until};

use super::super::link::ServerLink;
use super::super::pending::RequestOutcome;
use super::{ServerTask, ask, lost, nameless, task_id};
use crate::CallContext;

const POLL: Duration = Duration::from_millis(500);
const POLL_AT_LEAST: u64 = 50;
const POLL_AT_MOST: u64 = 10_000;
pub(super) const MOST_LOST: u32 = 5;

pub(super) async fn follow(
    outcome: RequestOutcome,
    link: &Arc<ServerLink>,
    call: &Call,
    context: &CallContext,
    task: &mut ServerTask<'_>,
) -> RequestOutcome {
    let RequestOutcome::Answered(Outcome::Result(created)) = &outcome else {
        return outcome;
    };
    let kind = created.member("resultType").and_then(|kind| kind.string());
    if kind.as_deref() != Some("task") {
        return outcome;
    }
    let Some(id) = task_id(created) else {
        return RequestOutcome::Answered(Outcome::Error(nameless()));
    };
    task.runs(id.clone());
    let followed = Follower { link, call, id };
    let end = followed.to_the_end(pause(created), context).await;
    if !matches!(end, RequestOutcome::Lost { .. }) {
        task.is_over();
    }
    end
}

struct Follower<'a> {
    link: &'a Arc<ServerLink>,
    call: &'a Call,
    id: RawJson,
}

impl Follower<'_> {
    async fn to_the_end(&self, mut pause: Duration, context: &CallContext) -> RequestOutcome {
        let mut questions = FuturesUnordered::new();
        let mut open: HashMap<String, AbortHandle> = HashMap::new();
        let mut lost_in_a_row = 0;
        let mut due = Instant::now() + pause;
        loop {
            let answered = tokio::select! {
                biased;
                Some(answered) = questions.next() => answered,
                () = sleep_until(due) => {
                    match self.ask(Method::TasksGet, RawObject::default()).await {
                        RequestOutcome::Answered(Outcome::Result(task)) => {
                            lost_in_a_row = 0;
                            if let Some(end) = end_of(&task) {
                                return RequestOutcome::Answered(end);
                            }
                            pause = self::pause(&task);
                            let asked = requests(&task);
                            open.retain(|key, question| {
                                let stays = asked.has(key);
                                if !stays {
                                    question.abort();
                                }
                                stays
                            });
                            for (key, request) in asked.iter() {
                                if let Some(asked) = PollRequest::of(&request)
                                    && !open.contains_key(&key)
                                {
                                    let (abort, registration) = AbortHandle::new_pair();
                                    open.insert(key.clone(), abort);
                                    let asking = async move {
                                        (key, context.ask(asked.method, asked.params).await)
                                    };
                                    questions.push(Abortable::new(asking, registration));
                                }
                            }
                        }
                        RequestOutcome::Answered(Outcome::Error(error)) => {
                            return lost(format!("the server says of its task: {error}").into());
                        }
                        _ if self.link.pending.ended().is_none() && lost_in_a_row < MOST_LOST => {
                            lost_in_a_row += 1;
                            pause = pause_after_loss(lost_in_a_row);
                        }
                        _ => return lost("the server could not be asked for its task".into()),
                    }
                    due = Instant::now() + pause;
                    continue;
                }
            };
            // A withdrawn question has no answer.
            let Ok((key, answer)) = answered else {
                continue;
            };
            match answer {
                Outcome::Result(answer) => {
                    let mut answers = RawObject::default();
                    answers.set(&key, answer);
                    let mut params = RawObject::default();
                    params.set("inputResponses", answers.to_json());
                    self.ask(Method::TasksUpdate, params).await;
                    due = Instant::now();
                }
                // Without this answer, the task would wait forever.
                Outcome::Error(error) => {
                    self.ask(Method::TasksCancel, RawObject::default()).await;
                    return RequestOutcome::Answered(Outcome::Error(error));
                }
            }
        }
    }

    async fn ask(&self, method: Method, asked: RawObject) -> RequestOutcome {
        ask(self.link, self.call, (method, self.id.clone()), asked).await
    }
}

struct PollRequest {
    method: Method,
    params: Option<RawJson>,
}

impl PollRequest {
    fn of(request: &RawJson) -> Option<Self> {
        Some(Self {
            method: Method::from_name(&request.member("method")?.string()?),
            params: request.member("params"),
        })
    }
}

fn requests(task: &RawJson) -> RawObject {
    let requests = task.member("inputRequests");
    requests
        .as_ref()
        .and_then(RawObject::of)
        .unwrap_or_default()
}

fn pause(task: &RawJson) -> Duration {
    said_pause(task, "pollIntervalMs")
}

pub(super) fn pause_after_loss(lost: u32) -> Duration {
    POLL.saturating_mul(1 << lost)
}

pub(super) fn said_pause(task: &RawJson, member: &str) -> Duration {
    let said = task.member(member);
    let said = said.and_then(|said| said.read::<u64>().ok());
    said.map_or(POLL, |said| {
        Duration::from_millis(said.clamp(POLL_AT_LEAST, POLL_AT_MOST))
    })
}

fn end_of(task: &RawJson) -> Option<Outcome> {
    let broken = |what: &str| {
        let why = format!("the call has run, but {what}");
        Outcome::Error(RpcError::internal(why))
    };
    let status = task.member("status")?.string()?;
    Some(match status.as_str() {
        "completed" => match task.member("result") {
            Some(result) => Outcome::Result(result),
            None => broken("the server's task has no result"),
        },
        "failed" => {
            let error = task.member("error");
            let number = |error: &RawJson| error.member("code")?.read::<i64>().ok();
            let said = |error: &RawJson| error.member("message")?.string();
            let failed = error.map(|error| RpcError {
                code: number(&error).unwrap_or(code::INTERNAL_ERROR),
                message: said(&error).unwrap_or_else(|| "the server's task failed".to_owned()),
                data: error.member("data"),
            });
            failed.map_or_else(|| broken("the server's task failed"), Outcome::Error)
        }
        "cancelled" => Outcome::Error(RpcError::new(
            code::REQUEST_CANCELLED,
            "the server cancelled the task",
        )),
        _ => return None,
    })
}
