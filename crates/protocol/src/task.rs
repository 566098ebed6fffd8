//! The tasks extension (`io.modelcontextprotocol/tasks`).

pub mod legacy;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Method, RawJson, RawObject, RpcError, code};

/// The extension's name.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

const DECLARED: &str = r#"{"io.modelcontextprotocol/tasks":{}}"#;

/// Whether `ClientCapabilities` declare the extension.
pub fn declares_tasks(capabilities: &RawJson) -> bool {
    let extensions = capabilities.member("extensions");
    extensions
        .and_then(|extensions| extensions.member(TASKS))
        .is_some_and(|settings| settings.is_object())
}

/// Adds the extension to capabilities.
#[must_use]
pub fn with_tasks(capabilities: &RawJson) -> RawJson {
    let mut declared = RawObject::of(capabilities).unwrap_or_default();
    let extensions = declared.get("extensions");
    let extensions = match extensions.as_ref().and_then(RawObject::of) {
        Some(mut others) => {
            others.set(TASKS, RawJson::from_static("{}"));
            others.to_json()
        }
        None => RawJson::from_static(DECLARED),
    };
    declared.set("extensions", extensions);
    declared.to_json()
}

/// Removes the extension from capabilities.
#[must_use]
pub fn without_tasks(capabilities: &RawJson) -> RawJson {
    let mut declared = RawObject::of(capabilities).unwrap_or_default();
    let extensions = declared.get("extensions");
    let Some(mut others) = extensions.as_ref().and_then(RawObject::of) else {
        return capabilities.clone();
    };
    others.remove(TASKS);
    if others.is_empty() {
        declared.remove("extensions");
    } else {
        declared.set("extensions", others.to_json());
    }
    declared.to_json()
}

/// Returns a `MissingRequiredClientCapabilityError` for tasks.
pub fn missing_tasks() -> RpcError {
    let data = format!(r#"{{"requiredCapabilities":{{"extensions":{DECLARED}}}}}"#);
    let message =
        format!("the request needs the extension {TASKS}, which the client did not declare");
    RpcError::new(code::MISSING_CLIENT_CAPABILITY, message)
        .with_data(RawJson::from_valid(data.into()))
}

/// Returns the error for a task that this principal does not have.
pub fn no_such_task() -> RpcError {
    RpcError::invalid_params("task not found: it has expired, or never existed")
}

/// The member of a tool's `_meta` that replaces `execution.taskSupport`.
pub const TASK_SUPPORT: &str = "shoal/taskSupport";

/// Whether a tool's calls may be tasks (`execution.taskSupport` of 2025-11-25, or [`TASK_SUPPORT`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TaskSupport {
    /// Calls may be tasks. The default.
    #[default]
    Optional,
    /// Calls must not be tasks.
    Forbidden,
    /// Calls must be tasks.
    Required,
}

impl TaskSupport {
    /// Reads a `Tool`'s setting; `None` if missing or unknown.
    pub fn said(tool: &RawObject) -> Option<Self> {
        let said = |object: &str, name: &str| tool.get(object)?.member(name)?.string();
        let said = said("execution", "taskSupport").or_else(|| said("_meta", TASK_SUPPORT));
        match said.as_deref() {
            Some("required") => Some(Self::Required),
            Some("forbidden") => Some(Self::Forbidden),
            Some("optional") => Some(Self::Optional),
            _ => None,
        }
    }

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Optional => "optional",
            Self::Forbidden => "forbidden",
            Self::Required => "required",
        }
    }
}

/// A request whose answer a task needs from the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRequest {
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: Method,
    /// The parameters.
    pub params: Option<RawJson>,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// A result, which may report a tool failure.
    Completed(RawJson),
    /// A JSON-RPC error object.
    Failed(RawJson),
    /// The task was cancelled.
    Cancelled,
}

/// The state of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// The call runs.
    Working,
    /// The call waits for the client's answers to these requests, by key.
    InputRequired(BTreeMap<String, InputRequest>),
    /// The call has ended.
    Ended(TaskEnd),
}

/// A task as its client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The task's id.
    pub id: String,
    /// The task's state.
    pub state: TaskState,
    /// When the task was created, in milliseconds since 1970.
    pub created_at: u64,
    /// The last change, in milliseconds since 1970.
    pub updated_at: u64,
    /// How long the task is kept, in milliseconds.
    pub ttl_ms: u64,
    /// The client's poll interval, in milliseconds.
    pub poll_interval_ms: u64,
}

impl Task {
    /// Whether the task has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.state, TaskState::Ended(_))
    }

    /// Drops the result, which can be large. The status stays as it is, in both eras.
    #[must_use]
    pub fn without_result(mut self) -> Self {
        if let TaskState::Ended(TaskEnd::Completed(result)) = &mut self.state {
            *result = RawJson::from_static(match legacy::says_error(result) {
                true => r#"{"isError":true}"#,
                false => "{}",
            });
        }
        self
    }

    fn header(&self, result_type: &'static str) -> RawObject {
        let (status, message) = match &self.state {
            TaskState::Working => ("working", None),
            TaskState::InputRequired(_) => ("input_required", None),
            TaskState::Ended(TaskEnd::Completed(_)) => ("completed", None),
            TaskState::Ended(TaskEnd::Cancelled) => ("cancelled", None),
            TaskState::Ended(TaskEnd::Failed(error)) => ("failed", error.member("message")),
        };
        let mut task = RawObject::default();
        task.set("resultType", RawJson::of(result_type));
        task.set("taskId", RawJson::of(&self.id));
        task.set("status", RawJson::of(status));
        if let Some(message) = message {
            task.set("statusMessage", message);
        }
        task.set("createdAt", RawJson::of(&timestamp(self.created_at)));
        task.set("lastUpdatedAt", RawJson::of(&timestamp(self.updated_at)));
        task.set("ttlMs", RawJson::of(&self.ttl_ms));
        task.set("pollIntervalMs", RawJson::of(&self.poll_interval_ms));
        task
    }

    /// Writes the task as `CreateTaskResult`.
    pub fn to_created(&self) -> RawJson {
        self.header("task").to_json()
    }

    /// Writes the task as `GetTaskResult`.
    pub fn to_result(&self) -> RawJson {
        let mut task = self.header("complete");
        match &self.state {
            TaskState::Ended(TaskEnd::Completed(result)) => task.set("result", complete(result)),
            TaskState::Ended(TaskEnd::Failed(error)) => task.set("error", error.clone()),
            TaskState::InputRequired(requests) => {
                let mut asked = RawObject::default();
                for (key, InputRequest { method, params }) in requests {
                    let mut request = RawObject::default();
                    request.set("method", RawJson::of(method));
                    if let Some(params) = params {
                        request.set("params", params.clone());
                    }
                    asked.set(key, request.to_json());
                }
                task.set("inputRequests", asked.to_json());
            }
            TaskState::Working | TaskState::Ended(TaskEnd::Cancelled) => {}
        }
        task.to_json()
    }
}

fn complete(result: &RawJson) -> RawJson {
    match RawObject::of(result) {
        Some(mut members) if !members.has("resultType") => {
            members.set("resultType", RawJson::of("complete"));
            members.to_json()
        }
        _ => result.clone(),
    }
}

/// Writes milliseconds since 1970 in ISO 8601, in UTC.
fn timestamp(millis: u64) -> String {
    const DAY: u64 = 24 * 60 * 60;
    let (seconds, millis) = (millis / 1000, millis % 1000);
    let (year, month, day) = date_of(seconds / DAY);
    let (hour, minute, second) = (seconds % DAY / 3600, seconds % 3600 / 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Returns year, month and day. In this calculation, years begin in March, so that a leap day ends its year.
fn date_of(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097;
    let days = days + 719_468;
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_month)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::{
        InputRequest, Task, TaskEnd, TaskState, TaskSupport, declares_tasks, missing_tasks,
        timestamp, with_tasks,
    };
    use crate::{Method, RawJson, RawObject};

    fn task(state: TaskState) -> Task {
        Task {
            id: "t".to_owned(),
            state,
            created_at: 0,
            updated_at: 1_795_456_800_123,
            ttl_ms: 60_000,
            poll_interval_ms: 500,
        }
    }

    fn read(json: &RawJson) -> Value {
        json.read().unwrap()
    }

    #[test]
    fn only_an_object_under_the_name_declares_the_extension() {
        let declares = |value: Value| declares_tasks(&RawJson::of(&value));
        assert!(declares(
            json!({"extensions":{"io.modelcontextprotocol/tasks":{}}})
        ));
        for other in [
            json!({}),
            json!({"extensions":{}}),
            json!({"extensions":{"io.modelcontextprotocol/tasks":null}}),
            json!({"tasks":{}}),
            json!({"extensions":["io.modelcontextprotocol/tasks"]}),
        ] {
            assert!(!declares(other.clone()), "{other}");
        }
    }

    #[test]
    fn a_server_keeps_the_other_extensions_that_it_declares() {
        let with = |value: Value| read(&with_tasks(&RawJson::of(&value)));
        let tasks = json!({"io.modelcontextprotocol/tasks":{}});
        assert_eq!(
            with(json!({"tools":{}})),
            json!({"tools":{},"extensions":tasks})
        );
        let both = with(json!({"extensions":{"a/b":{"c":1}}}));
        assert_eq!(both["extensions"]["a/b"], json!({"c":1}));
        assert_eq!(
            both["extensions"]["io.modelcontextprotocol/tasks"],
            json!({})
        );
    }

    #[test]
    fn the_refusal_names_the_extension() {
        let error = read(&missing_tasks().to_json());
        assert_eq!(error["code"], -32021);
        let required = &error["data"]["requiredCapabilities"]["extensions"];
        assert_eq!(*required, json!({"io.modelcontextprotocol/tasks":{}}));
    }

    #[test]
    fn a_created_task_has_nothing_of_its_state() {
        let end = TaskEnd::Completed(RawJson::from_static(r#"{"content":[]}"#));
        let ended = task(TaskState::Ended(end));
        assert!(ended.is_over());
        let created = read(&ended.to_created());
        let expected = json!({"resultType":"task","taskId":"t","status":"completed",
            "createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"2026-11-23T18:00:00.123Z",
            "ttlMs":60000,"pollIntervalMs":500});
        assert_eq!(created, expected);
    }

    #[test]
    fn each_state_brings_what_belongs_to_it_and_no_more() {
        let of = |state| read(&task(state).to_result());
        let extra = |value: &Value| {
            ["result", "error", "inputRequests", "statusMessage"]
                .into_iter()
                .filter(|name| value.get(name).is_some())
                .collect::<Vec<_>>()
        };
        let working = of(TaskState::Working);
        assert_eq!(
            (&working["status"], extra(&working)),
            (&json!("working"), vec![])
        );
        assert_eq!(working["resultType"], "complete");
        assert!(!task(TaskState::Working).is_over());

        let end = TaskEnd::Completed(RawJson::from_static(r#"{"isError":true}"#));
        let completed = of(TaskState::Ended(end));
        assert_eq!(
            completed["result"],
            json!({"isError":true,"resultType":"complete"})
        );
        assert_eq!(extra(&completed), ["result"]);

        let end = TaskEnd::Failed(RawJson::from_static(r#"{"code":-1,"message":"m"}"#));
        let failed = of(TaskState::Ended(end));
        assert_eq!(
            (&failed["error"]["code"], &failed["statusMessage"]),
            (&json!(-1), &json!("m"))
        );
        assert_eq!(extra(&failed), ["error", "statusMessage"]);

        let cancelled = of(TaskState::Ended(TaskEnd::Cancelled));
        assert_eq!(
            (&cancelled["status"], extra(&cancelled)),
            (&json!("cancelled"), vec![])
        );

        let request = InputRequest {
            method: Method::Elicit,
            params: Some(RawJson::from_static(r#"{"message":"?"}"#)),
        };
        let requests = BTreeMap::from([("k".to_owned(), request)]);
        let asking = of(TaskState::InputRequired(requests));
        let expected = json!({"k":{"method":"elicitation/create","params":{"message":"?"}}});
        assert_eq!(
            (&asking["status"], &asking["inputRequests"]),
            (&json!("input_required"), &expected)
        );
    }

    #[test]
    fn a_tool_says_whether_its_calls_may_be_tasks() {
        let of = |value: Value| TaskSupport::said(&RawObject::of(&RawJson::of(&value)).unwrap());
        let said = |word: &str| of(json!({"execution":{"taskSupport":word}}));
        for support in [
            TaskSupport::Required,
            TaskSupport::Forbidden,
            TaskSupport::Optional,
        ] {
            assert_eq!(said(support.as_str()), Some(support));
        }
        let noted = json!({"_meta":{"shoal/taskSupport":"required"}});
        assert_eq!(of(noted), Some(TaskSupport::Required));
        assert_eq!((of(json!({})), said("perhaps")), (None, None));
    }

    #[test]
    fn times_are_written_in_utc() {
        for (seconds, written) in [
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_799, "2000-02-29T23:59:59.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(seconds * 1000), written);
        }
    }
}
