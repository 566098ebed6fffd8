use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::ResourceUpdated;
use shoal_protocol::task::{InputRequest, TaskEnd, TaskState};
use shoal_protocol::{Method, RawJson};

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
    let server =
        Server::with(|config| config.streams.keep_alive = Duration::from_millis(20).into()).await;
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

#[tokio::test]
async fn only_tasks_that_the_caller_may_ask_for_are_told_of() {
    let server = Server::start().await;
    let ids = ["others-task", TASK, "live", "", TASK];
    let (mut events, honoured) = listen_to_tasks(&server, &ids).await;
    assert_eq!(honoured, json!({"taskIds": [TASK]}));
    let told = events.message().await;
    assert_eq!(told["method"], "notifications/tasks");
    let params = &told["params"];
    assert_eq!(
        (&params["taskId"], &params["status"]),
        (&json!(TASK), &json!("working"))
    );
    assert_eq!(params["_meta"], json!({SUBSCRIPTION: 7}));
    assert!(params.get("resultType").is_none(), "{told}");

    let server = Server::with(|config| config.tasks.enabled = false).await;
    let (_events, honoured) = listen_to_tasks(&server, &[TASK]).await;
    assert_eq!(honoured, json!({}));
}

#[tokio::test]
async fn a_task_whose_owner_cannot_be_asked_keeps_no_other_from_its_listener() {
    let server = Server::start().await;
    let (mut events, honoured) = listen_to_tasks(&server, &["away-task", TASK]).await;
    assert_eq!(honoured, json!({"taskIds": ["away-task", TASK]}));
    assert_eq!(events.message().await["params"]["taskId"], TASK);
}

#[tokio::test]
async fn a_task_is_told_of_when_its_status_is_another_and_never_after_its_end() {
    let server = Server::start().await;
    let (mut events, _) = listen_to_tasks(&server, &[TASK]).await;
    assert_eq!(events.message().await["params"]["status"], "working");

    let gateway = &server.gateway;
    gateway.is_watched(1).await;
    gateway.task.send_modify(|task| task.ttl_ms = 7);
    let question = InputRequest {
        method: Method::RootsList,
        params: None,
    };
    let mut questions = BTreeMap::new();
    let mut told_of = json!({});
    for key in ["k", "l"] {
        questions.insert(key.to_owned(), question.clone());
        told_of[key] = json!({"method": "roots/list"});
        gateway.is_now(TaskState::InputRequired(questions.clone()));
        let told = events.message().await;
        assert_eq!(told["params"]["status"], "input_required");
        assert_eq!(told["params"]["inputRequests"], told_of);
    }

    let result = RawJson::from_static(r#"{"content":[]}"#);
    gateway.is_now(TaskState::Ended(TaskEnd::Completed(result)));
    let told = events.message().await;
    let result = json!({"content": [], "resultType": "complete"});
    assert_eq!(told["params"]["result"], result);

    let asked = gateway.asked.lock().len();
    gateway.is_now(TaskState::Working);
    server.drain.cancel();
    let last = events.message().await;
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
    assert_eq!(
        gateway.asked.lock().len(),
        asked,
        "a task that has ended is not watched"
    );
}

#[tokio::test]
async fn a_listener_that_goes_away_waits_no_longer() {
    let server = Server::start().await;
    let (mut events, _) = listen_to_tasks(&server, &[TASK]).await;
    events.message().await;
    server.gateway.is_watched(1).await;
    assert_eq!(server.gateway.task.receiver_count(), 1);
    drop(events);
    while server.gateway.task.receiver_count() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
