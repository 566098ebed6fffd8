//! Tasks in the form of 2025-11-25 (basic, Tasks).

use bytes::Bytes;

use super::{InputRequest, Task, TaskEnd, TaskState, timestamp};
use crate::{
    ClientCapability, RawJson, RawObject, RequestId, RpcError, code, declares, error_response,
    request, response, shown,
};

/// The `_meta` member that names the task of a message.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

const DECLARED: &str = r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#;

const LONGEST_MESSAGE: usize = 300;

/// Adds tasks to `ServerCapabilities`.
#[must_use]
pub fn with_tasks(capabilities: &RawJson) -> RawJson {
    let mut declared = RawObject::of(capabilities).unwrap_or_default();
    declared.set("tasks", RawJson::from_static(DECLARED));
    declared.to_json()
}

/// Whether the request asks to run as a task.
///
/// # Errors
/// The task parameters are malformed.
pub fn asks_for_task(params: Option<&RawJson>) -> Result<bool, RpcError> {
    let task = params.and_then(|params| params.member("task"));
    let Some(task) = task.filter(|task| !task.is_null()) else {
        return Ok(false);
    };
    let task = RawObject::of(&task)
        .ok_or_else(|| RpcError::invalid_params("params.task must be an object"))?;
    // SDKs send null for a task that is kept without limit.
    let ttl = task.get("ttl").filter(|ttl| !ttl.is_null());
    match ttl.is_none_or(|ttl| ttl.read().is_ok_and(|ttl: f64| ttl >= 0.0)) {
        true => Ok(true),
        false => Err(RpcError::invalid_params(
            "params.task.ttl must be a number of milliseconds",
        )),
    }
}

/// Returns the error for cancelling a task that has ended.
pub fn is_over_already(status: &str) -> RpcError {
    let message = format!("cannot cancel the task: it is in the terminal status {status:?}");
    RpcError::invalid_params(message)
}

/// Makes the response to `tasks/result`. `None` if the task has not ended.
pub fn response_of(id: &RequestId, task: &Task) -> Option<Bytes> {
    let TaskState::Ended(end) = &task.state else {
        return None;
    };
    Some(match end {
        TaskEnd::Completed(result) => {
            let mut result = RawObject::of(result).unwrap_or_default();
            // Only 2026-07-28 has this member.
            result.remove("resultType");
            relate(&mut result, &task.id);
            response(id, &result.to_json())
        }
        TaskEnd::Failed(error) => error_response(id, &RpcError::from_json(error)),
        TaskEnd::Cancelled => {
            let cancelled = RpcError::new(code::REQUEST_CANCELLED, "the call was cancelled");
            error_response(id, &cancelled)
        }
    })
}

fn relate(message: &mut RawObject, task_id: &str) {
    let meta = message.get("_meta");
    let mut meta = meta.as_ref().and_then(RawObject::of).unwrap_or_default();
    let mut related = RawObject::default();
    related.set("taskId", RawJson::of(task_id));
    meta.set(RELATED_TASK, related.to_json());
    message.set("_meta", meta.to_json());
}

/// A request whose answer a task needs from the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The key within the task.
    pub key: String,
    /// The JSON-RPC request.
    pub message: Bytes,
}

/// Returns the open questions for a client with these `capabilities`.
pub fn questions_of(task: &Task, capabilities: &RawJson) -> Vec<Question> {
    let TaskState::InputRequired(open) = &task.state else {
        return Vec::new();
    };
    let question = |(key, asked): (&String, &InputRequest)| {
        let needed = ClientCapability::needed_by(&asked.method, asked.params.as_ref())?;
        if !declares(capabilities, needed) {
            return None;
        }
        let params = asked.params.as_ref();
        let mut params = params.and_then(RawObject::of).unwrap_or_default();
        relate(&mut params, &task.id);
        let id = question_id(&task.id, key);
        let message = request(&id, asked.method.as_str(), Some(&params.to_json()));
        Some(Question {
            key: key.clone(),
            message,
        })
    };
    open.iter().filter_map(question).collect()
}

/// Marks the id of a task's question. Ids of a session's own questions do not contain it.
const OF_TASK: char = '/';

fn question_id(task_id: &str, key: &str) -> RequestId {
    RequestId::from_string(&format!("{task_id}{OF_TASK}{key}"))
}

/// Returns the task and the key that a question's id contains.
pub fn question_of(id: &RequestId) -> Option<(String, String)> {
    let id = id.to_json().string()?;
    let (task_id, key) = id.rsplit_once(OF_TASK)?;
    Some((task_id.to_owned(), key.to_owned()))
}

impl Task {
    /// Returns the task's status. A tool that reports an error makes its task fail.
    pub fn legacy_status(&self) -> &'static str {
        match &self.state {
            TaskState::Working => "working",
            TaskState::InputRequired(_) => "input_required",
            TaskState::Ended(TaskEnd::Completed(result)) if says_error(result) => "failed",
            TaskState::Ended(TaskEnd::Completed(_)) => "completed",
            TaskState::Ended(TaskEnd::Failed(_)) => "failed",
            TaskState::Ended(TaskEnd::Cancelled) => "cancelled",
        }
    }

    /// Writes a `Task`, also used as `GetTaskResult` and `CancelTaskResult`.
    pub fn to_legacy(&self) -> RawJson {
        let message = match &self.state {
            TaskState::Working | TaskState::Ended(TaskEnd::Cancelled) => None,
            TaskState::InputRequired(_) => {
                Some("the tool asks its client: tasks/result brings the question".to_owned())
            }
            TaskState::Ended(TaskEnd::Completed(result)) => {
                says_error(result).then(|| said_by(result))
            }
            TaskState::Ended(TaskEnd::Failed(error)) => {
                error.member("message").and_then(|message| message.string())
            }
        };
        let mut task = RawObject::default();
        task.set("taskId", RawJson::of(&self.id));
        task.set("status", RawJson::of(self.legacy_status()));
        if let Some(message) = message {
            task.set("statusMessage", RawJson::of(&message));
        }
        task.set("createdAt", RawJson::of(&timestamp(self.created_at)));
        task.set("lastUpdatedAt", RawJson::of(&timestamp(self.updated_at)));
        task.set("ttl", RawJson::of(&self.ttl_ms));
        task.set("pollInterval", RawJson::of(&self.poll_interval_ms));
        task.to_json()
    }

    /// Writes a `CreateTaskResult`.
    pub fn to_legacy_created(&self) -> RawJson {
        let mut created = RawObject::default();
        created.set("task", self.to_legacy());
        created.to_json()
    }
}

pub(super) fn says_error(result: &RawJson) -> bool {
    let said = result.member("isError");
    said.is_some_and(|said| said.as_str() == "true")
}

fn said_by(result: &RawJson) -> String {
    let content: Vec<RawJson> = result
        .member("content")
        .and_then(|content| content.read().ok())
        .unwrap_or_default();
    let text = content
        .iter()
        .find_map(|block| block.member("text")?.string());
    match text {
        Some(text) => format!("the tool failed: {}", shown(&text, LONGEST_MESSAGE)),
        None => "the tool failed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::{asks_for_task, question_of, questions_of, response_of, with_tasks};
    use crate::task::{InputRequest, Task, TaskEnd, TaskState};
    use crate::{Body, Message, Method, RawJson, RequestId};

    fn task(state: TaskState) -> Task {
        Task {
            id: "t".to_owned(),
            state,
            created_at: 0,
            updated_at: 1000,
            ttl_ms: 60_000,
            poll_interval_ms: 500,
        }
    }

    fn written(state: TaskState) -> Value {
        task(state).to_legacy().read().unwrap()
    }

    #[test]
    fn a_server_declares_what_it_offers_and_keeps_the_rest() {
        let declared: Value = with_tasks(&RawJson::from_static(r#"{"tools":{}}"#))
            .read()
            .unwrap();
        let tasks = json!({"list":{},"cancel":{},"requests":{"tools":{"call":{}}}});
        assert_eq!(declared, json!({"tools":{},"tasks":tasks}));
    }

    #[test]
    fn a_request_says_whether_it_is_to_be_a_task() {
        let asks = |params: Value| asks_for_task(Some(&RawJson::of(&params)));
        assert_eq!(asks(json!({"name":"a"})), Ok(false));
        assert_eq!(asks(json!({"task":null})), Ok(false));
        assert_eq!(asks(json!({"task":{}})), Ok(true));
        assert_eq!(asks(json!({"task":{"ttl":0,"other":1}})), Ok(true));
        assert_eq!(asks(json!({"task":{"ttl":null}})), Ok(true));
        for bad in [
            json!(true),
            json!([]),
            json!({"ttl":"1"}),
            json!({"ttl":-1}),
        ] {
            let error = asks(json!({"task":bad})).unwrap_err();
            assert_eq!(error.code, -32602, "{bad}");
        }
    }

    #[test]
    fn a_task_has_the_members_of_the_revision_and_no_result() {
        let working = written(TaskState::Working);
        let expected = json!({"taskId":"t","status":"working","createdAt":"1970-01-01T00:00:00.000Z",
            "lastUpdatedAt":"1970-01-01T00:00:01.000Z","ttl":60000,"pollInterval":500});
        assert_eq!(working, expected);
        let end = TaskEnd::Completed(RawJson::from_static(r#"{"content":[]}"#));
        let completed = written(TaskState::Ended(end));
        assert_eq!(completed["status"], "completed");
        assert_eq!(completed.get("result"), None);
        let end = TaskEnd::Failed(RawJson::from_static(r#"{"code":1,"message":"m"}"#));
        let failed = written(TaskState::Ended(end));
        assert_eq!(
            (&failed["status"], &failed["statusMessage"]),
            (&json!("failed"), &json!("m"))
        );
        let cancelled = written(TaskState::Ended(TaskEnd::Cancelled));
        assert_eq!(cancelled["status"], "cancelled");
        let asking = written(TaskState::InputRequired(BTreeMap::new()));
        assert_eq!(asking["status"], "input_required");
    }

    #[test]
    fn a_tool_that_failed_has_a_task_that_failed() {
        let of = |result: &'static str| {
            let end = TaskEnd::Completed(RawJson::from_static(result));
            written(TaskState::Ended(end))
        };
        let said = of(r#"{"isError":true,"content":[{"type":"text","text":"no room"}]}"#);
        assert_eq!(said["status"], "failed");
        assert_eq!(said["statusMessage"], "the tool failed: no room");
        let silent = of(r#"{"isError":true}"#);
        assert_eq!(silent["statusMessage"], "the tool failed");
        assert_eq!(of(r#"{"isError":false}"#)["status"], "completed");
    }

    #[test]
    fn a_question_names_its_task_and_goes_to_who_can_answer_it() {
        let asked = |method, params| InputRequest {
            method,
            params: Some(RawJson::from_static(params)),
        };
        let open = BTreeMap::from([
            (
                "c.1".to_owned(),
                asked(Method::Elicit, r#"{"message":"?","_meta":{"a":1}}"#),
            ),
            ("c.2".to_owned(), asked(Method::CreateMessage, "{}")),
            (
                "c.3".to_owned(),
                InputRequest {
                    method: Method::RootsList,
                    params: None,
                },
            ),
        ]);
        let task = Task {
            id: "t-task".to_owned(),
            ..task(TaskState::InputRequired(open))
        };
        let declared = RawJson::from_static(r#"{"elicitation":{},"roots":{}}"#);
        let questions = questions_of(&task, &declared);
        let keys: Vec<_> = questions.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(keys, ["c.1", "c.3"]);
        let related = json!({"taskId":"t-task"});
        let sent: Value = serde_json::from_slice(&questions[0].message).unwrap();
        let params =
            json!({"message":"?","_meta":{"a":1,"io.modelcontextprotocol/related-task":related}});
        assert_eq!(
            sent,
            json!({"jsonrpc":"2.0","id":"t-task/c.1","method":"elicitation/create","params":params})
        );
        let Ok(Body::Single(Message::Request(request))) = Body::parse(&questions[1].message, 9)
        else {
            panic!("it is a request");
        };
        let of = question_of(&request.id);
        assert_eq!(of, Some(("t-task".to_owned(), "c.3".to_owned())));
        assert!(questions_of(&task, &RawJson::from_static("{}")).is_empty());
        for other in [RequestId::from_string("c.1"), RequestId::from_number(7)] {
            assert_eq!(question_of(&other), None);
        }
    }

    #[test]
    fn the_result_is_what_the_call_would_have_been_answered_with() {
        let of = |state: TaskState| -> Value {
            let text = response_of(&RequestId::from_number(7), &task(state)).unwrap();
            serde_json::from_slice(&text).unwrap()
        };
        let end = TaskEnd::Completed(RawJson::from_static(r#"{"content":[],"_meta":{"a":1}}"#));
        let related = json!({"taskId":"t"});
        let result =
            json!({"content":[],"_meta":{"a":1,"io.modelcontextprotocol/related-task":related}});
        assert_eq!(
            of(TaskState::Ended(end)),
            json!({"jsonrpc":"2.0","id":7,"result":result})
        );
        let end = TaskEnd::Failed(RawJson::from_static(
            r#"{"code":-32602,"message":"m","data":{"d":1}}"#,
        ));
        let error = json!({"code":-32602,"message":"m","data":{"d":1}});
        assert_eq!(of(TaskState::Ended(end))["error"], error);
        let cancelled = of(TaskState::Ended(TaskEnd::Cancelled));
        assert_eq!(cancelled["error"]["code"], -32800);
        let working = task(TaskState::Working);
        assert_eq!(response_of(&RequestId::from_number(7), &working), None);
    }
}
