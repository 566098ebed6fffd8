use reqwest::Response;
use serde_json::{Value, json};
use shoal_ports::{ClusterEvent, SessionId};
use shoal_protocol::{Body, Message, RawJson, RequestId};

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

fn is_now(server: &Server, task: &Value) {
    server.gateway.task.lock().0 = RawJson::of(task);
}

#[tokio::test]
async fn the_session_is_asked_and_then_the_owner_of_the_task() {
    let server = Server::start().await;
    is_now(&server, &json!({"taskId": TASK, "status": "working"}));
    let got = ask(&server, "tasks/get", json!({"taskId": TASK})).await;
    assert_eq!(
        (&got["id"], &got["result"]["status"]),
        (&json!(7), &json!("working"))
    );
    let delivered = server.gateway.delivered.lock().clone();
    let asked: Vec<_> = delivered
        .iter()
        .map(|(session, body)| match body {
            Body::Single(Message::Request(request)) => (session.as_str(), request.method.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(asked, [(LIVE, "tasks/list"), (TASK, "tasks/get")]);
    let Body::Single(Message::Request(request)) = &delivered[1].1 else {
        panic!("it is a request");
    };
    let params = request.params.as_ref().unwrap().as_str();
    assert!(params.contains("2025-11-25"), "{params}");
}

#[tokio::test]
async fn what_is_left_of_the_list_is_on_one_page() {
    let server = Server::start().await;
    is_now(&server, &json!({"taskId": TASK, "status": "working"}));
    let listed = ask(&server, "tasks/list", json!({})).await;
    let task = json!({"taskId": TASK, "status": "working"});
    assert_eq!(listed["result"], json!({"tasks": [task]}));
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
    // The session refuses a request that only modern clients send.
    let off = Server::with(|config| config.tasks.enabled = false).await;
    ask(&off, "tasks/get", json!({"taskId": TASK})).await;
    assert_eq!(off.gateway.delivered.lock()[0].0, LIVE);
}

#[tokio::test]
async fn a_task_is_cancelled_before_that_is_said() {
    let server = Server::start().await;
    is_now(&server, &json!({"taskId": TASK, "status": "working"}));
    let end = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        is_now(&server, &json!({"taskId": TASK, "status": "cancelled"}));
    };
    let (answer, ()) = tokio::join!(ask(&server, "tasks/cancel", json!({"taskId": TASK})), end);
    assert_eq!(answer["result"]["status"], "cancelled", "{answer}");
    is_now(&server, &json!({"taskId": TASK, "status": "completed"}));
    let late = ask(&server, "tasks/cancel", json!({"taskId": TASK})).await;
    assert_eq!(late["error"]["code"], -32602, "{late}");
}

#[tokio::test]
async fn a_result_that_is_there_is_answered_at_once() {
    let server = Server::start().await;
    let result = json!({"content": [], "resultType": "complete"});
    is_now(&server, &json!({"status": "completed", "result": result}));
    let answer = ask(&server, "tasks/result", json!({"taskId": TASK})).await;
    let related = json!({"io.modelcontextprotocol/related-task": {"taskId": TASK}});
    assert_eq!(answer["result"], json!({"content": [], "_meta": related}));
    let error = json!({"code": -32602, "message": "bad"});
    is_now(&server, &json!({"status": "failed", "error": error}));
    let answer = ask(&server, "tasks/result", json!({"taskId": TASK})).await;
    assert_eq!(answer["error"], error);
}

#[tokio::test]
async fn a_result_is_waited_for_on_a_stream_that_has_the_answer_and_ends() {
    let server = Server::start().await;
    is_now(&server, &json!({"status": "working"}));
    let waiting = send(&server, "tasks/result", json!({"taskId": TASK})).await;
    assert_eq!(waiting.headers()["content-type"], "text/event-stream");
    is_now(
        &server,
        &json!({"status": "completed", "result": {"content": [], "n": 1}}),
    );
    let task = SessionId::new(TASK);
    server
        .bus
        .publish(ClusterEvent::TaskChanged { task })
        .await
        .unwrap();
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
    // The client could not resume from the event.
    assert!(!text.contains("id: "), "{text}");
}

/// Its client can answer one of the task's two questions.
fn asking() -> Value {
    let asked = json!({
        "c.1": {"method": "elicitation/create", "params": {"message": "?"}},
        "c.2": {"method": "sampling/createMessage", "params": {}},
    });
    json!({"status": "input_required", "inputRequests": asked})
}

fn question() -> Value {
    let related = json!({"io.modelcontextprotocol/related-task": {"taskId": TASK}});
    let params = json!({"message": "?", "_meta": related});
    let id = format!("{TASK}/c.1");
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})
}

async fn changed(server: &Server) {
    let task = SessionId::new(TASK);
    let changed = ClusterEvent::TaskChanged { task };
    server.bus.publish(changed).await.unwrap();
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
    is_now(&server, &asking());
    let mut first = send(&server, "tasks/result", json!({"taskId": TASK})).await;
    assert_eq!(message(&mut first).await, question());
    drop(first);
    let mut second = send(&server, "tasks/result", json!({"taskId": TASK})).await;
    assert_eq!(message(&mut second).await, question());
    is_now(&server, &json!({"status": "working"}));
    changed(&server).await;
    is_now(&server, &asking());
    changed(&server).await;
    let done = json!({"status": "completed", "result": {"content": []}});
    is_now(&server, &done);
    changed(&server).await;
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
        std::mem::take(&mut *server.gateway.delivered.lock())
    };
    let delivered = post(&format!("{TASK}/c.1")).await;
    let sessions: Vec<_> = delivered.iter().map(|(to, _)| to.as_str()).collect();
    assert_eq!(sessions, [LIVE, TASK]);
    let Body::Single(Message::Response(response)) = &delivered[1].1 else {
        panic!("it is a response");
    };
    assert_eq!(response.id, RequestId::from_string("c.1"));
    post("gone-task/c.1").await;
    for of_session in ["c.1", "live/c.1", "/c.1"] {
        let delivered = post(of_session).await;
        assert_eq!(delivered.len(), 1, "{of_session}");
        assert_eq!(delivered[0].0, LIVE, "{of_session}");
    }
}

#[tokio::test]
async fn a_client_has_more_time_while_the_task_asks() {
    let limit = std::time::Duration::from_secs(1);
    let server = Server::with(|config| config.timing.call_deadline = limit).await;
    is_now(&server, &asking());
    let mut waiting = send(&server, "tasks/result", json!({"taskId": TASK})).await;
    assert_eq!(message(&mut waiting).await, question());
    tokio::time::sleep(limit + limit / 2).await;
    is_now(&server, &json!({"status": "working"}));
    changed(&server).await;
    let answer = message(&mut waiting).await;
    assert_eq!(answer["error"]["code"], 50400, "{answer}");
}

#[tokio::test]
async fn a_client_that_goes_away_is_not_waited_for() {
    let server = Server::with(|config| {
        config.limits.requests = 1;
    })
    .await;
    is_now(&server, &json!({"status": "working"}));
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
    is_now(&server, &json!({"status": "working"}));
    let waiting = send(&server, "tasks/result", json!({"taskId": TASK})).await;
    assert_eq!(waiting.headers()["content-type"], "text/event-stream");
    server.load.end_waits();
    let text = waiting.text().await.unwrap();
    assert!(text.contains("50301"), "{text}");
}

#[tokio::test]
async fn no_wait_is_longer_than_a_call() {
    let limit = std::time::Duration::from_millis(400);
    let server = Server::with(|config| config.timing.call_deadline = limit).await;
    is_now(&server, &json!({"status": "working"}));
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
