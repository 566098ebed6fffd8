//! Servers of `interop/odd` over HTTP, whose oddities the official SDKs' clients take.

use serde_json::json;

use super::harness::{Client, TestBackend, error, served, text};
use super::server::started;
use crate::HttpConfig;

const SCRIPT: &str = "../../../../interop/odd/server.py";

/// The outcome of a call of a server with this oddity.
async fn call(oddity: &str, era: &str) -> shoal_ports::CallOutcome {
    let (_server, port) = served(SCRIPT, &["--http"]).await;
    let url = format!("http://127.0.0.1:{port}/run/{oddity}/{era}/mcp");
    let running = TestBackend::of(started(HttpConfig::new(url))).await;
    running.catalog_where(|_| true).await;
    running.call(&Client::named("a"), "tool1", json!({})).await
}

#[tokio::test]
async fn answers_are_read_as_leniently_as_by_the_sdks() {
    for oddity in [
        "compressed-gzip",
        "compressed-deflate",
        "compressed-events",
        "compressed-identity",
        "events-upper-case",
    ] {
        for era in ["legacy", "modern"] {
            assert_eq!(text(&call(oddity, era).await)["name"], "tool1", "{oddity}");
        }
    }
    for oddity in ["get-bad", "session-long", "unknown-is-page"] {
        let outcome = call(oddity, "legacy").await;
        assert_eq!(text(&outcome)["name"], "tool1", "{oddity}");
    }
}

#[tokio::test]
async fn what_an_answer_unpacks_to_has_a_limit_in_bytes() {
    let told = error(call("compressed-bomb", "legacy").await).message;
    assert!(told.contains("larger than a message may be"), "{told}");
}
