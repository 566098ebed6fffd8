use std::path::Path;
use std::time::Duration;

use serde_json::json;
use shoal_ports::{CallFailure, Secret};

use super::harness::{
    Client, SOON, TestBackend, eventually, failure, fixture, is_running, scratch, signal, text,
};
use crate::{Isolation, StdioBackend, StdioConfig};

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

#[tokio::test]
async fn a_server_that_dies_ends_its_calls_and_comes_back() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let (a, b) = (Client::named("a"), Client::named("b"));
    let file = scratch("die");
    let other = running.spawn(&b, "hang", json!({ "file": file.to_str() }));
    running.call(&a, "echo", json!({ "text": "" })).await;
    let mut states = running.0.state();
    let died = failure(running.call(&a, "die", json!({})).await);
    let CallFailure::OutcomeUnknown { reason } = &died else {
        panic!("{died:?}")
    };
    assert!(reason.contains("exit status: 3"), "{reason}");
    assert_eq!(failure(other.await.unwrap()), died);
    let restarting = states
        .wait_for(|state| state.detail.is_some())
        .await
        .unwrap()
        .clone();
    let detail = restarting.detail.unwrap();
    assert!(
        detail.starts_with("restarting: ") && detail.contains("exit status: 3"),
        "{detail}"
    );
    assert!(restarting.catalog.is_some());
    assert_eq!(
        text(&running.call(&a, "echo", json!({ "text": "again" })).await),
        "again"
    );
    running.state_where(|state| state.detail.is_none()).await;
}

/// One call is half written, and another unwritten.
#[tokio::test]
async fn a_call_that_its_process_never_read_runs_in_another_one() {
    for isolation in [Isolation::Shared, Isolation::Session] {
        let mut config = fixture("legacy.py", &[]);
        config.isolation = isolation;
        let running = TestBackend::start(config).await;
        let client = Client::named("a");
        let pid = text(&running.call(&client, "pid", json!({})).await);
        signal(&pid, "-STOP");
        let long = "x".repeat(1 << 20);
        let half = running.spawn(&client, "echo", json!({ "text": long }));
        tokio::time::sleep(SOON).await;
        let unread = running.spawn(&client, "pid", json!({}));
        tokio::time::sleep(SOON).await;
        signal(&pid, "-KILL");
        let half = failure(half.await.unwrap());
        assert!(
            matches!(half, CallFailure::OutcomeUnknown { .. }),
            "{half:?}"
        );
        assert_ne!(text(&unread.await.unwrap()), pid);
    }
}

#[tokio::test]
async fn a_server_that_does_not_start_again_refuses_calls_and_is_tried_less_and_less() {
    let directory = scratch("command");
    std::fs::create_dir(&*directory).unwrap();
    let (command, starts) = (directory.join("server.py"), directory.join("starts"));
    std::os::unix::fs::symlink(&fixture("legacy.py", &[]).args[1], &command).unwrap();
    let mut config = StdioConfig::new("sh");
    let line = format!(
        "echo >> {}; exec python3 -u {}",
        starts.display(),
        command.display()
    );
    config.args = vec!["-c".to_owned(), line];
    config.isolation = Isolation::Shared;
    config.restart_delay = Duration::from_secs(60).into();
    config.max_restart_delay = Duration::from_secs(60).into();
    let running = TestBackend::start(config).await;
    let before = read(&starts).len();
    std::fs::remove_file(&command).unwrap();
    let (a, b) = (Client::named("a"), Client::named("b"));
    running.call(&a, "die", json!({})).await;
    let outcome = running.call(&b, "echo", json!({ "text": "x" })).await;
    assert!(matches!(failure(outcome), CallFailure::NotExecuted { .. }));
    running.state_where(|state| state.catalog.is_none()).await;
    let tried = read(&starts).len();
    assert!(tried > before);
    for _ in 0..50 {
        let outcome = running.call(&b, "echo", json!({ "text": "x" })).await;
        assert!(matches!(failure(outcome), CallFailure::NotExecuted { .. }));
    }
    assert_eq!(read(&starts).len(), tried);
}

#[tokio::test]
async fn a_caller_that_ends_the_server_keeps_nobody_else_from_it() {
    let mut config = fixture("legacy.py", &[]);
    config.restart_delay = Duration::from_secs(10).into();
    config.max_restart_delay = Duration::from_secs(60).into();
    let running = TestBackend::start(config).await;
    let (mallory, alice) = (Client::named("mallory"), Client::named("alice"));
    for round in 0..5 {
        let died = failure(running.call(&mallory, "die", json!({})).await);
        match (&died, round) {
            (CallFailure::OutcomeUnknown { .. }, 0) => {}
            (CallFailure::Overloaded { retry_after, .. }, 1..) => {
                assert!(*retry_after > Duration::from_secs(1), "{died:?}");
            }
            other => panic!("{other:?}"),
        }
        let outcome = running
            .call(&alice, "echo", json!({ "text": "well" }))
            .await;
        assert_eq!(text(&outcome), "well");
        let outcome = running
            .call(&mallory, "echo", json!({ "text": "too" }))
            .await;
        assert_eq!(text(&outcome), "too");
    }
}

#[tokio::test]
async fn a_caller_that_ends_processes_beside_others_soon_ends_only_its_own() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let (mallory, alice) = (Client::named("mallory"), Client::named("alice"));
    let mut lost = 0;
    for _ in 0..20 {
        let file = scratch("hang");
        let held = running.spawn(&alice, "hang", json!({ "file": file.to_str() }));
        running
            .call(&alice, "echo", json!({ "text": "it runs" }))
            .await;
        let died = failure(running.call(&mallory, "die", json!({})).await);
        if matches!(died, CallFailure::Overloaded { .. }) {
            held.abort();
            break;
        }
        tokio::select! {
            outcome = held => {
                assert!(matches!(failure(outcome.unwrap()), CallFailure::OutcomeUnknown { .. }));
                lost += 1;
            }
            () = tokio::time::sleep(Duration::from_millis(300)) => {}
        }
    }
    assert!(lost <= 3, "{lost} calls were lost");
}

#[tokio::test]
async fn failed_starts_are_repeated_until_one_succeeds() {
    let counter = scratch("starts");
    // Five attempts crash: four of the first start (both eras, two plainer forms) and one of the
    // second. Then the server refuses the modern era, and accepts a plainer form and the newest.
    let flags = ["--fail-starts", counter.to_str().unwrap(), "5"];
    let running = TestBackend(std::sync::Arc::new(StdioBackend::start(fixture(
        "legacy.py",
        &flags,
    ))));
    let told =
        |detail: &String| detail.starts_with("cannot start: ") && detail.contains("status: 7");
    running
        .state_where(|state| state.detail.as_ref().is_some_and(told))
        .await;
    running.catalog_where(|_| true).await;
    assert_eq!(read(&counter).len(), 8);
    let known = text(&running.call(&Client::named("a"), "client", json!({})).await);
    let elicitation = &known["client"]["capabilities"]["elicitation"];
    assert_eq!(*elicitation, json!({ "form": {}, "url": {} }));
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_reported() {
    let config = StdioConfig::new("/nonexistent/server");
    let running = TestBackend(std::sync::Arc::new(StdioBackend::start(config)));
    let told = |detail: &String| detail.contains("could not start \"/nonexistent/server\"");
    running
        .state_where(|state| state.detail.as_ref().is_some_and(told))
        .await;
    let outcome = running.call(&Client::named("a"), "echo", json!({})).await;
    assert!(matches!(failure(outcome), CallFailure::NotExecuted { .. }));
    running.0.shutdown().await;
}

#[tokio::test]
async fn shutdown_ends_a_stubborn_server_and_what_it_started() {
    let file = scratch("pid");
    let flags = ["--stubborn", "--spawn", file.to_str().unwrap()];
    let running = TestBackend::start(fixture("legacy.py", &flags)).await;
    let pid = text(&running.call(&Client::named("a"), "pid", json!({})).await).to_string();
    let grandchild = read(&file);
    assert!(is_running(&pid) && is_running(&grandchild));
    running.0.shutdown().await;
    assert!(!is_running(&pid));
    eventually("the grandchild is gone", || !is_running(&grandchild)).await;
    let outcome = running.call(&Client::named("a"), "echo", json!({})).await;
    assert!(matches!(failure(outcome), CallFailure::NotExecuted { .. }));
}

#[tokio::test]
async fn a_server_that_dies_leaves_no_orphans() {
    let file = scratch("pid");
    let running =
        TestBackend::start(fixture("legacy.py", &["--spawn", file.to_str().unwrap()])).await;
    let grandchild = read(&file);
    running.call(&Client::named("a"), "die", json!({})).await;
    eventually("the grandchild is gone", || !is_running(&grandchild)).await;
}

#[tokio::test]
async fn who_has_left_the_process_group_ends_with_the_server() {
    for dies in [false, true] {
        let file = scratch("pid");
        let flags = ["--detach", file.to_str().unwrap()];
        let running = TestBackend::start(fixture("legacy.py", &flags)).await;
        let detached = read(&file).trim().to_owned();
        assert!(is_running(&detached));
        if dies {
            running.call(&Client::named("a"), "die", json!({})).await;
        } else {
            running.0.shutdown().await;
        }
        eventually("the one that left is gone", || !is_running(&detached)).await;
    }
}

#[tokio::test]
async fn dropping_the_backend_ends_its_processes() {
    let file = scratch("pid");
    let running =
        TestBackend::start(fixture("legacy.py", &["--spawn", file.to_str().unwrap()])).await;
    let pid = text(&running.call(&Client::named("a"), "pid", json!({})).await).to_string();
    drop(running);
    eventually("the process is gone", || !is_running(&pid)).await;
    eventually("the grandchild is gone", || !is_running(&read(&file))).await;
}

#[tokio::test]
async fn a_server_sees_only_the_environment_that_is_meant_for_it() {
    let mut config = StdioConfig::new("sh");
    let file = scratch("env");
    config.args = vec!["-c".to_owned(), format!("env > {}; exit 1", file.display())];
    config.env.insert("TOKEN".to_owned(), Secret::new("given"));
    config.inherit = vec!["CARGO_PKG_NAME".to_owned()];
    assert!(!format!("{config:?}").contains("given"));
    let running = TestBackend(std::sync::Arc::new(StdioBackend::start(config)));
    let failed =
        |state: &crate::BackendState| state.detail.as_ref().is_some_and(|d| d != "starting");
    running.state_where(failed).await;
    let seen = read(&file);
    assert!(seen.contains("TOKEN=given") && seen.contains("PATH="));
    assert!(seen.contains("CARGO_PKG_NAME=shoal-worker") && !seen.contains("CARGO_MANIFEST_DIR"));
}

#[tokio::test]
async fn a_tool_that_ends_its_sessions_process_keeps_no_other_tool_from_the_next_one() {
    let mut config = fixture("legacy.py", &[]);
    config.isolation = Isolation::Session;
    config.restart_delay = Duration::from_secs(60).into();
    config.max_restart_delay = Duration::from_secs(60).into();
    let running = TestBackend::start(config).await;
    let client = Client::named("a");
    let pid = || async { text(&running.call(&client, "pid", json!({})).await) };
    let first = pid().await;
    let outcome = running.call(&client, "die", json!({})).await;
    assert!(matches!(
        failure(outcome),
        CallFailure::OutcomeUnknown { .. }
    ));
    let second = pid().await;
    assert_ne!(first, second);
    let outcome = running.call(&client, "die", json!({})).await;
    assert!(matches!(failure(outcome), CallFailure::NotExecuted { .. }));
    assert_eq!(pid().await, second);
}
