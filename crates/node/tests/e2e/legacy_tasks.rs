use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{
    Events, Session, call, initialize, modern, post, post_modern, request, response, text,
};
use crate::command::output;
use crate::process::{SOON, Server};

/// Longer than any test.
const ENDLESS: u32 = 600;

fn task_call(id: u64, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "task": { "ttl": 60_000 } });
    request(id, "tools/call", params)
}

fn job(id: u64, steps: u32, interval_ms: u32) -> Value {
    let arguments = json!({ "steps": steps, "interval_ms": interval_ms });
    task_call(id, "long_job", arguments)
}

async fn begin(session: &Session, call: &Value) -> String {
    let answer = session.ask(call).await;
    let task = &answer["result"]["task"];
    assert_eq!(task["status"], "working", "{answer}");
    assert!(
        task["ttl"].is_u64() && task["pollInterval"].is_u64(),
        "{answer}"
    );
    task["taskId"].as_str().unwrap().to_owned()
}

async fn about(session: &Session, method: &str, task: &str) -> Value {
    session
        .ask(&request(9, method, json!({ "taskId": task })))
        .await
}

#[tokio::test]
async fn tasks_are_declared_to_clients_whose_revision_has_them() {
    let declared = async |server: &Server, version| {
        let opened = post(&server.mcp, &initialize(0, version)).send().await;
        let greeting = response(opened.unwrap()).await;
        greeting["result"]["capabilities"].get("tasks").cloned()
    };
    let server = Server::start(&["--demo"]).await;
    let tasks = json!({"list":{},"cancel":{},"requests":{"tools":{"call":{}}}});
    assert_eq!(declared(&server, "2025-11-25").await, Some(tasks));
    assert_eq!(declared(&server, "2025-06-18").await, None);

    let off = [("SHOAL_TASKS__ENABLED", "false")];
    let off = Server::start_with(&["--demo"], &off).await;
    assert_eq!(declared(&off, "2025-11-25").await, None);
    let session = Session::open(&off.mcp).await;
    let plain = session.ask(&job(1, 2, 1)).await;
    assert_eq!(text(&plain), "done after 2 steps");
    let unknown = session.ask(&request(2, "tasks/list", json!({}))).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
}

#[tokio::test]
async fn a_task_is_made_looked_at_and_answers_as_its_call_would_have() {
    let server = Server::start(&["--demo"]).await;
    let session = Session::open(&server.mcp).await;
    let task = begin(&session, &job(1, 4, 300)).await;
    let now = about(&session, "tasks/get", &task).await["result"].clone();
    assert_eq!(
        (&now["taskId"], &now["status"]),
        (&json!(task), &json!("working"))
    );
    let done = about(&session, "tasks/result", &task).await;
    assert_eq!(text(&done), "done after 4 steps");
    let related = &done["result"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(*related, json!({ "taskId": task }));
    assert_eq!(done["result"].get("resultType"), None);
    let now = about(&session, "tasks/get", &task).await["result"].clone();
    assert_eq!(
        (&now["status"], now.get("result")),
        (&json!("completed"), None)
    );
    assert_eq!(
        about(&session, "tasks/result", &task).await["result"],
        done["result"]
    );

    let other = begin(&session, &job(2, 1, 1)).await;
    let listed = session.ask(&request(3, "tasks/list", json!({}))).await;
    let listed = listed["result"]["tasks"].as_array().unwrap().clone();
    let ids: Vec<_> = listed
        .iter()
        .map(|task| task["taskId"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [&other, &task]);
    assert_eq!(listed[1], now);
    // The task belongs to the principal, so another session finds it by its id, but does not list it.
    let another = Session::open(&server.mcp).await;
    let none = another.ask(&request(3, "tasks/list", json!({}))).await;
    assert_eq!(none["result"], json!({ "tasks": [] }));
    assert_eq!(about(&another, "tasks/get", &task).await["result"], now);
}

#[tokio::test]
async fn a_task_reads_the_same_in_the_other_era() {
    let server = Server::start(&["--demo"]).await;
    let session = Session::open(&server.mcp).await;
    let task = begin(&session, &job(1, 2, 10)).await;
    let done = about(&session, "tasks/result", &task).await;
    let mut get = modern(2, "tasks/get", json!({ "taskId": task }));
    let extensions = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    get["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = extensions;
    let asked = post_modern(&server.mcp, &get).header("mcp-name", &task);
    let read = response(asked.send().await.unwrap()).await;
    assert_eq!(read["result"]["status"], "completed", "{read}");
    assert_eq!(
        read["result"]["result"]["content"],
        done["result"]["content"]
    );
}

#[tokio::test]
async fn a_cancelled_task_says_so_and_is_cancelled_once() {
    let server = Server::start(&["--demo"]).await;
    let session = Session::open(&server.mcp).await;
    let task = begin(&session, &job(1, ENDLESS, 1000)).await;
    let cancelled = about(&session, "tasks/cancel", &task).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    server.wait_for_calls(0).await;
    let again = about(&session, "tasks/cancel", &task).await;
    assert_eq!(again["error"]["code"], -32602, "{again}");
    let result = about(&session, "tasks/result", &task).await;
    assert_eq!(result["error"]["code"], -32800, "{result}");
}

#[tokio::test]
async fn a_tool_that_fails_has_a_task_that_failed_and_its_own_words() {
    let server = Server::start(&["--demo"]).await;
    let session = Session::open(&server.mcp).await;
    let invalid = session.ask(&job(1, 0, 1)).await;
    assert_eq!(invalid["result"].get("task"), None, "{invalid}");

    let server = Server::start(&["--conformance"]).await;
    let session = Session::open(&server.mcp).await;
    let task = begin(&session, &task_call(1, "failing_job", json!({}))).await;
    let failed = about(&session, "tasks/result", &task).await;
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    assert_eq!(text(&failed), "The job failed.");
    let now = about(&session, "tasks/get", &task).await;
    assert_eq!(now["result"]["status"], "failed", "{now}");
    let message = now["result"]["statusMessage"].as_str().unwrap();
    assert!(message.contains("The job failed."), "{message}");
}

#[tokio::test]
async fn what_a_tool_says_of_tasks_is_listed_and_holds() {
    let server = Server::start(&["--demo", "--conformance"]).await;
    let session = Session::open(&server.mcp).await;
    let listed = session.ask(&request(1, "tools/list", json!({}))).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let support = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["execution"]["taskSupport"].clone()
    };
    assert_eq!(support("long_job"), "optional");
    assert_eq!(support("failing_job"), "required");
    assert_eq!(support("echo"), Value::Null);

    let forbidden = task_call(2, "echo", json!({ "text": "a" }));
    let forbidden = session.ask(&forbidden).await;
    assert_eq!(forbidden["error"]["code"], -32601, "{forbidden}");
    let required = session.ask(&call(3, "failing_job", json!({}))).await;
    assert_eq!(required["error"]["code"], -32601, "{required}");
    let unknown = session.ask(&task_call(4, "no_such_tool", json!({}))).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let mut malformed = job(5, 1, 1);
    malformed["params"]["task"] = json!(true);
    let malformed = session.ask(&malformed).await;
    assert_eq!(malformed["error"]["code"], -32602, "{malformed}");
    let none = session.ask(&request(6, "tasks/list", json!({}))).await;
    assert_eq!(none["result"], json!({ "tasks": [] }));
}

#[tokio::test]
async fn nobody_finds_a_task_that_is_unknown_or_anothers() {
    let hash = async |token: &str| {
        let hashed = output(&["config", "hash-token"], token).await;
        hashed.stdout.trim().to_owned()
    };
    let (alice, bob) = (hash("alice's token").await, hash("bob's token").await);
    let tokens =
        format!("[{{ name = 'alice', sha256 = '{alice}' }}, {{ name = 'bob', sha256 = '{bob}' }}]");
    let environment = [
        ("SHOAL_AUTH__MODE", "tokens"),
        ("SHOAL_AUTH__TOKENS", tokens.as_str()),
    ];
    let server = Server::start_with(&["--demo"], &environment).await;
    let alice = Session::open_as(&server.mcp, Some("alice's token")).await;
    let bob = Session::open_as(&server.mcp, Some("bob's token")).await;
    let task = begin(&alice, &job(1, ENDLESS, 1000)).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for id in [task.as_str(), "nothing"] {
            let refused = about(&bob, method, id).await;
            assert_eq!(refused["error"]["code"], -32602, "{method} {id}: {refused}");
        }
        let refused = about(&alice, method, &alice.id).await;
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
    let working = about(&alice, "tasks/get", &task).await;
    assert_eq!(working["result"]["status"], "working", "{working}");
    let cancelled = about(&alice, "tasks/cancel", &task).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
}

#[tokio::test]
async fn rules_hold_for_a_task_as_for_any_call() {
    let rules = "[{ name = 'all', effect = 'allow' }, { name = 'ask', effect = 'ask', tools = ['long_job'] }, \
        { name = 'never', effect = 'deny', tools = ['echo'] }]";
    let server = Server::start_with(&["--demo"], &[("SHOAL_POLICY__RULES", rules)]).await;
    let session = Session::open(&server.mcp).await;
    // A hidden tool's answer does not mention tasks.
    let denied = task_call(1, "echo", json!({ "text": "a" }));
    let denied = session.ask(&denied).await;
    assert_eq!(denied["error"]["code"], -32602, "{denied}");
    let task = begin(&session, &job(2, 1, 1)).await;
    let refused = about(&session, "tasks/result", &task).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    let session = Session::open_with(&server.mcp, json!({ "elicitation": {} })).await;
    for (action, said) in [
        ("accept", "done after 1 steps"),
        (
            "decline",
            "The person who was asked declined this call. The tool was not run.",
        ),
    ] {
        let task = begin(&session, &job(3, 1, 1)).await;
        let mut asked = wait(&session, &task).await;
        let question = asked.message().await;
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.starts_with("Allow one call of the tool long_job"));
        answer(&session, &question, json!({ "action": action })).await;
        assert_eq!(text(&asked.message().await), said);
    }
}

async fn wait(session: &Session, task: &str) -> Events {
    let request = request(9, "tasks/result", json!({ "taskId": task }));
    Events::of(session.post(&request).send().await.unwrap())
}

async fn answer(session: &Session, question: &Value, result: Value) {
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    let answered = session.post(&answer).send().await.unwrap();
    assert_eq!(answered.status(), 202);
}

async fn until(session: &Session, task: &str, status: &str) {
    let reached = async {
        while about(session, "tasks/get", task).await["result"]["status"] != status {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, reached).await.unwrap();
}

#[tokio::test]
async fn a_tool_asks_on_the_stream_that_waits_for_its_result() {
    let server = Server::start(&["--conformance"]).await;
    let session = Session::open_with(&server.mcp, json!({ "elicitation": {} })).await;
    let call = task_call(1, "confirm_delete", json!({ "filename": "a.txt" }));
    let task = begin(&session, &call).await;
    until(&session, &task, "input_required").await;
    let mut broken = wait(&session, &task).await;
    let question = broken.message().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert_eq!(question["params"]["message"], "Delete a.txt?");
    let related = &question["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(*related, json!({ "taskId": task }));
    drop(broken);
    let mut asked = wait(&session, &task).await;
    assert_eq!(asked.message().await, question);
    // Shoal asks only a client that declared elicitation, even about its own task.
    let other = Session::open(&server.mcp).await;
    let mut unasked = wait(&other, &task).await;
    let confirm = json!({ "action": "accept", "content": { "confirm": true } });
    answer(&session, &question, confirm).await;
    let done = asked.message().await;
    assert_eq!((&done["id"], text(&done)), (&json!(9), "Deleted a.txt."));
    assert!(asked.next().await.is_none());
    let done = unasked.message().await;
    assert_eq!(text(&done), "Deleted a.txt.", "{done}");
    let now = about(&session, "tasks/get", &task).await;
    assert_eq!(now["result"]["status"], "completed", "{now}");
}

#[tokio::test]
async fn questions_are_answered_one_by_one_and_may_be_answered_with_an_error() {
    let server = Server::start(&["--conformance"]).await;
    let session = Session::open_with(&server.mcp, json!({ "elicitation": {} })).await;
    let task = begin(&session, &task_call(1, "multi_input", json!({}))).await;
    let mut asked = wait(&session, &task).await;
    let (first, second) = (asked.message().await, asked.message().await);
    assert_ne!(first["id"], second["id"]);
    let given = json!({ "action": "accept", "content": { "name": "a", "confirm": true } });
    answer(&session, &second, given).await;
    let now = about(&session, "tasks/get", &task).await;
    assert_eq!(now["result"]["status"], "input_required", "{now}");
    let cannot = json!({ "code": -1, "message": "no screen" });
    let error = json!({ "jsonrpc": "2.0", "id": first["id"], "error": cannot });
    assert_eq!(session.post(&error).send().await.unwrap().status(), 202);
    let failed = asked.message().await;
    assert!(failed.to_string().contains("no screen"), "{failed}");
}

#[tokio::test]
async fn a_backend_that_is_called_again_with_the_answers_asks_as_well() {
    let server = Server::start(&["--demo", "--conformance"]).await;
    let session = Session::open_with(&server.mcp, json!({ "elicitation": {} })).await;
    let booking = json!({ "guests": 2, "date": "2026-12-24" });
    let table = json!({ "restaurant": "Seaside" });
    for (tool, arguments, content, said) in [
        ("book_table", table, booking, "booked Seaside"),
        (
            "test_tool_with_task",
            json!({}),
            json!({ "name": "Ada" }),
            "Ada",
        ),
    ] {
        let task = begin(&session, &task_call(1, tool, arguments)).await;
        let mut asked = wait(&session, &task).await;
        let question = asked.message().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        answer(
            &session,
            &question,
            json!({ "action": "accept", "content": content }),
        )
        .await;
        let done = asked.message().await;
        assert!(text(&done).contains(said), "{done}");
    }
    let unable = Session::open(&server.mcp).await;
    let table = json!({ "restaurant": "Seaside" });
    let task = begin(&unable, &task_call(2, "book_table", table)).await;
    let refused = about(&unable, "tasks/result", &task).await;
    assert!(refused.to_string().contains("elicitation"), "{refused}");
}
