//! The state of a session that is a task.
//!
//! Questions to the client are in memory only: the next owner attaches to the call from its beginning and gets them
//! again. The task's end is in the record, and counts once stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use shoal_ports::{AskId, CallFailure, CallId};
use shoal_protocol::task::{InputRequest, Task, TaskEnd, TaskState, legacy};
use shoal_protocol::{
    Method, Outcome, RawJson, Request, Response, RpcError, error_response, input_responses,
    response,
};

use super::answers::{asker_of_key, name_of};
use super::{CallSlot, Effect, SessionState};

const CANCELLED: &str = "the client cancelled the task";

#[derive(Default)]
pub(super) struct TaskProgress {
    questions: BTreeMap<String, InputRequest>,
    /// Whether the client may know questions that this owner has not received yet.
    taken_over: bool,
    /// When the task last changed, in milliseconds since 1970.
    changed_at: u64,
    unstored: bool,
}

#[derive(Debug)]
pub(crate) struct TaskAnswer {
    pub(crate) key: String,
    pub(crate) slot: Arc<CallSlot>,
    pub(crate) ask: AskId,
    pub(crate) outcome: Outcome,
}

impl SessionState {
    pub(super) fn task_request(&self, request: &Request) -> Effect {
        let is_its_own = |id: String| id == self.session.as_str();
        let named = request
            .params
            .as_ref()
            .and_then(|params| params.member("taskId"));
        if self.record.task.is_none() || !named.and_then(|id| id.string()).is_some_and(is_its_own) {
            let error = RpcError::method_not_found(request.method.as_str());
            return Effect::Respond(error_response(&request.id, &error));
        }
        let legacy = legacy::is_asked(request);
        match request.method {
            Method::TasksCancel if legacy && self.task_now().is_over() => {
                let status = self.task_now().read(|task| task.legacy_status());
                let error = legacy::is_over_already(status);
                Effect::Respond(error_response(&request.id, &error))
            }
            Method::TasksUpdate => match self.task_answers(request.params.as_ref()) {
                Ok(answers) => Effect::TaskAnswers {
                    acknowledgement: acknowledgement(request),
                    answers,
                },
                Err(error) => Effect::Respond(error_response(&request.id, &error)),
            },
            Method::TasksCancel => match self.admitted.slots().into_iter().next() {
                Some(slot) => Effect::TaskCancel {
                    acknowledgement: acknowledgement(request),
                    slot,
                    reason: CANCELLED.to_owned(),
                },
                None => Effect::Respond(acknowledgement(request)),
            },
            _ if legacy => {
                let task = self.task_now().read(|task| task.to_legacy());
                Effect::Respond(response(&request.id, &task))
            }
            _ => {
                let task = self.task_now().read(|task| task.to_result());
                Effect::Respond(response(&request.id, &task))
            }
        }
    }

    /// Adds a question to the client. A new owner gets the same question again.
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

    pub(super) fn task_answer(
        &self,
        slot: Arc<CallSlot>,
        ask: AskId,
        response: Response,
    ) -> Effect {
        let key = name_of(slot.call(), ask);
        match self.task.questions.contains_key(&key) {
            true => Effect::TaskAnswer(TaskAnswer {
                key,
                slot,
                ask,
                outcome: response.outcome,
            }),
            false if self.task.taken_over && !self.task_now().is_over() => Effect::NotAskedYet,
            false => Effect::None,
        }
    }

    /// Notes the task's end. Only the first one counts.
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
        Some(match self.task_now().state {
            Now::Working => "working",
            Now::Asking(_) => "input_required",
            Now::Ended(TaskEnd::Completed(_)) => "completed",
            Now::Ended(TaskEnd::Cancelled) => "cancelled",
            Now::Ended(TaskEnd::Failed(_)) | Now::Lost => "failed",
        })
    }

    fn task_now(&self) -> TaskNow<'_> {
        let record = self.record.task.as_ref();
        let created_at = self.record.opened_at.unwrap_or_default();
        let ended = record.filter(|_| !self.task.unstored);
        let (state, updated_at) =
            match ended.and_then(|task| Some((task.end.as_ref()?, task.ended_at))) {
                Some((end, at)) => (Now::Ended(end), at),
                None if self.admitted.held() == 0 => (Now::Lost, created_at),
                None if self.task.questions.is_empty() => (Now::Working, self.task.changed_at),
                None => (Now::Asking(&self.task.questions), self.task.changed_at),
            };
        let updated_at = updated_at.max(created_at);
        let limits = self.limits.task;
        TaskNow {
            id: self.session.as_str(),
            state,
            created_at,
            updated_at,
            ttl: (updated_at - created_at).saturating_add(limits.ttl),
            limits,
        }
    }

    fn task_answers(&self, params: Option<&RawJson>) -> Result<Vec<TaskAnswer>, RpcError> {
        let given = params.and_then(|params| params.member("inputResponses"));
        let given = input_responses(given.as_ref())?;
        let answer = |(key, result): (String, RawJson)| {
            self.task.questions.get(&key)?;
            let (call, ask) = asker_of_key(&key)?;
            Some(TaskAnswer {
                slot: self.admitted.running(call)?,
                ask,
                outcome: Outcome::Result(result),
                key,
            })
        };
        Ok(given.iter().filter_map(answer).collect())
    }
}

/// A task's times, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskTimes {
    pub(crate) ttl: u64,
    pub(crate) poll_interval: u64,
}

enum Now<'a> {
    Working,
    Asking(&'a BTreeMap<String, InputRequest>),
    Ended(&'a TaskEnd),
    Lost,
}

struct TaskNow<'a> {
    id: &'a str,
    state: Now<'a>,
    created_at: u64,
    updated_at: u64,
    ttl: u64,
    limits: TaskTimes,
}

impl TaskNow<'_> {
    fn is_over(&self) -> bool {
        matches!(self.state, Now::Ended(_) | Now::Lost)
    }

    fn read<T>(&self, read: impl FnOnce(Task<'_>) -> T) -> T {
        let lost;
        let state = match &self.state {
            Now::Working => TaskState::Working,
            Now::Asking(questions) => TaskState::InputRequired(questions),
            Now::Ended(end) => TaskState::Ended(end),
            Now::Lost => {
                lost = lost_call();
                TaskState::Ended(&lost)
            }
        };
        let task = Task {
            id: self.id,
            state,
            created_at: self.created_at,
            updated_at: self.updated_at,
            ttl_ms: self.ttl,
            poll_interval_ms: self.limits.poll_interval,
        };
        read(task)
    }
}

pub(crate) fn lost_call() -> TaskEnd {
    let failure = CallFailure::outcome_unknown("the store has lost the task's call");
    TaskEnd::Failed(failure.to_rpc().to_json())
}

fn acknowledgement(request: &Request) -> Bytes {
    response(
        &request.id,
        &RawJson::from_static(r#"{"resultType":"complete"}"#),
    )
}
