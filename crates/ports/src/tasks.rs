use shoal_protocol::task::{Task, TaskState};
use shoal_protocol::{Outcome, RawJson, Request};

use crate::{Binding, CallId, ClientInfo, Repeat, Route, SessionId, stable_hash};

/// A running call that becomes a task.
#[derive(Clone, Debug)]
pub struct AdoptCall {
    /// The id under which the worker knows the call.
    pub call: CallId,
    /// The client's request, without the members of `_meta` that only 2026-07-28 has.
    pub request: Request,
    /// Whether the call may be repeated.
    pub repeat: Repeat,
    /// The call's pool and tool.
    pub route: Route,
    /// The worker that runs the call.
    pub binding: Binding,
    /// The client that made the call.
    pub client: TaskClient,
    /// Whether an earlier attempt may have made the task.
    pub repeated: bool,
}

/// The facts about a client that its task keeps.
#[derive(Clone, Debug)]
pub struct TaskClient {
    /// The client's `Implementation`, if the client sent it.
    pub client_info: Option<ClientInfo>,
    /// The client's `ClientCapabilities`.
    pub capabilities: RawJson,
}

/// A request to a task's owner, which answers with the task's state. Only the answer to `Get` has the result, which
/// can be large. Every request may be repeated.
#[derive(Clone, Debug)]
pub enum TaskRequest {
    /// Asks for the state.
    Get,
    /// Waits until the state differs from `seen`. The owner may answer earlier.
    Watch {
        /// The state that the caller has seen.
        seen: TaskMark,
    },
    /// Passes the client's answers to the call.
    Answer {
        /// The answers. The owner ignores answers to questions that are not open.
        answers: Vec<TaskAnswer>,
        /// Whether the owner waits until an answered question is open, because a new owner gets open questions only
        /// after the takeover.
        awaits_question: bool,
    },
    /// Tells the call to stop. The answer has the state from before the cancellation.
    Cancel,
}

/// A client's answer to a question of a task.
#[derive(Clone, Debug)]
pub struct TaskAnswer {
    /// The question's key.
    pub key: String,
    /// The answer.
    pub outcome: Outcome,
}

/// A fingerprint of the parts of a task whose changes are reported: its status and its questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskMark(pub u64);

impl TaskMark {
    /// Computes the mark of a task, which is the same in all releases.
    pub fn of(task: &Task) -> Self {
        let state: &[u8] = match &task.state {
            TaskState::Working => b"w",
            TaskState::InputRequired(_) => b"i",
            TaskState::Ended(_) => b"e",
        };
        let questions = match &task.state {
            TaskState::InputRequired(questions) => Some(questions),
            TaskState::Working | TaskState::Ended(_) => None,
        };
        let parts = questions.into_iter().flatten().flat_map(|(key, asked)| {
            let params = asked.params.as_ref().map_or("", RawJson::as_str);
            [key.as_str(), asked.method.as_str(), params]
        });
        let parts = parts.flat_map(|part| [b"\0", part.as_bytes()].into_iter().flatten());
        Self(stable_hash(state.iter().chain(parts).copied()))
    }

    /// Returns the mark of another state, so that [`TaskRequest::Watch`] is answered at once.
    pub fn of_another(self) -> Self {
        Self(!self.0)
    }
}

/// The tasks that a session has made (2025-11-25), as the session's owner knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionTasks {
    /// The latest tasks, newest first.
    pub tasks: Vec<SessionId>,
    /// The `ClientCapabilities` of the session's client.
    pub capabilities: RawJson,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use shoal_protocol::task::{InputRequest, Task, TaskEnd, TaskState};
    use shoal_protocol::{Method, RawJson};

    use super::TaskMark;

    fn mark(state: TaskState) -> TaskMark {
        TaskMark::of(&Task {
            id: "t".to_owned(),
            state,
            created_at: 0,
            updated_at: 0,
            ttl_ms: 0,
            poll_interval_ms: 0,
        })
    }

    fn asks(questions: &[(&str, &'static str)]) -> TaskMark {
        let request = |params| InputRequest {
            method: Method::Elicit,
            params: Some(RawJson::from_static(params)),
        };
        let questions = questions.iter();
        let questions: BTreeMap<_, _> = questions
            .map(|(key, params)| ((*key).to_owned(), request(params)))
            .collect();
        mark(TaskState::InputRequired(questions))
    }

    #[test]
    fn states_and_questions_have_marks_of_their_own() {
        let marks = [
            mark(TaskState::Working),
            mark(TaskState::Ended(TaskEnd::Cancelled)),
            asks(&[]),
            asks(&[("c.1", "{}")]),
            asks(&[("c.2", "{}")]),
            asks(&[("c.1", "{}"), ("c.2", "{}")]),
            asks(&[("c.1", r#"{"a":1}"#)]),
        ];
        for (at, one) in marks.iter().enumerate() {
            assert!(!marks[at + 1..].contains(one), "{at}");
        }
        assert_eq!(asks(&[("c.1", "{}")]), marks[3]);
    }

    #[test]
    fn the_mark_is_fixed_for_all_releases() {
        assert_eq!(mark(TaskState::Working).0, 10_599_976_613_717_637_089);
    }
}
