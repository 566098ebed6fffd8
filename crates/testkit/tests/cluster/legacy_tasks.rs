use std::time::Duration;

use serde_json::{Value, json};

use shoal_testkit::cluster::{Cluster, Member};

use crate::client::{Client, Events, text_of, within};
use crate::{small, start};

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

async fn owner(cluster: &Cluster) -> &Member {
    for node in cluster.sessions() {
        let status = node.admin().status().await.unwrap();
        if status["sessions"]["live"] == 2 {
            return node;
        }
    }
    panic!("nobody holds the session and its task")
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

    owner(&cluster).await.kill().await.unwrap();

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

async fn begin_asking(client: &Client, nonce: &str) -> Value {
    let arguments = json!({ "nonce": nonce });
    let params = json!({ "name": "ask", "arguments": arguments, "task": {} });
    let made = ask(client, "tools/call", params).await;
    let task = made["result"]["task"]["taskId"].as_str();
    json!({ "taskId": task.unwrap_or_else(|| panic!("{made}")) })
}

async fn wait(client: &Client, task: &Value) -> Events {
    let request = json!({ "jsonrpc": "2.0", "id": 9, "method": "tasks/result", "params": task });
    client.stream_of(&request).await
}

async fn answer(client: &Client, question: &Value, text: &str) {
    let result = json!({ "action": "accept", "content": { "text": text } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    within(async {
        while client.post(&answer).await.status != 202 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_question_is_answered_at_another_edge_after_its_session_node_is_lost() {
    let cluster = start(small()).await;
    let client = Client::open(cluster.edges()[0].mcp_url().unwrap()).await;
    let other = client.at(cluster.edges()[1].mcp_url().unwrap());
    let task = begin_asking(&client, "asked").await;
    let mut first = wait(&client, &task).await;
    let question = first.next().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    owner(&cluster).await.kill().await.unwrap();

    answer(&other, &question, "yes").await;
    let done = first.next().await.unwrap();
    assert_eq!(text_of(&done), "asked yes", "{done}");
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    assert_eq!(ledger, "asked\n", "executed once");
}

#[tokio::test]
async fn an_open_question_is_the_same_at_another_edge_and_after_its_session_node_is_lost() {
    let cluster = start(small()).await;
    let edges = cluster.edges();
    let client = Client::open(edges[0].mcp_url().unwrap()).await;
    let other = client.at(edges[1].mcp_url().unwrap());
    let task = begin_asking(&client, "once").await;
    let question = wait(&client, &task).await.next().await.unwrap();
    edges[0].kill().await.unwrap();
    assert_eq!(wait(&other, &task).await.next().await.unwrap(), question);
    owner(&cluster).await.kill().await.unwrap();
    let mut last = wait(&other, &task).await;
    assert_eq!(last.next().await.unwrap(), question);
    answer(&other, &question, "yes").await;
    let done = last.next().await.unwrap();
    assert_eq!(text_of(&done), "once yes", "{done}");
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    assert_eq!(ledger, "once\n", "executed once");
}
