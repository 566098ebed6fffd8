//! `subscriptions/listen`.

use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::BusEvent;
use shoal_protocol::RawJson;

use crate::server::Server;
use crate::sse::Events;

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

async fn update(server: &Server, uri: &str, params: Value) {
    let event = BusEvent::ResourceUpdated {
        uri: uri.to_owned(),
        params: RawJson::of(&params),
    };
    server.bus.publish(event).await.unwrap();
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
    update(&server, "file:///other", json!({"uri": "file:///other"})).await;
    let params = json!({"uri": "file:///a", "_meta": {"vendor": 1}});
    update(&server, "file:///a", params).await;
    let told = events.message().await;
    assert_eq!(told["method"], "notifications/resources/updated");
    let expected = json!({"uri": "file:///a", "_meta": {"vendor": 1, SUBSCRIPTION: 7}});
    assert_eq!(told["params"], expected);
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
    // News is read again for whoever comes next.
    let filter = json!({"resourceSubscriptions": ["file:///a"]});
    let (mut events, _) = listen(&server, filter).await;
    update(&server, "file:///a", json!({"uri": "file:///a"})).await;
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
