use std::collections::BTreeMap;

use reqwest::Response;
use serde_json::{Value, json};
use shoal_ports::TaskRequest;
use shoal_protocol::task::{InputRequest, TaskEnd, TaskState};
use shoal_protocol::{Method, RawJson};

use crate::gateway::{LIVE, TASK};
use crate::server::{Server, rpc};

const STATUS: &str = "application/json";

async fn send(server: &Server, method: &str, params: Value) -> Response {
    let request = server.legacy(&rpc(method, &params));
    request.send().await.unwrap()
}

async fn ask(server: &Server, method: &str, params: Value) -> Value {
    let answer = send(server, method, params).await;
    assert_eq!(answer.headers()["content-type"], STATUS);
    let text = answer.text().await.unwrap();
    serde_json::from_str(&text).unwrap()
}

fn completed(result: &'static str) -> TaskState {
    TaskState::Ended(TaskEnd::Completed(RawJson::from_static(result)))
}

#[tokio::test]
async fn the_owner_of_a_task_is_asked() {
    let server = Server::start().await;
    let got = ask(&server, "tasks/get", json!({"taskId": TASK})).await;
    assert_eq!(
        (&got["id"], &got["result"]["status"]),
        (&json!(7), &json!("working"))
    );
    assert_eq!(got["result"]["pollInterval"], 500, "{got}");
    let asked = server.gateway.asked.lock().clone();
    assert!(matches!(&asked[..], [(task, TaskRequest::Get)] if task == TASK));
    assert!(server.gateway.delivered.lock().is_empty());
}

#[tokio::test]
async fn a_session_without_tasks_refuses_requests_about_them_itself() {
    let server = Server::start().await;
    *server.gateway.offers_tasks.lock() = None;
    ask(&server, "tasks/get", json!({"taskId": TASK})).await;
    let delivered = server.gateway.delivered.lock().clone();
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0].0, LIVE);
    assert!(server.gateway.asked.lock().is_empty());
}

#[tokio::test]
async fn what_is_left_of_the_list_is_on_one_page() {
    let server = Server::start().await;
    let listed = ask(&server, "tasks/list", json!({})).await;
    let tasks = listed["result"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 1, "{listed}");
    assert_eq!(
        (&tasks[0]["taskId"], &tasks[0]["status"]),
        (&json!(TASK), &json!("working"))
    );
    let next = ask(&server, "tasks/list", json!({"cursor": "2"})).await;
    assert_eq!(next["error"]["code"], -32602, "{next}");
}

#[tokio::test]
async fn what_is_no_task_is_not_found() {
    let server = Server::start().await;
    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        for id in ["gone-task", "live", ""] {
            let answer = ask(&server, method, json!({"taskId": id})).await;
            assert_eq!(answer["error"]["code"], -32602, "{method} {id}: {answer}");
        }
        let answer = ask(&server, method, json!({})).await;
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
    }
    // With tasks turned off, the edge passes the request to the session.
    let off = Server::with(|config| config.tasks.enabled = false).await;
    ask(&off, "tasks/get", json!({"taskId": TASK})).await;
    assert_eq!(off.gateway.delivered.lock()[0].0, LIVE);
}

#[tokio::test]
async fn a_task_is_cancelled_before_that_is_said() {
    let server = Server::start().await;
    let cancelled = async {
        server.gateway.is_watched(1).await;
        let asked = server.gateway.asked.lock().clone();
        assert!(matches!(asked[0].1, TaskRequest::Cancel), "{asked:?}");
        server.gateway.is_now(TaskState::Ended(TaskEnd::Cancelled));
    };
    let cancel = || ask(&server, "tasks/cancel", json!({"taskId": TASK}));
    let (answer, ()) = tokio::join!(cancel(), cancelled);
    assert_eq!(answer["result"]["status"], "cancelled", "{answer}");
    for ended in [TaskState::Ended(TaskEnd::Cancelled), completed("{}")] {
        server.gateway.is_now(ended);
        let late = cancel().await;
        assert_eq!(late["error"]["code"], -32602, "{late}");
    }
}

#[tokio::test]
async fn a_task_that_ends_while_it_is_cancelled_was_not_cancelled() {
    let server = Server::start().await;
    let ends = async {
        server.gateway.is_watched(1).await;
        server.gateway.is_now(asking());
        server.gateway.is_watched(2).await;
        server.gateway.is_now(completed("{}"));
    };
    let cancel = ask(&server, "tasks/cancel", json!({"taskId": TASK}));
    let (answer, ()) = tokio::join!(cancel, ends);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test]
async fn a_result_that_is_there_is_answered_at_once() {
    let server = Server::start().await;
    let gateway = &server.gateway;
    gateway.is_now(completed(r#"{"content":[],"resultType":"complete"}"#));
    let answer = ask(&server, "tasks/result", json!({"taskId": TASK})).await;
    let related = json!({"io.modelcontextprotocol/related-task": {"taskId": TASK}});
    assert_eq!(answer["result"], json!({"content": [], "_meta": related}));
    let error = RawJson::from_static(r#"{"code":-32602,"message":"bad"}"#);
    gateway.is_now(TaskState::Ended(TaskEnd::Failed(error)));
    let answer = ask(&server, "tasks/result", json!({"taskId": TASK})).await;
    assert_eq!(answer["error"], json!({"code": -32602, "message": "bad"}));
}

#[tokio::test]
async fn a_result_is_waited_for_on_a_stream_that_has_the_answer_and_ends() {
    let server = Server::start().await;
    let waiting = send(&server, "tasks/result", json!({"taskId": TASK})).await;
    assert_eq!(waiting.headers()["content-type"], "text/event-stream");
    server.gateway.is_now(completed(r#"{"content":[],"n":1}"#));
    let text = waiting.text().await.unwrap();
    let events: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    let [event] = events[..] else {
        panic!("one event: {text}");
    };
    let answer: Value = serde_json::from_str(event).unwrap();
    assert_eq!(
        (&answer["id"], &answer["result"]["n"]),
        (&json!(7), &json!(1))
    );
    // The event has no id, because the client could not resume from it.
    assert!(!text.contains("id: "), "{text}");
}

fn asking() -> TaskState {
    let asked = |method, params| InputRequest {
        method,
        params: Some(RawJson::from_static(params)),
    };
    TaskState::InputRequired(BTreeMap::from([
        (
            "c.1".to_owned(),
            asked(Method::Elicit, r#"{"message":"?"}"#),
        ),
        ("c.2".to_owned(), asked(Method::CreateMessage, "{}")),
    ]))
}

fn question() -> Value {
    let related = json!({"io.modelcontextprotocol/related-task": {"taskId": TASK}});
    let params = json!({"message": "?", "_meta": related});
    let id = format!("{TASK}/c.1");
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})
}

async fn message(stream: &mut Response) -> Value {
    let mut read = String::new();
    loop {
        let chunk = stream.chunk().await.unwrap().expect("it goes on");
        read.push_str(std::str::from_utf8(&chunk).unwrap());
        let data = read.lines().find_map(|line| line.strip_prefix("data: "));
        if let Some(data) = data.filter(|_| read.ends_with("\n\n")) {
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[tokio::test]
async fn a_client_that_waits_is_asked_once_on_each_connection() {
    let server = Server::start().await;
    server.gateway.is_now(asking());
    let mut first = send(&server, "tasks/result", json!({"taskId": TASK})).await;
    assert_eq!(message(&mut first).await, question());
    drop(first);
    let mut second = send(&server, "tasks/result", json!({"taskId": TASK})).await;
    assert_eq!(message(&mut second).await, question());
    server.gateway.is_watched(1).await;
    let watches = |server: &Server| server.gateway.asked.lock().len();
    for state in [TaskState::Working, asking()] {
        let before = watches(&server);
        server.gateway.is_now(state);
        while watches(&server) == before {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
    server.gateway.is_now(completed(r#"{"content":[]}"#));
    let answer = message(&mut second).await;
    assert_eq!(answer["id"], 7, "{answer}");
    assert_eq!(second.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn an_answer_goes_to_the_owner_of_its_task() {
    let server = Server::start().await;
    let post = async |id: &str| {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept"}});
        let sent = server.legacy(&answer).send().await.unwrap();
        assert_eq!(sent.status(), 202, "{id}");
        let gateway = &server.gateway;
        (
            std::mem::take(&mut *gateway.asked.lock()),
            std::mem::take(&mut *gateway.delivered.lock()),
        )
    };
    let (asked, delivered) = post(&format!("{TASK}/c.1")).await;
    assert!(delivered.is_empty());
    let [
        (
            task,
            TaskRequest::Answer {
                answers,
                awaits_question: true,
            },
        ),
    ] = &asked[..]
    else {
        panic!("{asked:?}");
    };
    assert_eq!((task.as_str(), answers[0].key.as_str()), (TASK, "c.1"));
    post("gone-task/c.1").await;
    for of_session in ["c.1", "live/c.1", "/c.1"] {
        let (asked, delivered) = post(of_session).await;
        assert!(asked.is_empty(), "{of_session}");
        assert_eq!(delivered.len(), 1, "{of_session}");
        assert_eq!(delivered[0].0, LIVE, "{of_session}");
    }
    *server.gateway.offers_tasks.lock() = None;
    let (asked, delivered) = post(&format!("{TASK}/c.1")).await;
    assert!(asked.is_empty() && delivered.is_empty());
}

#[tokio::test]
async fn a_client_has_more_time_while_the_task_asks() {
    let limit = std::time::Duration::from_secs(1);
    let server = Server::with(|config| config.calls.timeout = limit.into()).await;
    server.gateway.is_now(asking());
    let mut waiting = send(&server, "tasks/result", json!({"taskId": TASK})).await;
    assert_eq!(message(&mut waiting).await, question());
    tokio::time::sleep(limit + limit / 2).await;
    server.gateway.is_now(TaskState::Working);
    let answer = message(&mut waiting).await;
    assert_eq!(answer["error"]["code"], 50400, "{answer}");
}

#[tokio::test]
async fn a_client_that_goes_away_is_not_waited_for() {
    let server = Server::with(|config| {
        config.limits.requests = 1;
    })
    .await;
    let waiting = send(&server, "tasks/result", json!({"taskId": TASK})).await;
    let full = send(&server, "tasks/get", json!({"taskId": TASK})).await;
    assert_eq!(full.status(), 503);
    drop(waiting);
    loop {
        let next = send(&server, "tasks/get", json!({"taskId": TASK})).await;
        if next.status() == 200 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn who_waits_is_sent_away_when_the_node_ends() {
    let server = Server::start().await;
    let waiting = send(&server, "tasks/result", json!({"taskId": TASK})).await;
    assert_eq!(waiting.headers()["content-type"], "text/event-stream");
    server.load.end_waits();
    let text = waiting.text().await.unwrap();
    assert!(text.contains("50301"), "{text}");
}

#[tokio::test]
async fn no_wait_is_longer_than_a_call() {
    let limit = std::time::Duration::from_millis(400);
    let server = Server::with(|config| config.calls.timeout = limit.into()).await;
    let waiting = send(&server, "tasks/result", json!({"taskId": TASK})).await;
    let text = waiting.text().await.unwrap();
    assert!(text.contains("50400"), "{text}");
}

#[tokio::test]
async fn the_worker_of_a_task_keeps_its_result() {
    let server = Server::start().await;
    let call = json!({"name": "write", "arguments": {}, "task": {}});
    let made = ask(&server, "tools/call", call).await;
    assert_eq!(made["result"]["task"]["taskId"], TASK, "{made}");
    assert!(server.gateway.bindings.lock()[0].1.is_some());
    assert!(server.dispatcher.acknowledged.lock().is_empty());
}
