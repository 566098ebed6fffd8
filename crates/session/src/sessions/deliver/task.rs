//! What a modern client asks of a task.

use std::sync::Arc;

use shoal_ports::{Delivered, GatewayError, SessionRef};
use shoal_protocol::Request;

use super::super::Node;
use super::ATTEMPTS;
use crate::live::Closed;
use crate::state::{Effect, Input};

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
                    for answer in answers {
                        if !answer.slot.answer(answer.ask, answer.outcome).await {
                            // Nobody waits for it any more, or the task is another node's by now.
                            self.driver.check_ownership(&live).await?;
                        }
                        live.note(Input::TaskAnswered(answer.key));
                        live.task_changed();
                    }
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
}
