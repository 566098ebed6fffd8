use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::{ClusterEvent, ResourceUpdated, SessionId};
use shoal_protocol::RawJson;
use tokio::time::timeout;

use crate::dispatcher::{UPDATES, just_started};
use crate::gateway::TASK;
use crate::server::Server;
use crate::sse::Events;
use crate::tasks::declared;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

async fn listen(server: &Server, filter: Value) -> (Events, Value) {
    let request = server.modern("subscriptions/listen", json!({"notifications": filter}));
    let mut events = Events::of(request.send().await.unwrap());
    let first = events.message().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["_meta"][SUBSCRIPTION], 7);
    let honoured = first["params"]["notifications"].clone();
    (events, honoured)
}

fn update(server: &Server, uri: &str, params: Value) {
    let update = ResourceUpdated {
        uri: uri.to_owned(),
        params: RawJson::of(&params),
    };
    server.dispatcher.updates.send(update).unwrap();
}

#[tokio::test]
async fn only_what_can_be_honoured_is_acknowledged() {
    let server = Server::start().await;
    let filter = json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourceSubscriptions": ["file:///a", "unknown:b"],
    });
    let (_events, honoured) = listen(&server, filter).await;
    let expected = json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]});
    assert_eq!(honoured, expected);
}

#[tokio::test]
async fn a_list_that_may_come_yet_is_told_of_once_it_is_there() {
    let server = Server::start().await;
    *server.dispatcher.lacks.lock() = Some(just_started());
    let filter = json!({"promptsListChanged": true, "resourceSubscriptions": ["file:///a"]});
    let (mut events, honoured) = listen(&server, filter.clone()).await;
    assert_eq!(honoured, filter);
    server.dispatcher.change([1, 1, 2]);
    let told = events.message().await;
    assert_eq!(told["method"], "notifications/prompts/list_changed");
}

#[tokio::test]
async fn list_changes_reach_those_who_asked() {
    let server = Server::start().await;
    let (mut tools, _) = listen(&server, json!({"toolsListChanged": true})).await;
    let (mut resources, _) = listen(&server, json!({"resourcesListChanged": true})).await;
    server.dispatcher.change([2, 1, 2]);
    let told = tools.message().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"][SUBSCRIPTION], 7);
    server.dispatcher.change([2, 2, 2]);
    let told = resources.message().await;
    assert_eq!(told["method"], "notifications/resources/list_changed");
}

#[tokio::test]
async fn resource_updates_keep_their_parameters() {
    let server = Server::start().await;
    let filter = json!({"resourceSubscriptions": ["file:///a"]});
    let (mut events, _) = listen(&server, filter).await;
    update(&server, "file:///other", json!({"uri": "file:///other"}));
    let params = json!({"uri": "file:///a", "_meta": {"vendor": 1}});
    update(&server, "file:///a", params);
    let told = events.message().await;
    assert_eq!(told["method"], "notifications/resources/updated");
    let expected = json!({"uri": "file:///a", "_meta": {"vendor": 1, SUBSCRIPTION: 7}});
    assert_eq!(told["params"], expected);
}

#[tokio::test]
async fn a_resource_whose_update_may_have_been_missed_is_told_of() {
    let server = Server::start().await;
    let filter = json!({"resourceSubscriptions": ["file:///a"]});
    let (mut events, _) = listen(&server, filter).await;
    for _ in 0..=UPDATES {
        update(&server, "file:///other", json!({"uri": "file:///other"}));
    }
    assert_eq!(events.message().await["params"]["uri"], "file:///a");
}

#[tokio::test]
async fn subscriptions_end_with_the_stream() {
    let server = Server::start().await;
    let filter = json!({"resourceSubscriptions": ["file:///a", "file:///b"]});
    let (first, _) = listen(&server, filter.clone()).await;
    let (second, _) = listen(&server, filter).await;
    server
        .dispatcher
        .subscribed_to(&["file:///a", "file:///b"])
        .await;
    assert_eq!(server.load.open_streams(), 2);
    assert_eq!(server.load.requests_in_flight(), 0);
    drop((first, second));
    server.dispatcher.subscribed_to(&[]).await;
    while server.load.open_streams() > 0 {
        tokio::task::yield_now().await;
    }
    let filter = json!({"resourceSubscriptions": ["file:///a"]});
    let (mut events, _) = listen(&server, filter).await;
    update(&server, "file:///a", json!({"uri": "file:///a"}));
    assert_eq!(events.message().await["params"]["uri"], "file:///a");
}

#[tokio::test]
async fn a_drain_ends_the_stream_with_its_result() {
    let server = Server::start().await;
    let (mut events, _) = listen(&server, json!({"toolsListChanged": true})).await;
    server.drain.cancel();
    let last = events.message().await;
    assert_eq!(last["id"], 7);
    assert_eq!(last["result"]["resultType"], "complete");
    assert_eq!(last["result"]["_meta"][SUBSCRIPTION], 7);
    assert_eq!(events.block().await, None);
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive() {
    let server = Server::with(|config| config.timing.keep_alive = Duration::from_millis(20)).await;
    let (mut events, _) = listen(&server, json!({})).await;
    assert_eq!(events.block().await.unwrap(), ":");
}

async fn listen_to_tasks(server: &Server, ids: &[&str]) -> (Events, Value) {
    let params = json!({"notifications": {"taskIds": ids}});
    let request = declared(server, "subscriptions/listen", params);
    let mut events = Events::of(request.send().await.unwrap());
    let first = events.message().await;
    (events, first["params"]["notifications"].clone())
}

fn task_is(server: &Server, task: &Value) {
    server.gateway.task.lock().0 = RawJson::of(task);
}

async fn task_changed(server: &Server) {
    changed(server, TASK).await;
}

async fn changed(server: &Server, task: &str) {
    let task = SessionId::new(task);
    let event = ClusterEvent::TaskChanged { task };
    server.bus.publish(event).await.unwrap();
}

#[tokio::test]
async fn a_task_whose_change_may_have_been_missed_is_told_of_at_once() {
    let server = Server::start().await;
    task_is(&server, &json!({"taskId": TASK, "status": "working"}));
    let (mut events, _) = listen_to_tasks(&server, &[TASK]).await;
    assert_eq!(events.message().await["params"]["status"], "working");
    task_is(&server, &json!({"taskId": TASK, "status": "cancelled"}));
    for _ in 0..2000 {
        changed(&server, "another").await;
    }
    let told = timeout(Duration::from_secs(5), events.message());
    let told = told
        .await
        .expect("sooner than the task is asked for anyway");
    assert_eq!(told["params"]["status"], "cancelled");
}

#[tokio::test]
async fn only_tasks_that_the_caller_may_ask_for_are_told_of() {
    let server = Server::start().await;
    task_is(&server, &json!({"taskId": TASK, "status": "working"}));
    let ids = ["others-task", TASK, "live", "", TASK];
    let (mut events, honoured) = listen_to_tasks(&server, &ids).await;
    assert_eq!(honoured, json!({"taskIds": [TASK]}));
    let told = events.message().await;
    assert_eq!(told["method"], "notifications/tasks");
    let expected = json!({"taskId": TASK, "status": "working", "_meta": {SUBSCRIPTION: 7}});
    assert_eq!(told["params"], expected);

    let server = Server::with(|config| config.tasks.enabled = false).await;
    let (_events, honoured) = listen_to_tasks(&server, &[TASK]).await;
    assert_eq!(honoured, json!({}));
}

#[tokio::test]
async fn a_task_is_told_of_when_its_status_is_another_and_never_after_its_end() {
    let server = Server::start().await;
    task_is(&server, &json!({"status": "working"}));
    let (mut events, _) = listen_to_tasks(&server, &[TASK]).await;
    assert_eq!(events.message().await["params"]["status"], "working");

    let asked = server.gateway.task.lock().1;
    task_is(&server, &json!({"status": "working", "ttlMs": 7}));
    task_changed(&server).await;
    while server.gateway.task.lock().1 == asked {
        tokio::task::yield_now().await;
    }
    let question = json!({"k": {"method": "roots/list"}});
    task_is(
        &server,
        &json!({"status": "input_required", "inputRequests": question}),
    );
    task_changed(&server).await;
    let told = events.message().await;
    assert_eq!(told["params"]["inputRequests"], question);
    let questions = json!({"k": {"method": "roots/list"}, "l": {"method": "roots/list"}});
    task_is(
        &server,
        &json!({"status": "input_required", "inputRequests": questions}),
    );
    task_changed(&server).await;
    let told = events.message().await;
    assert_eq!(told["params"]["inputRequests"], questions);

    let result = json!({"content": []});
    task_is(
        &server,
        &json!({"status": "completed", "resultType": "complete", "result": result}),
    );
    task_changed(&server).await;
    let told = events.message().await;
    assert_eq!(told["params"]["result"], result);
    assert!(told["params"].get("resultType").is_none(), "{told}");

    // The former owner does not know yet that it lost the task.
    task_is(&server, &json!({"status": "working"}));
    task_changed(&server).await;
    let tools = json!({"notifications": {"taskIds": [TASK]}});
    drop(
        declared(&server, "subscriptions/listen", tools)
            .send()
            .await
            .unwrap(),
    );
    server.drain.cancel();
    let last = events.message().await;
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
}
