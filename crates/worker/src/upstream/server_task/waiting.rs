//! Tasks of 2025-11-25.
//!
//! If the server answers `tasks/result` before the task's end, Shoal polls `tasks/get`.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::Call;
use shoal_protocol::{Method, Outcome, RawJson, RawObject, RpcError, code};
use tokio::time::sleep;

use super::super::link::ServerLink;
use super::super::pending::RequestOutcome;
use super::polling::{MOST_LOST, pause_after_loss, said_pause};
use super::{ask, lost};

const WATCHED_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Waiting<'a> {
    link: &'a Arc<ServerLink>,
    call: &'a Call,
    request: u64,
    id: RawJson,
}

enum TaskStatusSeen {
    Runs(Duration),
    /// The task waits for answers to its questions, which come on `tasks/result`.
    Asks(Duration),
    Over,
    Unknown(RpcError),
    Unanswered,
    Lost,
}

enum TaskTurn {
    Over,
    Asks,
    Unanswered,
    Gone(String),
}

impl<'a> Waiting<'a> {
    pub(super) fn new(
        link: &'a Arc<ServerLink>,
        call: &'a Call,
        request: u64,
        id: RawJson,
    ) -> Self {
        Self {
            link,
            call,
            request,
            id,
        }
    }

    pub(super) async fn to_the_end(&self, made: &RawJson) -> RequestOutcome {
        let mut pause = said_pause(made, POLL_INTERVAL);
        let mut is_over = false;
        loop {
            let outcome = tokio::select! {
                biased;
                outcome = self.result() => outcome,
                gone = self.watch(pause), if !is_over => lost(gone.into()),
            };
            let early = match &outcome {
                RequestOutcome::Answered(Outcome::Result(result)) => is_task(result),
                RequestOutcome::TooLarge | RequestOutcome::Unreadable(_) => false,
                RequestOutcome::Lost { .. } => self.link.pending.ended().is_none(),
                _ => true,
            };
            if !early || is_over {
                return settled(outcome);
            }
            match self.turn(&mut pause).await {
                TaskTurn::Over => is_over = true,
                TaskTurn::Asks => {}
                TaskTurn::Unanswered => return settled(outcome),
                TaskTurn::Gone(why) => return settled(said_last(outcome, why)),
            }
        }
    }

    async fn result(&self) -> RequestOutcome {
        match self.link.register_for(self.request) {
            Ok(mut handle) => {
                let mut asked = RawObject::default();
                asked.set("taskId", self.id.clone());
                let caller = Some(&self.call.caller);
                handle
                    .send(&Method::TasksResult, Some(&asked.to_json()), caller)
                    .await;
                handle.outcome().await
            }
            Err(reason) => lost(reason),
        }
    }

    /// Polls until the server reports the task as unknown twice, because a server may forget a task while it
    /// sends the result.
    async fn watch(&self, mut pause: Duration) -> String {
        let mut was_unknown = false;
        loop {
            sleep(pause.max(WATCHED_EVERY)).await;
            was_unknown = match self.status().await {
                TaskStatusSeen::Unknown(error) if was_unknown => return unknown(&error),
                TaskStatusSeen::Unknown(_) => true,
                TaskStatusSeen::Unanswered => return std::future::pending().await,
                TaskStatusSeen::Runs(next) | TaskStatusSeen::Asks(next) => {
                    pause = next;
                    false
                }
                TaskStatusSeen::Over | TaskStatusSeen::Lost => false,
            };
        }
    }

    async fn turn(&self, pause: &mut Duration) -> TaskTurn {
        let mut lost_in_a_row = 0;
        loop {
            match self.status().await {
                TaskStatusSeen::Over => return TaskTurn::Over,
                TaskStatusSeen::Unanswered => return TaskTurn::Unanswered,
                TaskStatusSeen::Unknown(error) => return TaskTurn::Gone(unknown(&error)),
                TaskStatusSeen::Asks(next) => {
                    *pause = next;
                    sleep(next).await;
                    return TaskTurn::Asks;
                }
                TaskStatusSeen::Runs(next) => {
                    lost_in_a_row = 0;
                    *pause = next;
                    sleep(next).await;
                }
                TaskStatusSeen::Lost
                    if lost_in_a_row < MOST_LOST && self.link.pending.ended().is_none() =>
                {
                    lost_in_a_row += 1;
                    sleep(pause_after_loss(lost_in_a_row)).await;
                }
                TaskStatusSeen::Lost => {
                    return TaskTurn::Gone("the server could not be asked for its task".to_owned());
                }
            }
        }
    }

    async fn status(&self) -> TaskStatusSeen {
        let about = (Method::TasksGet, self.id.clone());
        let task = match ask(self.link, self.call, about, RawObject::default()).await {
            RequestOutcome::Answered(Outcome::Result(task)) => task,
            RequestOutcome::Answered(Outcome::Error(error)) => {
                return match error.code {
                    code::METHOD_NOT_FOUND => TaskStatusSeen::Unanswered,
                    _ => TaskStatusSeen::Unknown(error),
                };
            }
            _ => return TaskStatusSeen::Lost,
        };
        // Some servers wrap the task in an object.
        let task = task
            .member("task")
            .filter(RawJson::is_object)
            .unwrap_or(task);
        let pause = said_pause(&task, POLL_INTERVAL);
        match task.member("status").and_then(|status| status.string()) {
            Some(status) if OVER.contains(&&*status) => TaskStatusSeen::Over,
            Some(status) if status == "input_required" => TaskStatusSeen::Asks(pause),
            _ => TaskStatusSeen::Runs(pause),
        }
    }
}

const POLL_INTERVAL: &str = "pollInterval";
const OVER: [&str; 3] = ["completed", "failed", "cancelled"];

fn unknown(error: &RpcError) -> String {
    format!("the server says of its task: {error}")
}

fn is_task(result: &RawJson) -> bool {
    let task = result.member("task").filter(RawJson::is_object);
    task.is_some_and(|task| task.member("status").is_some()) && result.member("content").is_none()
}

/// The outcome of a task that the server no longer knows. An error other than "no such task" is the task's own.
fn said_last(outcome: RequestOutcome, why: String) -> RequestOutcome {
    match outcome {
        RequestOutcome::Answered(Outcome::Error(error)) if error.code != code::INVALID_PARAMS => {
            RequestOutcome::Answered(Outcome::Error(error))
        }
        _ => lost(why.into()),
    }
}

/// A refused request about a task becomes a loss, because the task continues.
fn settled(outcome: RequestOutcome) -> RequestOutcome {
    match outcome {
        RequestOutcome::Refused(failure) | RequestOutcome::Declined(failure) => {
            lost(failure.to_string().into())
        }
        RequestOutcome::Rejected(error) => lost(error.message.into()),
        RequestOutcome::Lost { reason, .. } => lost(reason),
        RequestOutcome::Answered(Outcome::Result(result)) if is_task(&result) => {
            lost("the server answered tasks/result with a task that runs".into())
        }
        other => other,
    }
}
