use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::timeout;

use crate::command::{Output, output};
use crate::process::{SOON, Server, shoal};
use crate::terminal::at_a_terminal;

/// Longer than any test.
const ENDLESS: &str = r#"{"steps":600,"interval_ms":1000}"#;

async fn hurried(pool: &str) -> Server {
    Server::start_with(&[pool], &[("SHOAL_TASKS__AFTER", "50ms")]).await
}

async fn call(server: &Server, words: &[&str]) -> Output {
    let first = ["call", "--url", &server.mcp, "--task"];
    output(&[&first[..], words].concat(), "").await
}

async fn tasks(server: &Server, what: &str, words: &[&str]) -> Output {
    let first = ["tasks", what, "--url", &server.mcp];
    output(&[&first[..], words].concat(), "").await
}

async fn left(server: &Server, tool: &str, arguments: &str) -> String {
    let begun = call(server, &["--detach", tool, arguments]).await;
    assert_eq!((begun.code, begun.stderr.as_str()), (0, ""));
    begun.stdout.trim().to_owned()
}

fn parsed(printed: &str) -> Value {
    serde_json::from_str(printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

#[tokio::test]
async fn a_task_is_followed_to_its_end() {
    let server = hurried("--demo").await;
    let job = r#"{"steps":4,"interval_ms":300}"#;
    let done = call(&server, &["long_job", job]).await;
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.stdout, "done after 4 steps\n");
    let said: Vec<&str> = done.stderr.lines().collect();
    assert!(said[0].starts_with("task "), "{said:?}");
    assert_eq!(said[1..], ["working", "completed"]);
    let short = call(&server, &["echo", r#"{"text":"a"}"#]).await;
    assert_eq!((short.code, short.stdout.as_str()), (0, "a\n"));
    assert_eq!(short.stderr, "");
    let failed = call(&server, &["long_job", r#"{"steps":0,"interval_ms":1}"#]).await;
    assert_eq!(failed.code, 3, "{}", failed.stderr);
}

#[tokio::test]
async fn a_task_that_was_left_is_looked_at_stopped_and_watched() {
    let server = hurried("--demo").await;
    let task = left(&server, "long_job", ENDLESS).await;
    let shown = tasks(&server, "get", &[&task]).await;
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(
        shown.stdout.contains("status   working\n"),
        "{}",
        shown.stdout
    );
    let cancelled = tasks(&server, "cancel", &[&task, "--output", "json"]).await;
    assert_eq!(parsed(&cancelled.stdout)["resultType"], "complete");
    let watched = tasks(&server, "watch", &[&task, "--output", "json"]).await;
    assert_eq!(watched.code, 1, "{}", watched.stderr);
    assert!(
        watched.stderr.contains("was cancelled"),
        "{}",
        watched.stderr
    );
    assert_eq!(parsed(&watched.stdout)["error"]["exit_code"], 1);
    server.wait_for_calls(0).await;

    let job = r#"{"steps":4,"interval_ms":300}"#;
    let task = left(&server, "long_job", job).await;
    let watched = tasks(&server, "watch", &[&task]).await;
    assert_eq!(watched.code, 0, "{}", watched.stderr);
    assert_eq!(watched.stdout, "done after 4 steps\n");
    let shown = tasks(&server, "get", &[&task, "--output", "json"]).await;
    let shown = parsed(&shown.stdout);
    assert_eq!(shown["status"], "completed", "{shown}");
    assert_eq!(shown["result"]["content"][0]["text"], "done after 4 steps");
}

#[tokio::test]
async fn a_task_that_is_interrupted_is_asked_to_stop() {
    let server = hurried("--demo").await;
    let mut call = shoal(&["call", "--url", &server.mcp, "--task", "long_job", ENDLESS]);
    let mut call = call.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(call.stderr.take().unwrap()).lines();
    let said = timeout(SOON, lines.next_line()).await.unwrap().unwrap();
    let task = said.unwrap().strip_prefix("task ").unwrap().to_owned();
    let pid = Pid::from_raw(i32::try_from(call.id().unwrap()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    let status = timeout(SOON, call.wait()).await.unwrap();
    assert_eq!(status.unwrap().code(), Some(130));
    let watched = tasks(&server, "watch", &[&task]).await;
    assert!(
        watched.stderr.contains("was cancelled"),
        "{}",
        watched.stderr
    );
    server.wait_for_calls(0).await;
}

#[tokio::test]
async fn a_task_asks_whoever_watches_it_at_a_terminal() {
    let server = hurried("--conformance").await;
    let file = r#"{"filename":"a.txt"}"#;
    let answers = [("  > ", "y")];
    let words = [
        "call",
        "--url",
        &server.mcp,
        "--task",
        "confirm_delete",
        file,
    ];
    let ended = at_a_terminal(&words, &answers).await;
    assert_eq!(ended.code, 0, "{}", ended.shown);
    assert_eq!(ended.printed, "Deleted a.txt.\n");
    for part in [
        "task ",
        "working",
        "input_required",
        "Delete a.txt?",
        "completed",
    ] {
        assert!(ended.shown.contains(part), "{part}: {}", ended.shown);
    }

    // This command starts at a terminal, so the client declares elicitation.
    let words = [
        "call",
        "--url",
        &server.mcp,
        "--task",
        "--detach",
        "confirm_delete",
        file,
    ];
    let begun = at_a_terminal(&words, &[]).await;
    let task = begun.printed.trim();
    let alone = tasks(&server, "watch", &[task]).await;
    assert_eq!(alone.code, 3, "{}", alone.stderr);
    assert!(alone.stderr.contains("waits for it"), "{}", alone.stderr);
    let words = ["tasks", "watch", "--url", &server.mcp, task];
    let ended = at_a_terminal(&words, &answers).await;
    assert_eq!(
        (ended.code, ended.printed.as_str()),
        (0, "Deleted a.txt.\n")
    );
}

#[tokio::test]
async fn a_call_for_whose_task_there_is_no_room_goes_on_as_a_plain_one() {
    let room = [
        ("SHOAL_TASKS__AFTER", "50ms"),
        ("SHOAL_LIMITS__SESSIONS_PER_NODE", "1"),
    ];
    let server = Server::start_with(&["--demo"], &room).await;
    let task = left(&server, "long_job", ENDLESS).await;
    let job = r#"{"steps":2,"interval_ms":300}"#;
    let plain = call(&server, &["--detach", "long_job", job]).await;
    assert_eq!(plain.code, 0, "{}", plain.stderr);
    assert_eq!(plain.stdout, "done after 2 steps\n");
    let cancelled = tasks(&server, "cancel", &[&task]).await;
    assert_eq!(cancelled.code, 0, "{}", cancelled.stderr);
}

#[tokio::test]
async fn what_cannot_be_a_task_is_said_with_an_exit_code() {
    let server = hurried("--conformance").await;
    let failed = call(&server, &["protocol_error_job"]).await;
    assert_eq!(failed.code, 5, "{}", failed.stderr);
    assert!(
        failed.stderr.contains("The job is broken."),
        "{}",
        failed.stderr
    );
    let legacy = call(&server, &["--era", "legacy", "greet"]).await;
    assert_eq!(legacy.code, 2, "{}", legacy.stderr);
    for what in ["get", "cancel", "watch"] {
        let unknown = tasks(&server, what, &["nothing"]).await;
        assert_eq!(unknown.code, 5, "{what}: {}", unknown.stderr);
        assert!(
            unknown.stderr.contains("task not found"),
            "{}",
            unknown.stderr
        );
    }
    let without = [("SHOAL_TASKS__ENABLED", "false")];
    let without = Server::start_with(&["--demo"], &without).await;
    let refused = call(&without, &["echo", r#"{"text":"a"}"#]).await;
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("does not offer tasks"),
        "{}",
        refused.stderr
    );
}
