//! A call as a task of 2025-11-25: created, polled until it is done, its result fetched.

use std::time::Duration;

use serde::Deserialize;

use super::Echo;
use crate::failure::Failure;
use crate::mcp::answer::{check_text, parse};
use crate::mcp::client::Client;

const KEEP_MS: u64 = 60_000;

const LONGEST_PAUSE: Duration = Duration::from_secs(1);

const PAUSE: Duration = Duration::from_millis(50);

#[derive(Deserialize)]
struct Created {
    task: Task,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_id: String,
    status: String,
    #[serde(default)]
    poll_interval: Option<u64>,
}

pub(super) async fn call(client: &mut Client, echo: &Echo, text: &str) -> Result<(), Failure> {
    let (params, expected) = echo.call(text);
    let params = format!(r#"{params},"task":{{"ttl":{KEEP_MS}}}"#);
    let created: Created = client
        .request("tools/call", None, &params, |it| parse(it))
        .await?;
    let mut task = created.task;
    let id = serde_json::Value::from(task.task_id.as_str());
    let params = format!(r#""taskId":{id}"#);
    while task.status == "working" {
        let pause = task.poll_interval.map_or(PAUSE, Duration::from_millis);
        tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
        let polled: Task = client
            .request("tasks/get", None, &params, |it| parse(it))
            .await?;
        if polled.task_id != task.task_id {
            return Err(Failure::Wrong(format!(
                "asked for task {id}, was told of {}",
                polled.task_id
            )));
        }
        task = polled;
    }
    if task.status != "completed" {
        return Err(Failure::Wrong(format!(
            "task {id} ended as {}",
            task.status
        )));
    }
    client
        .request("tasks/result", None, &params, |result| {
            check_text(result, &expected)
        })
        .await
}
