//! A call that becomes a task of 2026-07-28 (extension `io.modelcontextprotocol/tasks`).

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::Echo;
use crate::failure::Failure;
use crate::mcp::answer::{check_text, parse, quote};
use crate::mcp::client::Client;

pub(crate) const POLL_INTERVAL_MS: u64 = 100;

const ATTEMPTS: usize = 20;

const LONGEST_PAUSE: Duration = Duration::from_secs(1);

struct Running {
    id: String,
    pause: Duration,
}

/// Makes a call, and polls its task. If the server answers directly instead of with a task, repeats
/// the call.
pub(super) async fn call(client: &mut Client, echo: &Echo, text: &str) -> Result<(), Failure> {
    let (arguments, expected) = echo.call(text);
    for _ in 0..ATTEMPTS {
        let check = |result: &str| created(result, &expected);
        if let Some(running) = client.call(&echo.tool, &arguments, check).await? {
            return follow(client, running, &expected).await;
        }
    }
    Err(Failure::Wrong(format!(
        "none of {ATTEMPTS} calls became a task"
    )))
}

async fn follow(client: &mut Client, mut task: Running, expected: &str) -> Result<(), Failure> {
    let params = format!(r#""taskId":{}"#, Value::from(task.id.as_str()));
    loop {
        sleep(task.pause.min(LONGEST_PAUSE)).await;
        let check = |result: &str| ended(result, &task.id, expected);
        match client
            .request("tasks/get", &task.id, &params, check)
            .await?
        {
            Some(still) => task = still,
            None => return Ok(()),
        }
    }
}

/// `None` if the call was answered with the expected text instead.
fn created(result: &str, expected: &str) -> Result<Option<Running>, Failure> {
    let value: Value = parse(result)?;
    match value["resultType"] == "task" {
        true => running(&value).map(Some),
        false => check_text(result, expected).map(|()| None),
    }
}

/// `None` if the task has ended with the expected text.
fn ended(result: &str, id: &str, expected: &str) -> Result<Option<Running>, Failure> {
    let task: Value = parse(result)?;
    let running = running(&task)?;
    match (task["status"].as_str(), task.get("result")) {
        _ if running.id != id => Err(Failure::Wrong(format!(
            "asked for task {id}, was told of {}",
            running.id
        ))),
        (Some("working"), None) => Ok(Some(running)),
        (Some("completed"), Some(result)) => {
            check_text(&result.to_string(), expected).map(|()| None)
        }
        _ => Err(Failure::Wrong(format!(
            "a task in an odd state: {}",
            quote(result)
        ))),
    }
}

fn running(task: &Value) -> Result<Running, Failure> {
    let (Some(id), Some(_)) = (task["taskId"].as_str(), task["status"].as_str()) else {
        return Err(Failure::Wrong(format!("{task} lacks an ID or a status")));
    };
    Ok(Running {
        id: id.to_owned(),
        pause: Duration::from_millis(task["pollIntervalMs"].as_u64().unwrap_or_default()),
    })
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
