//! Tasks: calls of modern clients that outlive the edge and the session node that carried them.

use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::cluster::{Builder, Cluster};

use crate::client::within;
use crate::session::owner;
use crate::{small, start};

const META: &str = "io.modelcontextprotocol";

/// Calls become tasks soon.
fn hurried() -> Builder {
    small().setting("tasks.after", "100ms")
}

/// A request of a client that declares tasks, at this edge.
async fn request(url: &str, method: &str, name: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        format!("{META}/protocolVersion"): "2026-07-28",
        format!("{META}/clientCapabilities"): {
            "elicitation": {},
            "extensions": { format!("{META}/tasks"): {} },
        },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let answer = reqwest::Client::new()
        .post(url)
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method)
        .header("Mcp-Name", name)
        .json(&body)
        .send()
        .await
        .unwrap();
    answer.json().await.unwrap()
}

/// Begins a call that must not run twice, and becomes a task; the task's id.
async fn begin(url: &str, nonce: &str, ms: u64) -> String {
    begin_tool(url, "record", json!({ "nonce": nonce, "ms": ms })).await
}

async fn begin_tool(url: &str, tool: &str, arguments: Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    let answer = within(request(url, "tools/call", tool, params)).await;
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    answer["result"]["taskId"].as_str().unwrap().to_owned()
}

async fn get(url: &str, task: &str) -> Value {
    request(url, "tasks/get", task, json!({ "taskId": task })).await
}

/// The task once it has ended. What is refused meanwhile is asked again.
async fn ended(url: &str, task: &str) -> Value {
    within(async {
        loop {
            let now = get(url, task).await["result"].clone();
            match now["status"].as_str() {
                Some("completed" | "failed" | "cancelled") => return now,
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    })
    .await
}

fn ledger(cluster: &Cluster) -> String {
    std::fs::read_to_string(cluster.ledger()).unwrap_or_default()
}

#[tokio::test]
async fn a_task_outlives_its_edge_and_its_session_node() {
    let cluster = start(hurried()).await;
    let (first, second) = (cluster.edges()[0], cluster.edges()[1]);
    let task = begin(first.mcp_url().unwrap(), "once", 4_000).await;
    first.kill().await.unwrap();
    let url = second.mcp_url().unwrap();
    assert_eq!(get(url, &task).await["result"]["status"], "working");
    owner(&cluster).await.kill().await.unwrap();

    let done = ended(url, &task).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["content"][0]["text"], "once", "{done}");
    assert_eq!(ledger(&cluster), "once\n", "executed once");
}

#[tokio::test]
async fn a_task_whose_worker_is_lost_does_not_run_again() {
    let cluster = start(hurried()).await;
    let url = cluster.edges()[0].mcp_url().unwrap();
    let task = begin(url, "lost", 60_000).await;
    let worker = cluster.workers()[0];
    worker.kill().await.unwrap();
    worker.start_again().await.unwrap();
    let failed = ended(url, &task).await;
    assert_eq!(failed["error"]["code"], 50002, "{failed}");
    assert_eq!(ledger(&cluster), "lost\n", "executed once");
}

#[tokio::test]
async fn a_cancelled_task_stops_and_a_strangers_id_finds_nothing() {
    let cluster = start(hurried()).await;
    let url = cluster.edges()[0].mcp_url().unwrap();
    let other = cluster.edges()[1].mcp_url().unwrap();
    let task = begin(url, "stopped", 60_000).await;
    let params = json!({ "taskId": task });
    let cancelled = request(other, "tasks/cancel", &task, params).await;
    assert_eq!(cancelled["result"], json!({ "resultType": "complete" }));
    assert_eq!(ended(other, &task).await["status"], "cancelled");
    let unknown = task.replace(&task[..8], "00000000");
    assert_eq!(get(url, &unknown).await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_task_that_is_safe_to_repeat_runs_again_when_its_worker_is_lost() {
    let cluster = start(hurried()).await;
    let url = cluster.edges()[0].mcp_url().unwrap();
    let arguments = json!({ "nonce": "again", "count": 20, "ms": 100 });
    let task = begin_tool(url, "steps", arguments).await;
    let worker = cluster.workers()[0];
    worker.kill().await.unwrap();
    worker.start_again().await.unwrap();
    let done = ended(url, &task).await;
    assert_eq!(done["result"]["content"][0]["text"], "again", "{done}");
}
