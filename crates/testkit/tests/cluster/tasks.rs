use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::cluster::{Builder, Cluster};
use shoal_testkit::fault_proxy::Fault;

use crate::client::within;
use crate::session::owner;
use crate::{small, start};

const META: &str = "io.modelcontextprotocol";

fn hurried() -> Builder {
    small().setting("tasks.after", "100ms")
}

async fn request(url: &str, method: &str, name: &str, params: Value) -> Value {
    let answer = send(url, method, name, params).await;
    let text = answer.text().await.unwrap();
    let mut data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let last = data.next_back().unwrap_or(&text);
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {text}"))
}

async fn send(url: &str, method: &str, name: &str, mut params: Value) -> reqwest::Response {
    params["_meta"] = json!({
        format!("{META}/protocolVersion"): "2026-07-28",
        format!("{META}/clientCapabilities"): {
            "elicitation": {},
            "extensions": { format!("{META}/tasks"): {} },
        },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    reqwest::Client::new()
        .post(url)
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method)
        .header("Mcp-Name", name)
        .json(&body)
        .send()
        .await
        .unwrap()
}

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

struct Told {
    answer: reqwest::Response,
    read: String,
}

impl Told {
    async fn of(url: &str, tasks: &[&str]) -> Self {
        let params = json!({ "notifications": { "taskIds": tasks } });
        let answer = send(url, "subscriptions/listen", "", params).await;
        let read = String::new();
        let mut told = Self { answer, read };
        let first = told.next().await;
        let honoured = &first["params"]["notifications"]["taskIds"];
        assert_eq!(*honoured, json!(tasks), "{first}");
        told
    }

    async fn next(&mut self) -> Value {
        within(async {
            loop {
                if let Some((event, rest)) = self.read.split_once("\n\n") {
                    let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                    let message = data.map(|data| serde_json::from_str(data).unwrap());
                    self.read = rest.to_owned();
                    match message {
                        Some(message) => return message,
                        None => continue,
                    }
                }
                let chunk = self.answer.chunk().await.unwrap().expect("it goes on");
                self.read.push_str(std::str::from_utf8(&chunk).unwrap());
            }
        })
        .await
    }

    async fn next_status(&mut self) -> String {
        let told = self.next().await;
        assert_eq!(told["method"], "notifications/tasks", "{told}");
        told["params"]["status"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_listener_at_any_edge_is_told_of_a_task_whose_session_node_is_lost() {
    let cluster = start(hurried()).await;
    let url = cluster.edges()[0].mcp_url().unwrap();
    let other = cluster.edges()[1].mcp_url().unwrap();
    let task = begin(url, "told", 4_000).await;
    let mut told = Told::of(other, &[&task]).await;
    assert_eq!(told.next_status().await, "working");
    owner(&cluster).await.kill().await.unwrap();
    // No client polls the task meanwhile, so the listener hears only what the nodes report.
    assert_eq!(told.next_status().await, "completed");
    assert_eq!(ledger(&cluster), "told\n", "executed once");
}

async fn ended_unasked(cluster: &Cluster, lost: &str) {
    within(async {
        loop {
            for node in cluster.sessions().iter().filter(|node| node.name() != lost) {
                let status = node.admin().status().await.unwrap();
                let held = &status["sessions"];
                if held["taken_over"] == 1 && held["journaled"] == 0 {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_task_whose_session_node_is_lost_ends_though_nobody_asks_for_it() {
    let cluster = start(hurried()).await;
    let url = cluster.edges()[0].mcp_url().unwrap();
    let task = begin(url, "unasked", 4_000).await;
    let lost = owner(&cluster).await;
    lost.kill().await.unwrap();
    ended_unasked(&cluster, lost.name()).await;
    let done = get(url, &task).await["result"].clone();
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["content"][0]["text"], "unasked", "{done}");
    assert_eq!(ledger(&cluster), "unasked\n", "executed once");
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
    // A busy machine takes long to start the only worker again.
    let cluster = start(hurried().setting("cluster.rejoin", "1m")).await;
    let url = cluster.edges()[0].mcp_url().unwrap();
    let arguments = json!({ "nonce": "again", "count": 20, "ms": 100 });
    let task = begin_tool(url, "steps", arguments).await;
    let worker = cluster.workers()[0];
    worker.kill().await.unwrap();
    worker.start_again().await.unwrap();
    let done = ended(url, &task).await;
    assert_eq!(done["result"]["content"][0]["text"], "again", "{done}");
}

#[tokio::test]
async fn a_question_is_put_once_though_its_answer_is_long_on_its_way_to_the_worker() {
    let builder = small().fault_proxies().setting("tasks.after", "1s");
    let cluster = start(builder).await;
    let edge = cluster.edges()[0];
    let url = edge.mcp_url().unwrap();
    let mut params = json!({ "name": "ask", "arguments": { "nonce": "put-once" } });
    let asked = within(request(url, "tools/call", "ask", params.clone())).await;
    let asked = &asked["result"];
    let questions = asked["inputRequests"].as_object().expect("a question");
    let key = questions.keys().next().unwrap();
    let said = json!({ "action": "accept", "content": { "text": "yes" } });
    params["inputResponses"] = json!({ key: said });
    params["requestState"] = asked["requestState"].clone();

    for worker in cluster.workers() {
        cluster.between(edge, worker, Fault::BlackHole);
    }
    let mut answering = Box::pin(request(url, "tools/call", "ask", params));
    let early = tokio::time::timeout(Duration::from_secs(3), &mut answering).await;
    let mut statuses = Vec::new();
    if let Ok(early) = &early {
        let task = early["result"]["taskId"].as_str().expect("a task");
        within(async {
            while statuses.last().is_none_or(|status| status == "working") {
                let now = get(url, task).await["result"]["status"].clone();
                statuses.push(now.as_str().unwrap().to_owned());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
    assert_eq!(
        statuses, [""; 0],
        "it became a task before its answer had arrived"
    );
    cluster.heal();
    let answer = within(answering).await["result"].clone();
    // The call may still become a task, but it must not ask its question again.
    let done = match answer["taskId"].as_str() {
        Some(task) => ended(url, task).await["result"].clone(),
        None => answer,
    };
    assert_eq!(done["content"][0]["text"], "put-once yes", "{done}");
    assert_eq!(ledger(&cluster), "put-once\n", "executed once");
}
