//! Tasks of 2025-11-25: calls that outlive the session node that took them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, text_of, within};
use crate::{small, start};

/// Asks until the answer is no refusal that says when to come back.
async fn ask(client: &Client, method: &str, params: Value) -> Value {
    let request = json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": params });
    within(async {
        loop {
            let answer = client.post(&request).await;
            if answer.status == 200 && answer.body["error"]["code"] != 50301 {
                return answer.body;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_task_is_read_at_another_edge_after_its_session_node_is_lost() {
    let cluster = start(small()).await;
    let client = Client::open(cluster.edges()[0].mcp_url().unwrap()).await;
    let other = client.at(cluster.edges()[1].mcp_url().unwrap());
    let arguments = json!({ "nonce": "once", "ms": 6_000 });
    let params = json!({ "name": "record", "arguments": arguments, "task": {} });
    let made = ask(&client, "tools/call", params).await;
    let task = made["result"]["task"]["taskId"].as_str();
    let task = json!({ "taskId": task.unwrap_or_else(|| panic!("{made}")) });

    // The node that has the session has its task as well.
    let owner = async {
        for node in cluster.sessions() {
            let status = node.admin().status().await.unwrap();
            if status["sessions"]["live"] == 2 {
                return node;
            }
        }
        panic!("nobody holds the session and its task")
    };
    owner.await.kill().await.unwrap();

    let now = ask(&other, "tasks/get", task.clone()).await;
    assert_eq!(now["result"]["status"], "working", "{now}");
    let listed = ask(&other, "tasks/list", json!({})).await;
    let listed = &listed["result"]["tasks"];
    assert_eq!(listed[0]["taskId"], task["taskId"], "{listed}");
    let done = ask(&other, "tasks/result", task.clone()).await;
    assert_eq!(text_of(&done), "once", "{done}");
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    assert_eq!(ledger, "once\n", "executed once");
    let ended = ask(&other, "tasks/cancel", task).await;
    assert_eq!(ended["error"]["code"], -32602, "{ended}");
}
