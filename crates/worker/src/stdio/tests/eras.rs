//! The opening, and modern servers.

use std::time::{Duration, Instant};

use serde_json::json;
use shoal_ports::BusEvent;
use shoal_protocol::{Method, RawJson};

use super::harness::{Client, Running, fixture, text};
use crate::{Backend, Isolation};

#[tokio::test]
async fn a_modern_server_gets_the_callers_own_metadata() {
    let running = Running::start(fixture("modern.py", &[])).await;
    let catalog = running.catalog_where(|_| true).await;
    assert_eq!(catalog.instructions.as_deref(), Some("Be brief."));
    assert_eq!(
        catalog.server_info.as_ref().unwrap().as_str(),
        r#"{"name": "modern", "version": "1"}"#
    );
    let legacy = Client::askable("legacy");
    let params = text(&running.call(&legacy, "params", json!({ "n": 1 })).await);
    let meta = &params["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "legacy");
    assert!(meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"].is_object());
    assert_eq!(params["arguments"], json!({ "n": 1 }));
}

#[tokio::test]
async fn what_a_modern_server_needs_is_its_result() {
    let running = Running::start(fixture("modern.py", &[])).await;
    let client = Client::modern("m", r#"{"elicitation":{}}"#);
    let shoal_ports::CallOutcome::Result(result) =
        running.call(&client, "confirm", json!({})).await
    else {
        panic!()
    };
    assert!(
        result
            .as_str()
            .starts_with(r#"{"resultType": "input_required""#)
    );
    let call = client.call(json!({
        "name": "confirm", "inputResponses": { "sure": { "action": "accept" } }, "requestState": "opaque",
    }));
    let echoed = text(&running.run(&client, &call).await);
    assert_eq!(
        echoed,
        json!([{ "sure": { "action": "accept" } }, "opaque"])
    );
}

#[tokio::test]
async fn a_modern_server_reports_changes_on_one_stream() {
    let running = Running::start(fixture("modern.py", &[])).await;
    let mut client = Client::modern("m", "{}");
    client.progress_token = Some(RawJson::from_static("7"));
    let mut news = running.0.news();
    for uri in ["test://a", "test://b"] {
        running.0.subscribe(uri).await.unwrap();
    }
    let filters = async || text(&running.call(&client, "filters", json!({})).await);
    let both = json!([{
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["test://a", "test://b"],
    }]);
    while filters().await["open"] != both {}
    running
        .call(&client, "touch", json!({ "uri": "test://b" }))
        .await;
    let BusEvent::ResourceUpdated { uri, params } = news.recv().await.unwrap() else {
        panic!("expected an update");
    };
    assert_eq!(
        (uri.as_str(), params.as_str()),
        ("test://b", r#"{"uri":"test://b"}"#)
    );
    running
        .call(&client, "change", json!({ "tool": "fresh" }))
        .await;
    running
        .catalog_where(|catalog| catalog.generations == [1, 0, 0])
        .await;
    running.call(&client, "progress", json!({})).await;
    assert_eq!(
        client.notes(&Method::Progress),
        [json!({ "progressToken": 7, "progress": 1 })]
    );
}

#[tokio::test]
async fn sessions_of_a_modern_server_share_one_process() {
    let mut config = fixture("modern.py", &[]);
    config.isolation = Isolation::per_session();
    let running = Running::start(config).await;
    let (a, b) = (Client::askable("a"), Client::askable("b"));
    let opened = async |client: &Client| text(&running.call(client, "params", json!({})).await);
    let (a, b) = tokio::join!(opened(&a), opened(&b));
    assert_eq!(a["name"], b["name"]);
}

#[tokio::test]
async fn a_modern_server_that_starts_slowly_is_still_modern() {
    let mut config = fixture("modern.py", &["--slow", "0.5"]);
    config.probe_timeout = Duration::from_millis(50);
    let running = Running::start(config).await;
    assert_eq!(
        running
            .catalog_where(|_| true)
            .await
            .instructions
            .as_deref(),
        Some("Be brief.")
    );
}

#[tokio::test]
async fn a_server_of_unknown_versions_is_reported_and_not_taken_for_legacy() {
    let running =
        Running(crate::StdioBackend::start(fixture("modern.py", &["--only", "2099-01-01"])).into());
    let told = |detail: &String| detail.contains("2099-01-01");
    let state = running
        .state_where(|state| state.detail.as_ref().is_some_and(told))
        .await;
    assert!(state.catalog.is_none());
}

#[tokio::test]
async fn a_legacy_server_that_never_answers_the_probe_is_opened_after_a_moment() {
    let mut config = fixture("legacy.py", &["--silent-discover"]);
    config.probe_timeout = Duration::from_millis(200);
    let began = Instant::now();
    let running = Running::start(config).await;
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert_eq!(
        text(
            &running
                .call(&Client::named("a"), "echo", json!({ "text": "x" }))
                .await
        ),
        "x"
    );
}

#[tokio::test]
async fn a_legacy_server_that_dies_of_the_probe_is_started_again_without() {
    let running = Running::start(fixture("legacy.py", &["--die-on-discover"])).await;
    assert_eq!(
        text(
            &running
                .call(&Client::named("a"), "echo", json!({ "text": "x" }))
                .await
        ),
        "x"
    );
}
