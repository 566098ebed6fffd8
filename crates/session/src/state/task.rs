//! The state of a session that is a task.
//!
//! Questions to the client are in memory only: the next owner attaches to the call from its beginning and gets them
//! again. The task's end is in the record, and counts once stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use shoal_ports::{AskId, CallFailure, CallId, TaskClient};
use shoal_protocol::task::{InputRequest, Task, TaskEnd, TaskState};
use shoal_protocol::{Method, Outcome, RawJson, Revision};

use super::answers::{asker_of_key, name_of};
use super::{CallSlot, Effect, SessionMachine};
use crate::record::Handshake;

const CANCELLED: &str = "the client cancelled the task";

#[derive(Default)]
pub(super) struct TaskProgress {
    questions: BTreeMap<String, InputRequest>,
    /// Whether the client may know questions that this owner has not received yet.
    taken_over: bool,
    /// Milliseconds since 1970.
    changed_at: u64,
    unstored: bool,
}

#[derive(Debug)]
pub(crate) struct TaskInputAnswer {
    pub(crate) key: String,
    pub(crate) slot: Arc<CallSlot>,
    pub(crate) ask: AskId,
    pub(crate) outcome: Outcome,
}

impl Handshake {
    /// Used because a task's client sends no `initialize`.
    pub(crate) fn of_task(client: &TaskClient) -> Self {
        let client_info = client.client_info.as_ref();
        Self {
            revision: Revision::LATEST_LEGACY,
            client_info: client_info.map(|info| info.as_json().detached()),
            capabilities: client.capabilities.detached(),
        }
    }
}

impl SessionMachine {
    /// Returns the effect that stops the task's call, with the task's state before the stop.
    pub(super) fn cancel_task(&self) -> Effect {
        let Some(task) = self.task() else {
            return Effect::None;
        };
        Effect::TaskCancel {
            task: Box::new(task),
            slot: self.admitted.slots().into_iter().next(),
            reason: CANCELLED,
        }
    }

    /// Ignores a question that the worker has only repeated to a new owner.
    pub(super) fn task_asks(&mut self, key: String, method: &Method, params: Option<&RawJson>) {
        let request = InputRequest {
            method: method.clone(),
            params: params.cloned(),
        };
        self.task.questions.entry(key).or_insert(request);
    }

    pub(super) fn task_changed(&mut self, at: u64) {
        self.task.changed_at = at;
    }

    pub(super) fn task_answered(&mut self, key: &str) {
        self.task.questions.remove(key);
    }

    pub(super) fn task_withdrawn(&mut self, call: CallId, ask: AskId) {
        self.task.questions.remove(&name_of(call, ask));
    }

    pub(super) fn task_taken_over(&mut self) {
        self.task.taken_over = true;
    }

    pub(super) fn task_answer(&self, key: String, outcome: Outcome) -> Effect {
        let asker = asker_of_key(&key);
        let running = asker.and_then(|(call, ask)| Some((self.admitted.running(call)?, ask)));
        let Some((slot, ask)) = running else {
            return Effect::None;
        };
        match self.task.questions.contains_key(&key) {
            true => Effect::TaskAnswer(TaskInputAnswer {
                key,
                slot,
                ask,
                outcome,
            }),
            false if self.task.taken_over && !self.is_task_over() => Effect::NotAskedYet,
            false => Effect::None,
        }
    }

    /// Only the first end counts.
    pub(super) fn task_ended(&mut self, end: TaskEnd, at: u64) {
        self.task.questions.clear();
        if let Some(task) = self.record.task.as_mut().filter(|task| task.end.is_none()) {
            (task.end, task.ended_at) = (Some(end), at);
            self.task.unstored = true;
        }
    }

    pub(super) fn task_not_kept(&mut self, end: TaskEnd) {
        if let Some(task) = self.record.task.as_mut().filter(|_| self.task.unstored) {
            task.end = Some(end);
        }
    }

    pub(super) fn task_stored(&mut self) {
        self.task.unstored = false;
    }

    pub(crate) fn task_status(&self) -> Option<&'static str> {
        self.record.task.as_ref()?;
        Some(match self.task_now() {
            Now::Working => "working",
            Now::Asking => "input_required",
            Now::Ended(TaskEnd::Completed(_)) => "completed",
            Now::Ended(TaskEnd::Cancelled) => "cancelled",
            Now::Ended(TaskEnd::Failed(_)) | Now::Lost => "failed",
        })
    }

    fn is_task_over(&self) -> bool {
        matches!(self.task_now(), Now::Ended(_) | Now::Lost)
    }

    fn task_now(&self) -> Now<'_> {
        let record = self.record.task.as_ref();
        let ended = record.filter(|_| !self.task.unstored);
        match ended.and_then(|task| task.end.as_ref()) {
            Some(end) => Now::Ended(end),
            None if self.admitted.held() == 0 => Now::Lost,
            None if self.task.questions.is_empty() => Now::Working,
            None => Now::Asking,
        }
    }

    pub(crate) fn task(&self) -> Option<Task> {
        let record = self.record.task.as_ref()?;
        let created_at = self.record.opened_at.unwrap_or_default();
        let (state, updated_at) = match self.task_now() {
            Now::Working => (TaskState::Working, self.task.changed_at),
            Now::Asking => {
                let questions = self.task.questions.clone();
                (TaskState::InputRequired(questions), self.task.changed_at)
            }
            Now::Ended(end) => (TaskState::Ended(end.clone()), record.ended_at),
            Now::Lost => (TaskState::Ended(lost_call()), created_at),
        };
        let updated_at = updated_at.max(created_at);
        let limits = self.limits.task;
        Some(Task {
            id: self.session.as_str().to_owned(),
            state,
            created_at,
            updated_at,
            ttl_ms: (updated_at - created_at).saturating_add(limits.ttl),
            poll_interval_ms: limits.poll_interval,
        })
    }
}

/// All times are in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskTimes {
    pub(crate) ttl: u64,
    pub(crate) poll_interval: u64,
}

enum Now<'a> {
    Working,
    Asking,
    Ended(&'a TaskEnd),
    Lost,
}

pub(crate) fn lost_call() -> TaskEnd {
    let failure = CallFailure::outcome_unknown("the store has lost the task's call");
    TaskEnd::Failed(failure.to_rpc().to_json())
}
