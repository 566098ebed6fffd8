use serde_json::json;
use shoal_auth::{StaticTokens, TokenHash};
use shoal_ports::Principal;
use std::sync::Arc;

use super::PING;
use super::client::{Client, server};
use super::upgrading;

#[tokio::test]
async fn a_connection_counts_as_a_stream_until_it_ends() {
    let server = server(|config| config.limits.streams = 1).await;
    let client = Client::opened(&server, &["mcp"]).await;
    assert_eq!(server.load.open_streams(), 1);
    assert_eq!(server.load.open_websockets(), 1);
    let refused = Client::connect_with(&server, &["mcp"], &[]).await;
    assert_eq!(refused.err().unwrap().0, 503);
    client.close().await;
    while server.load.open_streams() > 0 {
        tokio::task::yield_now().await;
    }
    Client::connect(&server, &["mcp"]).await;
}

#[tokio::test]
async fn one_principal_cannot_have_every_connection() {
    let token = |name: &str| (TokenHash::of(name), Principal::new(name));
    let tokens = Arc::new(StaticTokens::new([token("alice"), token("bob")]));
    let server = upgrading::start_with(tokens, |config| {
        config.endpoint.websocket = true;
        config.limits.streams_per_principal = 1;
    })
    .await;
    let _first = Client::connect(&server, &["mcp", "mcp.auth.alice"]).await;
    let second = Client::connect_with(&server, &["mcp", "mcp.auth.alice"], &[]).await;
    assert_eq!(second.err().unwrap().0, 429);
    Client::connect(&server, &["mcp", "mcp.auth.bob"]).await;
}

#[tokio::test]
async fn a_message_too_many_is_refused_by_its_id() {
    let server = server(|config| config.limits.requests = 0).await;
    let mut client = Client::connect(&server, &["mcp"]).await;
    let refused = client.ask(PING).await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(7), &json!(50300))
    );
}
