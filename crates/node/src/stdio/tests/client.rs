//! The client of `shoal tools` and `shoal call`: which era it speaks.

use std::sync::Arc;

use serde_json::{Map, json};
use shoal_protocol::Era;

use super::script::{Act, accepted, answered, refused, server};
use crate::stdio::client::Client;
use crate::stdio::exchange::Prompt;

/// The answer to the second request that opens a session.
fn opened() -> Act {
    let headers = &[("mcp-session-id", "first")];
    let result = json!({ "protocolVersion": "2025-11-25" });
    Act::Json(
        200,
        headers,
        json!({ "jsonrpc": "2.0", "id": 2, "result": result }),
    )
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_spoken_to_without_a_session() {
    let server = server([answered(1, json!({})), answered(2, json!({ "tools": [] }))]);
    let mut client = Client::over(server.exchange(), None).await.unwrap();
    let tools = client.request("tools/list", Map::new()).await.unwrap();
    assert_eq!(tools["tools"], json!([]));
    client.finish().await;
    let posted = server.posted();
    assert_eq!(posted.len(), 2);
    for request in posted {
        let version = &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version, "2026-07-28");
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_gets_a_session() {
    let tools = answered(3, json!({ "tools": [] }));
    let server = server([refused(400, -32600), opened(), accepted(), tools]);
    let mut client = Client::over(server.exchange(), None).await.unwrap();
    client.request("tools/list", Map::new()).await.unwrap();
    client.finish().await;
    let methods: Vec<_> = server
        .posted()
        .iter()
        .map(|request| request["method"].clone())
        .collect();
    let expected = [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/list",
    ];
    assert_eq!(methods, expected);
    assert!(server.posted()[3]["params"].get("_meta").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_era_that_is_asked_for_is_the_one_that_is_tried() {
    let modern = server([refused(400, -32600)]);
    let error = Client::over(modern.exchange(), Some(Era::Modern)).await;
    assert_eq!(error.err().unwrap().code, -32600);
    let legacy = server([refused(400, -32600)]);
    let error = Client::over(legacy.exchange(), Some(Era::Legacy)).await;
    assert_eq!(error.err().unwrap().code, -32600);
    assert_eq!(legacy.posted()[0]["method"], "initialize");
    assert_eq!(legacy.posted().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_not_taken_for_a_legacy_one() {
    let server = server(std::iter::repeat_with(|| Act::Refuse).take(100));
    let error = Client::over(server.exchange(), None).await.err().unwrap();
    assert!(error.message.contains("cannot be reached"), "{error}");
    assert!(
        server
            .posted()
            .iter()
            .all(|request| request["method"] == "server/discover")
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_is_not_waited_for_but_one_that_was_is() {
    let absent = server([Act::Refuse, Act::Refuse]);
    let client = Client::over(Arc::new(Prompt::new(absent.exchange())), None).await;
    assert!(client.is_err());
    assert_eq!(absent.posted().len(), 1);

    let discovered = || answered(1, json!({ "supportedVersions": ["2026-07-28"] }));
    let listed = answered(2, json!({ "tools": [] }));
    let there = server([discovered(), Act::Refuse, listed]);
    let client = Client::over(Arc::new(Prompt::new(there.exchange())), None).await;
    let mut client = client.unwrap();
    client.request("tools/list", Map::new()).await.unwrap();
    assert_eq!(there.posted().len(), 3);
}
