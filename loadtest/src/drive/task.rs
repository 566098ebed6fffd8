//! A call that becomes a task of 2026-07-28 (the extension `io.modelcontextprotocol/tasks`): it is asked for until it is
//! completed, and its result is checked like the answer of a call.

use std::borrow::Cow;
use std::time::Duration;

use http::HeaderValue;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::mcp::answer::{check_text, quote};
use crate::mcp::client::Client;

/// How long servers have clients wait before they ask for a task: several times what the tool takes (20 ms), so that a task is
/// asked for once, and so that a server has time between the tasks.
pub(crate) const POLL_INTERVAL_MS: u64 = 100;

/// How often a call is made at most until it becomes a task.
const ATTEMPTS: usize = 20;

/// The longest pause, whatever a server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What says whether an answer is a task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind<'a> {
    #[serde(borrow, default)]
    result_type: Cow<'a, str>,
}

/// What is checked of a task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    task_id: String,
    status: String,
    #[serde(default)]
    poll_interval_ms: u64,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

/// What there is to know of a task before it has ended.
struct Running {
    id: String,
    pause: Duration,
}

/// Calls the tool, and asks for the task that this becomes until its result is there, which must be the text `expected`.
///
/// A server that is late may have the result before it has made a task of the call. It may answer with that, so the call is made
/// again: such a server is more expensive, and not wrong.
///
/// # Errors
///
/// Where a request fails, or [`Failure::Wrong`] where no call becomes a task or its end is not the one due.
pub(super) async fn call(
    client: &mut Client,
    tool: &HeaderValue,
    params: &str,
    expected: &str,
) -> Result<(), Failure> {
    let mut running = begin(client, tool, params, expected).await?;
    let name = HeaderValue::from_str(&running.id)
        .map_err(|_| Failure::Wrong(format!("no header can name task {:?}", running.id)))?;
    let params = format!(
        r#""taskId":{}"#,
        serde_json::Value::from(running.id.as_str())
    );
    loop {
        tokio::time::sleep(running.pause.min(LONGEST_PAUSE)).await;
        let got = client
            .request("tasks/get", Some(&name), &params, |result| {
                ended(result, &running.id, expected)
            })
            .await?;
        match got {
            Some(still) => running = still,
            None => return Ok(()),
        }
    }
}

/// Calls until a call becomes a task.
async fn begin(
    client: &mut Client,
    tool: &HeaderValue,
    params: &str,
    expected: &str,
) -> Result<Running, Failure> {
    for _ in 0..ATTEMPTS {
        let created = client
            .request("tools/call", Some(tool), params, |result| {
                created(result, expected)
            })
            .await?;
        if let Some(running) = created {
            return Ok(running);
        }
    }
    Err(Failure::Wrong(format!(
        "none of {ATTEMPTS} calls became a task"
    )))
}

/// The task that a call has become; `None` where it was answered with the text that is due. A task may have ended already.
fn created(result: &str, expected: &str) -> Result<Option<Running>, Failure> {
    let kind: Kind<'_> = parse(result)?;
    match kind.result_type.as_ref() {
        "task" => parse(result).map(|task: Task<'_>| Some(task.into())),
        _ => check_text(result, expected).map(|()| None),
    }
}

/// `None` where the task has ended with the text that is due, and what to ask again where it works.
fn ended(result: &str, id: &str, expected: &str) -> Result<Option<Running>, Failure> {
    let task: Task<'_> = parse(result)?;
    match (task.status.as_str(), task.result) {
        _ if task.task_id != id => Err(Failure::Wrong(format!(
            "asked for task {id}, was told of {}",
            task.task_id
        ))),
        ("working", None) => Ok(Some(task.into())),
        ("completed", Some(result)) => check_text(result.get(), expected).map(|()| None),
        _ => Err(Failure::Wrong(format!(
            "a task in an odd state: {}",
            quote(result)
        ))),
    }
}

fn parse<'a, T: Deserialize<'a>>(result: &'a str) -> Result<T, Failure> {
    serde_json::from_str(result)
        .map_err(|cause| Failure::Wrong(format!("{cause} in {}", quote(result))))
}

impl From<Task<'_>> for Running {
    fn from(task: Task<'_>) -> Self {
        Self {
            id: task.task_id,
            pause: Duration::from_millis(task.poll_interval_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{created, ended};

    const WORKING: &str =
        r#"{"resultType":"task","taskId":"t","status":"working","pollIntervalMs":30}"#;

    #[test]
    fn a_call_becomes_a_task_or_is_answered_rightly() {
        let task = |result| created(result, "hi").map(|task| task.map(|task| task.id));
        let over = r#"{"resultType":"task","taskId":"t","status":"completed"}"#;
        for became in [WORKING, over] {
            assert_eq!(task(became).unwrap().as_deref(), Some("t"), "{became}");
        }
        let answer = r#"{"resultType":"complete","content":[{"type":"text","text":"hi"}]}"#;
        assert_eq!(task(answer).unwrap(), None);
        for wrong in [
            &answer.replace("hi", "ho"),
            r#"{"resultType":"complete","taskId":"t","status":"working"}"#,
            r#"{"resultType":"task","status":"working"}"#,
        ] {
            assert!(task(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_text_that_is_due_ends_a_task() {
        let over = |text: &str| {
            format!(
                r#"{{"resultType":"complete","taskId":"t","status":"completed","result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
            )
        };
        assert!(ended(&over("hi"), "t", "hi").unwrap().is_none());
        assert!(ended(&over("ho"), "t", "hi").is_err());
        assert!(ended(&over("hi"), "u", "hi").is_err());
        assert!(ended(WORKING, "t", "hi").unwrap().is_some());
        for status in ["failed", "cancelled", "input_required", "completed"] {
            let odd = format!(r#"{{"taskId":"t","status":"{status}"}}"#);
            assert!(ended(&odd, "t", "hi").is_err(), "{status}");
        }
    }
}
