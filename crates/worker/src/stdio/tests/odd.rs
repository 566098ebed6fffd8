//! Servers of `interop/odd`, with oddities that the official SDKs' clients accept.

use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::{CallFailure, CallOutcome, PoolCatalog};

use super::harness::{Client, TestBackend, error, failure, fixture, text};
use crate::{Isolation, StdioConfig};

fn odd(oddity: &str) -> StdioConfig {
    let mut config = fixture("legacy.py", &[]);
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../../interop/odd/server.py");
    config.args = ["-B", server, oddity, "legacy"].map(str::to_owned).to_vec();
    config
}

fn counts(catalog: &PoolCatalog) -> [usize; 4] {
    let PoolCatalog {
        tools,
        resources,
        resource_templates,
        prompts,
        ..
    } = catalog;
    [tools, resources, resource_templates, prompts].map(Vec::len)
}

#[tokio::test]
async fn a_list_that_cannot_be_read_takes_away_itself_alone() {
    for (oddity, list, expected) in [
        ("resources-error", "resources/list", [8, 0, 1, 1]),
        ("templates-error", "resources/templates/list", [8, 1, 0, 1]),
        ("prompts-error", "prompts/list", [8, 1, 1, 0]),
        ("prompts-array", "prompts/list", [8, 1, 1, 0]),
        ("tools-error", "tools/list", [0, 1, 1, 1]),
    ] {
        let running = TestBackend::start(odd(oddity)).await;
        let state = running.state_where(|state| state.catalog.is_some()).await;
        assert_eq!(counts(&state.catalog.unwrap()), expected, "{oddity}");
        let told = state.detail.expect(oddity);
        assert!(
            told.starts_with(&format!("{list} could not be read: ")),
            "{told}"
        );
        let outcome = running.call(&Client::named("a"), "tool1", json!({})).await;
        assert_eq!(text(&outcome)["name"], "tool1", "{oddity}");
    }
}

#[tokio::test]
async fn a_list_comes_back_by_itself() {
    let running = TestBackend::start(odd("prompts-error-at-first")).await;
    let state = running.state_where(|state| state.detail.is_some()).await;
    assert_eq!(counts(&state.catalog.unwrap()), [8, 1, 1, 0]);
    let state = running
        .state_where(|state| state.catalog.is_some() && state.detail.is_none())
        .await;
    let catalog = state.catalog.unwrap();
    assert_eq!(
        (counts(&catalog), catalog.generations),
        ([8, 1, 1, 1], [0, 0, 1])
    );
}

#[tokio::test]
async fn a_list_that_never_comes_is_not_waited_for() {
    let mut config = odd("resources-silent");
    config.request_timeout = Duration::from_millis(500).into();
    let running = TestBackend::start(config).await;
    let catalog = running.catalog_where(|_| true).await;
    assert_eq!(counts(&catalog), [8, 0, 1, 1]);
}

#[tokio::test]
async fn cursors_that_lead_nowhere_end_a_list() {
    for oddity in [
        "cursor-empty",
        "cursor-empty-is-page",
        "cursor-same",
        "cursor-alternating",
        "cursor-new",
        "cursor-null",
    ] {
        let running = TestBackend::start(odd(oddity)).await;
        let catalog = running.catalog_where(|_| true).await;
        assert_eq!(counts(&catalog), [8, 1, 1, 1], "{oddity}");
        assert_eq!(running.0.state().borrow().detail, None);
    }
}

#[tokio::test]
async fn a_server_that_declares_nothing_is_asked_for_everything() {
    let running = TestBackend::start(odd("capabilities-empty")).await;
    let catalog = running.catalog_where(|_| true).await;
    assert_eq!(counts(&catalog), [8, 1, 1, 1]);
}

#[tokio::test]
async fn roots_are_none_in_a_list_and_the_clients_in_a_call() {
    let client = Client::askable("a");
    for (oddity, asked) in [("roots-for-all-lists", 0), ("roots-for-call", 1)] {
        let mut config = odd(oddity);
        config.isolation = Isolation::Shared;
        config.share_roots = true;
        let running = TestBackend::start(config).await;
        let catalog = running.catalog_where(|_| true).await;
        assert_eq!(counts(&catalog), [8, 1, 1, 1], "{oddity}");
        let outcome = running.call(&client, "tool1", json!({})).await;
        assert_eq!(text(&outcome)["name"], "tool1", "{oddity}");
        assert_eq!(client.asked(), vec!["roots/list"; asked], "{oddity}");
    }
}

#[tokio::test]
async fn envelopes_are_read_as_leniently_as_by_the_sdks() {
    for oddity in [
        "error-null",
        "id-string",
        "id-float",
        "array-of-one",
        "bom",
        "extra-member",
        "id-twice",
        "jsonrpc-twice",
        "result-twice",
        "version-oldest",
    ] {
        let running = TestBackend::start(odd(oddity)).await;
        let outcome = running.call(&Client::named("a"), "tool1", json!({})).await;
        assert_eq!(text(&outcome)["name"], "tool1", "{oddity}");
    }
}

#[tokio::test]
async fn a_result_without_content_has_none() {
    for (oddity, member) in [
        ("structured-only", "structuredContent"),
        ("tool-result", "toolResult"),
    ] {
        let running = TestBackend::start(odd(oddity)).await;
        let outcome = running.call(&Client::named("a"), "tool1", json!({})).await;
        let CallOutcome::Result(result) = outcome else {
            panic!("{outcome:?}")
        };
        let result: Value = result.read().unwrap();
        assert_eq!(result["content"], json!([]), "{oddity}");
        assert!(result[member].is_object(), "{oddity}");
    }
}

#[tokio::test]
async fn a_handshake_that_fails_is_put_more_plainly() {
    for oddity in [
        "refuses-elicitation-modes",
        "refuses-elicitation",
        "refuses-new-versions",
        "dies-of-elicitation",
    ] {
        let mut config = odd(oddity);
        // A restart would exceed the test's time.
        config.restart_delay = Duration::from_secs(300).into();
        config.max_restart_delay = Duration::from_secs(300).into();
        let running = TestBackend::start(config).await;
        assert_eq!(running.0.restarts(), 0, "{oddity}");
        let outcome = running.call(&Client::named("a"), "tool1", json!({})).await;
        assert_eq!(text(&outcome)["name"], "tool1", "{oddity}");
    }
}

#[tokio::test]
async fn a_server_that_announces_each_list_is_read_less_and_less() {
    let running = TestBackend::start(odd("changed-after-list")).await;
    let client = Client::named("a");
    let mut readings = 0;
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let outcome = running.call(&client, "readings", json!({})).await;
        readings = text(&outcome).as_u64().unwrap();
    }
    assert!((2..15).contains(&readings), "{readings}");
    let catalog = running.catalog_where(|_| true).await;
    assert_eq!(catalog.generations, [0; 3]);
}

#[tokio::test]
async fn a_start_that_makes_progress_is_waited_for() {
    let mut config = odd("slow-start");
    // The server writes a line each second for 9 s.
    config.start_timeout = Duration::from_secs(6).into();
    config.restart_delay = Duration::from_secs(300).into();
    config.max_restart_delay = Duration::from_secs(300).into();
    let running = TestBackend::start(config).await;
    assert_eq!(running.0.restarts(), 0);
}

async fn of_task(oddity: &str) -> CallOutcome {
    let running = TestBackend::start(odd(oddity)).await;
    running.catalog_where(|_| true).await;
    running.call(&Client::named("a"), "tool1", json!({})).await
}

#[tokio::test]
async fn a_task_has_its_result_however_its_server_is_to_be_asked() {
    for oddity in [
        "tasks",
        "task-ignored",
        "task-over-at-once",
        "task-status-only",
        "task-id-number",
        "task-get-unknown",
        "task-get-wrapped",
        "task-result-refused",
        "task-result-working",
    ] {
        let outcome = of_task(oddity).await;
        let CallOutcome::Result(result) = outcome else {
            panic!("{oddity}: {outcome:?}")
        };
        let result: Value = result.read().unwrap();
        assert_eq!(result["content"][0]["text"], "done", "{oddity}");
    }
}

#[tokio::test]
async fn a_task_that_nobody_knows_any_more_ends_its_call() {
    for oddity in ["task-lost", "task-lost-silently", "task-killed"] {
        let outcome = of_task(oddity).await;
        assert!(
            matches!(failure(outcome), CallFailure::OutcomeUnknown { .. }),
            "{oddity}"
        );
    }
}

#[tokio::test]
async fn a_task_that_cannot_be_followed_or_has_failed_is_an_error() {
    for (oddity, said) in [("task-without-id", "no taskId"), ("task-fails", "it broke")] {
        let told = error(of_task(oddity).await).message;
        assert!(told.contains(said), "{oddity}: {told}");
    }
}
