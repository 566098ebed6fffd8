//! Servers of `interop/odd`, with oddities that the official SDKs' clients accept.

use serde_json::json;
use tokio::process::Child;

use super::harness::{Client, TestBackend, error, served, text};
use super::server::started;
use crate::HttpConfig;

const SCRIPT: &str = "../../../../interop/odd/over_http.py";

async fn odd(oddity: &str, era: &str) -> (Child, TestBackend) {
    let (server, port) = served(SCRIPT, &[]).await;
    let url = format!("http://127.0.0.1:{port}/run/{oddity}/{era}/mcp");
    (server, TestBackend::of(started(HttpConfig::new(url))).await)
}

async fn call(oddity: &str, era: &str) -> shoal_ports::CallOutcome {
    let (_server, running) = odd(oddity, era).await;
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

#[tokio::test]
async fn roots_that_a_list_asks_for_are_none() {
    let (_server, running) = odd("roots-for-all-lists", "legacy").await;
    let catalog = running.catalog_where(|_| true).await;
    let lists = [&catalog.tools, &catalog.resources, &catalog.prompts].map(|list| list.len());
    assert_eq!(lists, [8, 1, 1]);
    assert_eq!(running.0.state().borrow().detail, None);
}

#[tokio::test]
async fn an_error_that_names_no_request_is_the_answer_that_it_is_alone() {
    let told = error(call("refused-ok", "legacy").await).message;
    assert_eq!(told, "the cat sat on it");
}
