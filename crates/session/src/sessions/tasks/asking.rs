use std::sync::Arc;

use shoal_ports::{GatewayError, SessionRef, TaskAnswer, TaskMark, TaskRequest};
use shoal_protocol::task::Task;
use tokio::time::{Duration, Instant, sleep, sleep_until};

use super::super::{ATTEMPTS, Node};
use crate::here::in_task;
use crate::live::{Closed, LiveSession};
use crate::state::{self, Effect, Input};

/// How long a client's answer waits for its question, because a new owner gets the question from the worker again.
const ASKED_WITHIN: Duration = Duration::from_secs(10);
/// The longest wait of one watch request. The edge then asks again, which makes the node check again that it owns the
/// task.
const WATCHED_FOR: Duration = Duration::from_secs(10);
const CLOSING: Duration = Duration::from_millis(50);

impl Node {
    pub(crate) async fn ask_task(
        self: &Arc<Self>,
        to: &SessionRef,
        request: TaskRequest,
    ) -> Result<Task, GatewayError> {
        if !to.session.is_task() {
            return Err(GatewayError::NotFound);
        }
        let task = match request {
            TaskRequest::Get => return self.task_now(to).await,
            TaskRequest::Watch { seen } => self.watch_task(to, seen).await,
            TaskRequest::Answer {
                answers,
                awaits_question,
            } => {
                let (node, to) = (self.clone(), to.clone());
                let answering = async move {
                    for answer in answers {
                        node.answer_task(&to, answer, awaits_question).await?;
                    }
                    node.task_now(&to).await
                };
                // In a task, because the answers must reach the call even if the caller leaves.
                in_task(answering).await
            }
            TaskRequest::Cancel => self.cancel_task(to).await,
        };
        task.map(Task::without_result)
    }

    async fn task_now(self: &Arc<Self>, to: &SessionRef) -> Result<Task, GatewayError> {
        let (_, task) = self.read_live(to, LiveSession::task).await?;
        Ok(task)
    }

    /// Answers at the latest after [`WATCHED_FOR`].
    async fn watch_task(
        self: &Arc<Self>,
        to: &SessionRef,
        seen: TaskMark,
    ) -> Result<Task, GatewayError> {
        let until = Instant::now() + WATCHED_FOR;
        loop {
            let live = self.find(to).await?;
            // Registered before the state is read, so as not to miss a change.
            let changed = live.next_task_change();
            let task = live.task();
            let waits = Instant::now() < until;
            match task {
                Some(task) if TaskMark::of(&task) == seen && waits => {}
                Some(task) => return Ok(task),
                None if waits => self.forget_dead(&live).await,
                None => return Err(self.being_moved()),
            }
            tokio::select! {
                () = changed => {}
                () = live.until_over() => sleep(CLOSING).await,
                () = sleep_until(until) => {}
            }
        }
    }

    /// Returns once the worker has the answer, so that the client does not see the question again. Ignores an answer
    /// to a question that is not open.
    async fn answer_task(
        self: &Arc<Self>,
        to: &SessionRef,
        answer: TaskAnswer,
        awaits_question: bool,
    ) -> Result<(), GatewayError> {
        let patience = match awaits_question {
            true => ASKED_WITHIN,
            false => CLOSING,
        };
        let until = Instant::now() + patience;
        loop {
            let live = self.find(to).await?;
            // Registered first, so as not to miss a question.
            let changed = live.next_task_change();
            let TaskAnswer { key, outcome } = answer.clone();
            match live.apply(Input::TaskAnswer(key, outcome)) {
                Ok(Effect::TaskAnswer(answer)) => return self.pass_answer(&live, answer).await,
                Ok(Effect::NotAskedYet) if awaits_question && Instant::now() < until => {
                    tokio::select! {
                        () = changed => {}
                        () = live.until_over() => sleep(CLOSING).await,
                        () = sleep_until(until) => {}
                    }
                }
                // No such question here. If the session has moved, its next owner may have it.
                Ok(_) if awaits_question => return self.driver.check_ownership(&live).await,
                Ok(_) => return Ok(()),
                Err(Closed) if Instant::now() < until => {
                    self.forget_dead(&live).await;
                    sleep(CLOSING).await;
                }
                Err(Closed) => return Err(self.being_moved()),
            }
        }
    }

    async fn pass_answer(
        &self,
        live: &Arc<LiveSession>,
        answer: state::TaskInputAnswer,
    ) -> Result<(), GatewayError> {
        let taken = answer.slot.answer(answer.ask, answer.outcome).await;
        if !taken {
            self.driver.check_ownership(live).await?;
        }
        live.note(Input::TaskAnswered(answer.key));
        live.task_changed();
        Ok(())
    }

    async fn cancel_task(self: &Arc<Self>, to: &SessionRef) -> Result<Task, GatewayError> {
        for _ in 0..ATTEMPTS {
            let live = self.find(to).await?;
            match live.apply(Input::TaskCancelled) {
                Ok(Effect::TaskCancel { task, slot, reason }) => {
                    if let Some(slot) = slot
                        && !slot.cancel(reason)
                    {
                        self.driver.check_ownership(&live).await?;
                    }
                    return Ok(*task);
                }
                Ok(_) => return Err(GatewayError::NotFound),
                Err(Closed) => self.forget_dead(&live).await,
            }
        }
        Err(self.being_moved())
    }
}
