//! What a client asks of a task, and answers.

use std::sync::Arc;

use shoal_ports::{Delivered, GatewayError, SessionRef};
use shoal_protocol::{Request, Response};
use tokio::time::{Duration, Instant, sleep, timeout};

use super::super::Node;
use super::ATTEMPTS;
use crate::here::in_task;
use crate::live::{Closed, LiveSession};
use crate::state::{Effect, Input, TaskAnswer};

/// How long an answer waits for its question, which comes again to a new owner.
const ASKED_WITHIN: Duration = Duration::from_secs(10);
/// How often it is looked for though nothing has changed: the task may be another node's by now.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a session that is closing is waited for.
const CLOSING: Duration = Duration::from_millis(50);

impl Node {
    /// Answers a request about a task. The acknowledgement of an answer follows the word of the call's worker, so that a
    /// client that asks next does not find the question again.
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
                    let unexpected = "a task's request had an effect that nobody knows";
                    return Err(GatewayError::Internal(unexpected.to_owned()));
                }
            };
            return Ok(Delivered::Json(response));
        }
        Err(self.being_moved())
    }

    /// Takes what a client of 2025-11-25 answers. The task may just have been taken over, and then the question comes again.
    pub(super) async fn deliver_answer(
        self: &Arc<Self>,
        to: &SessionRef,
        response: Response,
    ) -> Result<Delivered, GatewayError> {
        let until = Instant::now() + ASKED_WITHIN;
        loop {
            let live = self.find(to).await?;
            // Before it is looked for, so that no question comes unnoticed in between.
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
                // Nobody waits for it, or it is another node's by now.
                Ok(_) => self.driver.check_ownership(&live).await?,
            }
            return Ok(Delivered::Accepted);
        }
    }

    /// Hands answers to the task's call. Seen through, whatever becomes of whoever waits: a question that has its answer must
    /// not be open for ever.
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
                    // Nobody waits for it any more, or the task is another node's by now.
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
