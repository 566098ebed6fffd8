use std::sync::atomic::Ordering;
use std::time::Duration;

use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use shoal_ports::{GatewayError, TaskRequest};
use shoal_protocol::Method;
use tokio::task::JoinHandle;

use crate::dispatcher::RunningFake;
use crate::gateway::TASK;
use crate::server::{Server, modern_headers, rpc, with_meta};

pub(crate) fn declared(server: &Server, method: &str, params: Value) -> RequestBuilder {
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let params = with_meta(
        params,
        json!({"io.modelcontextprotocol/clientCapabilities": tasks}),
    );
    server
        .post(rpc(method, &params).to_string())
        .headers(modern_headers(method, &params))
}

async fn json_of(request: RequestBuilder) -> (StatusCode, Value) {
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    let event = text.lines().find_map(|line| line.strip_prefix("data: "));
    (
        status,
        serde_json::from_str(event.unwrap_or(&text)).unwrap(),
    )
}

async fn hurried() -> Server {
    Server::with(|config| config.tasks.after = Duration::from_millis(10).into()).await
}

fn tool(name: &str) -> Value {
    json!({"name": name, "arguments": {}})
}

#[tokio::test]
async fn the_extension_is_offered_unless_it_is_turned_off() {
    for enabled in [true, false] {
        let server = Server::with(|config| config.tasks.enabled = enabled).await;
        let (_, body) = json_of(server.modern("server/discover", json!({}))).await;
        let offered = &body["result"]["capabilities"]["extensions"];
        assert_eq!(
            offered.get("io.modelcontextprotocol/tasks").is_some(),
            enabled
        );
        let get = declared(&server, "tasks/get", json!({"taskId": TASK}));
        let (_, body) = json_of(get).await;
        let unknown = body["error"]["code"] == -32601;
        assert_eq!(unknown, !enabled, "{body}");
    }
}

#[tokio::test]
async fn a_call_that_lasts_is_given_to_a_session_of_its_own() {
    let server = hurried().await;
    let (_, body) = json_of(declared(&server, "tools/call", tool("long-write"))).await;
    assert_eq!(body["result"]["resultType"], "task", "{body}");
    assert_eq!(body["result"]["taskId"], TASK);
    let adopted = server.gateway.adopted.lock().clone();
    let [(task, call)] = &adopted[..] else {
        panic!("once: {adopted:?}");
    };
    assert_eq!((task.as_str(), call.repeated), (TASK, false));
    assert_eq!(call.request.method, Method::ToolsCall);
    let params = call.request.params.as_ref().unwrap().as_str();
    assert!(!params.contains("clientCapabilities"), "{params}");
    let capabilities = call.client.capabilities.as_str();
    assert!(
        capabilities.contains("io.modelcontextprotocol/tasks"),
        "{capabilities}"
    );
    assert_eq!(call.binding.worker.as_str(), "w");
    assert!(server.gateway.delivered.lock().is_empty());
    assert_eq!(server.gateway.opens.load(Ordering::Relaxed), 0);
    assert!(server.dispatcher.cancelled.borrow().is_empty());
}

#[tokio::test]
async fn a_call_that_cannot_become_a_task_goes_on_as_it_was() {
    let server = hurried().await;
    let refusal = GatewayError::Internal("no room".to_owned());
    server.gateway.adopting.lock().push(refusal);
    let call = tokio::spawn(json_of(declared(&server, "tools/call", tool("long-write"))));
    let mut running = server.dispatcher.call().await;
    while server.gateway.adopted.lock().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running.finish(r#"{"resultType":"complete","n":1}"#).await;
    let (_, body) = call.await.unwrap();
    assert_eq!(body["result"]["n"], 1, "{body}");
    assert_eq!(server.gateway.adopted.lock().len(), 1);
    assert!(server.gateway.closed.borrow().is_empty());
}

async fn due(server: &Server) -> (JoinHandle<(StatusCode, Value)>, RunningFake) {
    server.dispatcher.under_way.send_replace(true);
    let request = declared(server, "tools/call", tool("long-write"));
    let call = tokio::spawn(json_of(request));
    let running = server.dispatcher.call().await;
    // Wait until the call is due to become a task and the edge asks where it runs.
    while server.dispatcher.under_way.receiver_count() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (call, running)
}

#[tokio::test]
async fn a_call_becomes_a_task_once_no_answer_is_on_its_way_to_it() {
    let server = hurried().await;
    let (call, _running) = due(&server).await;
    assert!(!call.is_finished() && server.gateway.adopted.lock().is_empty());
    server.dispatcher.under_way.send_replace(false);
    let (_, body) = call.await.unwrap();
    assert_eq!(body["result"]["resultType"], "task", "{body}");
}

#[tokio::test]
async fn a_call_whose_answer_is_on_its_way_ends_as_any_other() {
    let server = hurried().await;
    let (call, mut running) = due(&server).await;
    running.finish(r#"{"resultType":"complete","n":1}"#).await;
    let (_, body) = call.await.unwrap();
    assert_eq!(body["result"]["n"], 1, "{body}");
    while server.dispatcher.under_way.receiver_count() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (call, _running) = due(&server).await;
    call.abort();
    let why = server.dispatcher.was_cancelled().await;
    assert_eq!(why, "the client closed the connection");
    assert!(server.gateway.adopted.lock().is_empty());
}

#[tokio::test]
async fn a_task_that_may_have_the_call_is_asked_again_until_it_answers() {
    let server = hurried().await;
    let lost = GatewayError::Unreachable {
        reason: "its node was lost".to_owned(),
    };
    *server.gateway.adopting.lock() = vec![lost.clone(), lost];
    let call = declared(&server, "tools/call", tool("long-write"));
    let told = call.send().await.unwrap().text().await.unwrap();
    assert!(told.contains(r#""resultType":"task""#), "{told}");
    let adopted = server.gateway.adopted.lock().clone();
    let attempts: Vec<_> = adopted
        .iter()
        .map(|(task, call)| (&**task, call.repeated))
        .collect();
    assert_eq!(attempts, [(TASK, false), (TASK, true), (TASK, true)]);
    let calls: Vec<_> = adopted.iter().map(|(_, call)| call.call).collect();
    assert!(calls.iter().all(|call| *call == calls[0]), "{calls:?}");
    assert!(server.gateway.closed.borrow().is_empty());
}

#[tokio::test]
async fn the_answers_to_questions_go_to_the_owner_of_the_task() {
    let server = hurried().await;
    let answers = json!({"c.1": {"action": "accept"}, "c.2": {}});
    let update = json!({"taskId": TASK, "inputResponses": answers});
    let (_, body) = json_of(declared(&server, "tasks/update", update)).await;
    assert_eq!(body["result"], json!({"resultType": "complete"}), "{body}");
    let (_, body) = json_of(declared(&server, "tasks/cancel", json!({"taskId": TASK}))).await;
    assert_eq!(body["result"], json!({"resultType": "complete"}), "{body}");
    let asked = server.gateway.asked.lock().clone();
    let [
        (_, TaskRequest::Answer { answers, .. }),
        (_, TaskRequest::Cancel),
    ] = &asked[..]
    else {
        panic!("{asked:?}");
    };
    let keys: Vec<_> = answers.iter().map(|answer| answer.key.as_str()).collect();
    assert_eq!(keys, ["c.1", "c.2"]);
    for malformed in [json!({}), json!({"inputResponses": {"c.1": 5}})] {
        let mut update = malformed;
        update["taskId"] = TASK.into();
        let (_, body) = json_of(declared(&server, "tasks/update", update)).await;
        assert_eq!(body["error"]["code"], -32602, "{body}");
    }
    assert_eq!(server.gateway.asked.lock().len(), 2);
}

#[tokio::test]
async fn neither_who_does_not_ask_for_tasks_nor_a_tool_that_forbids_them_gets_one() {
    let server = hurried().await;
    for request in [
        server.modern("tools/call", tool("long-write")),
        declared(&server, "tools/call", tool("never-task")),
    ] {
        let call = tokio::spawn(json_of(request));
        let mut running = server.dispatcher.call().await;
        let adopted = server.gateway.adopted.lock().len();
        let later = tokio::spawn(json_of(declared(&server, "tools/call", tool("long-write"))));
        let _running = server.dispatcher.call().await;
        let (_, body) = later.await.unwrap();
        assert_eq!(body["result"]["resultType"], "task", "{body}");
        assert_eq!(server.gateway.adopted.lock().len(), adopted + 1);
        running.finish(r#"{"resultType":"complete"}"#).await;
        let (_, body) = call.await.unwrap();
        assert_eq!(body["result"]["resultType"], "complete", "{body}");
    }
}

#[tokio::test]
async fn what_needs_tasks_is_refused_to_who_does_not_declare_them() {
    let server = hurried().await;
    let task = || json!({"taskId": TASK});
    for (method, params) in [
        ("tasks/get", task()),
        ("tasks/update", task()),
        ("tasks/cancel", task()),
        ("tools/call", tool("only-task")),
        (
            "subscriptions/listen",
            json!({"notifications": {"taskIds": [TASK]}}),
        ),
    ] {
        let (status, body) = json_of(server.modern(method, params)).await;
        assert_eq!(status, 400, "{method}");
        assert_eq!(body["error"]["code"], -32021, "{method}: {body}");
        let required = &body["error"]["data"]["requiredCapabilities"]["extensions"];
        assert_eq!(*required, json!({"io.modelcontextprotocol/tasks": {}}));
    }
    assert!(server.gateway.asked.lock().is_empty());
}

#[tokio::test]
async fn only_a_tasks_own_id_finds_it() {
    let server = hurried().await;
    let (_, found) = json_of(declared(&server, "tasks/get", json!({"taskId": TASK}))).await;
    assert!(found["result"].is_object(), "{found}");
    for id in ["live", "other-task", "a b-task", ""] {
        let get = declared(&server, "tasks/get", json!({"taskId": id}));
        let (status, body) = json_of(get).await;
        assert_eq!(status, 400, "{id:?}");
        assert_eq!(body["error"]["code"], -32602, "{id:?}: {body}");
    }
    let get = declared(&server, "tasks/get", json!({"taskId": TASK}));
    let (_, body) = json_of(get.header("mcp-name", "other-task")).await;
    assert_eq!(body["error"]["code"], -32020, "{body}");
    let legacy = server
        .post(rpc("ping", &json!({})).to_string())
        .header("mcp-session-id", TASK);
    assert_eq!(legacy.send().await.unwrap().status(), 404);
}
