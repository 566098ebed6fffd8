//! A call that becomes a task of 2026-07-28 (extension `io.modelcontextprotocol/tasks`).

use std::borrow::Cow;
use std::time::Duration;

use http::HeaderValue;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Echo;
use crate::failure::Failure;
use crate::mcp::answer::{check_text, parse, quote};
use crate::mcp::client::Client;

pub(crate) const POLL_INTERVAL_MS: u64 = 100;

const ATTEMPTS: usize = 20;

const LONGEST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind<'a> {
    #[serde(borrow, default)]
    result_type: Cow<'a, str>,
}

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

struct Running {
    id: String,
    pause: Duration,
}

/// Makes a call, and polls its task. If the server answers directly instead of with a task, repeats
/// the call.
pub(super) async fn call(client: &mut Client, echo: &Echo, text: &str) -> Result<(), Failure> {
    let (params, expected) = echo.call(text);
    let mut running = begin(client, &echo.header()?, &params, &expected).await?;
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
                ended(result, &running.id, &expected)
            })
            .await?;
        match got {
            Some(still) => running = still,
            None => return Ok(()),
        }
    }
}

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

/// `None` if the call was answered with the expected text instead.
fn created(result: &str, expected: &str) -> Result<Option<Running>, Failure> {
    let kind: Kind<'_> = parse(result)?;
    match kind.result_type.as_ref() {
        "task" => parse(result).map(|task: Task<'_>| Some(task.into())),
        _ => check_text(result, expected).map(|()| None),
    }
}

/// `None` if the task has ended with the expected text.
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
