//! Handles a client's requests to a task.

use std::sync::Arc;

use shoal_ports::{Delivered, GatewayError, SessionRef};
use shoal_protocol::{Request, Response};
use tokio::time::{Duration, Instant, sleep, timeout};

use super::super::Node;
use super::ATTEMPTS;
use crate::here::in_task;
use crate::live::{Closed, LiveSession};
use crate::state::{Effect, Input, TaskAnswer};

/// How long a client's answer waits for its question, because a new owner gets the question from the worker again.
const ASKED_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_secs(1);
const CLOSING: Duration = Duration::from_millis(50);

impl Node {
    /// Answers a request to a task. Acknowledges a client's answer only once the worker has it, so that the client does
    /// not see the question again.
    pub(super) async fn deliver_to_task(
        self: &Arc<Self>,
        to: &SessionRef,
        request: Request,
    ) -> Result<Delivered, GatewayError> {
        for _ in 0..ATTEMPTS {
            let live = self.find(to).await?;
            let response = match live.apply(Input::Task(request.clone())) {
                Err(Closed) => {
                    self.forget_dead(&live).await;
                    continue;
                }
                Ok(Effect::Respond(response)) => response,
                Ok(Effect::TaskAnswers {
                    acknowledgement,
                    answers,
                }) => {
                    self.answer_task(&live, answers).await?;
                    acknowledgement
                }
                Ok(Effect::TaskCancel {
                    acknowledgement,
                    slot,
                    reason,
                }) => {
                    if !slot.cancel(&reason) {
                        self.driver.check_ownership(&live).await?;
                    }
                    acknowledgement
                }
                Ok(_) => {
                    let unexpected = "a task's request had an unexpected effect";
                    return Err(GatewayError::Internal(unexpected.to_owned()));
                }
            };
            return Ok(Delivered::Json(response));
        }
        Err(self.being_moved())
    }

    /// Passes a 2025-11-25 client's answer to the task. The answer may arrive before a new owner has the question.
    pub(super) async fn deliver_answer(
        self: &Arc<Self>,
        to: &SessionRef,
        response: Response,
    ) -> Result<Delivered, GatewayError> {
        let until = Instant::now() + ASKED_WITHIN;
        loop {
            let live = self.find(to).await?;
            // Register before the check, so as not to miss a question.
            let changed = live.next_task_change();
            match live.apply(Input::Response(response.clone())) {
                Ok(Effect::TaskAnswer(answer)) => self.answer_task(&live, vec![answer]).await?,
                Ok(Effect::NotAskedYet) if Instant::now() < until => {
                    let _ = timeout(LOOK_EVERY, changed).await;
                    continue;
                }
                Err(Closed) if Instant::now() < until => {
                    self.forget_dead(&live).await;
                    sleep(CLOSING).await;
                    continue;
                }
                Err(Closed) => return Err(self.being_moved()),
                Ok(_) => self.driver.check_ownership(&live).await?,
            }
            return Ok(Delivered::Accepted);
        }
    }

    /// Passes answers to the task's call. Completes even if the caller leaves.
    pub(super) async fn answer_task(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        answers: Vec<TaskAnswer>,
    ) -> Result<(), GatewayError> {
        let (node, live) = (self.clone(), live.clone());
        in_task(async move {
            for answer in answers {
                let taken = answer.slot.answer(answer.ask, answer.outcome).await;
                if !taken {
                    node.driver.check_ownership(&live).await?;
                }
                live.note(Input::TaskAnswered(answer.key));
                live.task_changed();
            }
            Ok(())
        })
        .await
    }
}
