//! Tests tools that their server runs only as tasks.

use serde_json::{Value, json};

use crate::client::{
    Events, Session, call, meta, modern_call, post_modern, request, response, text,
};
use crate::extensions::Setting;
use crate::process::{SOON, Server};
use crate::reload::setting::until;

async fn next(events: &mut Events) -> Value {
    let next = tokio::time::timeout(SOON, events.message()).await;
    next.expect("the stream goes on")
}

async fn both(era: &str) -> (Setting, Server) {
    let setting = Setting::start(era).await;
    let behind = Server::start(&[&setting.server.mcp]).await;
    (setting, behind)
}

#[tokio::test]
async fn a_tool_that_needs_a_task_is_called_without_one() {
    for era in ["legacy", "modern"] {
        let (setting, behind) = both(era).await;
        for url in [&setting.server.mcp, &behind.mcp] {
            let session = Session::open(url).await;
            let listed = session.ask(&request(1, "tools/list", json!({}))).await;
            let tool = &listed["result"]["tools"][0];
            assert_ne!(tool["execution"]["taskSupport"], "required", "{tool}");
            let mut job = call(2, "job", json!({ "steps": 2 }));
            job["params"]["_meta"] = json!({ "progressToken": "p" });
            let answer = session.post(&job).send().await.unwrap();
            if era == "legacy" && url == &setting.server.mcp {
                let mut events = Events::of(answer);
                for step in 1..=2 {
                    let told = next(&mut events).await;
                    let expected = json!({ "progressToken": "p", "progress": step });
                    assert_eq!(told["params"], expected, "{told}");
                }
                let done = next(&mut events).await;
                assert_eq!(text(&done), r#"["done", null]"#, "{done}");
                assert!(done["result"].get("_meta").is_none(), "{done}");
            } else {
                assert_eq!(text(&response(answer).await), r#"["done", null]"#);
            }
            let asked = modern_call(3, "job", json!({}));
            let answer = post_modern(url, &asked).send().await.unwrap();
            assert_eq!(text(&response(answer).await), r#"["done", null]"#);
        }
        assert_eq!(setting.lines(), ["job"; 4]);
    }
}

#[tokio::test]
async fn a_servers_task_asks_the_client() {
    let accepted = json!({ "action": "accept", "content": { "name": "ann" } });
    for era in ["legacy", "modern"] {
        let (setting, behind) = both(era).await;
        for url in [&setting.server.mcp, &behind.mcp] {
            let session = Session::open_with(url, json!({ "elicitation": {} })).await;
            let job = session.post(&call(2, "job", json!({ "ask": true })));
            let mut events = Events::of(job.send().await.unwrap());
            let question = next(&mut events).await;
            assert_eq!(question["method"], "elicitation/create", "{question}");
            let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": accepted });
            let taken = session.post(&answer).send().await.unwrap();
            assert_eq!(taken.status(), 202);
            let done = next(&mut events).await;
            assert!(text(&done).contains("ann"), "{done}");
        }
    }
}

#[tokio::test]
async fn the_cancel_of_a_call_cancels_the_servers_task() {
    for era in ["legacy", "modern"] {
        let (setting, behind) = both(era).await;
        for (at, url) in [&setting.server.mcp, &behind.mcp].into_iter().enumerate() {
            let count = |line: &str| setting.lines().iter().filter(|it| *it == line).count();
            let session = Session::open(url).await;
            let job = session.post(&call(2, "job", json!({ "wait": true })));
            let job = tokio::spawn(job.send());
            let runs = async || count("job") == at + 1;
            until(runs).await;
            let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
            session.post(&cancel).send().await.unwrap();
            let stops = async || count("job cancelled") == at + 1;
            until(stops).await;
            drop(job);
        }
    }
}

#[tokio::test]
async fn a_client_with_tasks_gets_one_of_shoals() {
    for era in ["legacy", "modern"] {
        let setting = Setting::start(era).await;
        let url = &setting.server.mcp;
        // In 2025-11-25, the call becomes a task at once, if the tool's listing allows tasks.
        if era == "legacy" {
            let session = Session::open(url).await;
            let mut job = call(1, "job", json!({}));
            job["params"]["task"] = json!({});
            let created = session.ask(&job).await;
            let id = &created["result"]["task"]["taskId"];
            assert_ne!(*id, "task-1", "{created}");
            let asked = request(2, "tasks/result", json!({ "taskId": id }));
            assert_eq!(text(&session.ask(&asked).await), r#"["done", null]"#);
        }
        // In 2026-07-28, the call becomes a task once it takes long.
        let mut job = modern_call(3, "job", json!({ "wait": true }));
        let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        job["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = tasks.clone();
        let created = response(post_modern(url, &job).send().await.unwrap()).await;
        assert_eq!(created["result"]["resultType"], "task", "{created}");
        let id = created["result"]["taskId"].as_str().unwrap();
        assert!(!id.starts_with("task-"), "{created}");
        // Wait until the server has the job, because the server would run a job that arrives after the cancellation.
        let jobs = if era == "legacy" { 2 } else { 1 };
        until(async || setting.lines().len() == jobs).await;
        let mut cancel = request(4, "tasks/cancel", json!({ "taskId": id, "_meta": meta() }));
        cancel["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = tasks;
        let cancelled = post_modern(url, &cancel).header("mcp-name", id);
        assert_eq!(cancelled.send().await.unwrap().status(), 200);
        setting.recorded("job cancelled").await;
    }
}
