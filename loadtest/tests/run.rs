#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

const LOADTEST: &str = env!("CARGO_BIN_EXE_loadtest");

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(LOADTEST)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let url = line
            .trim()
            .strip_prefix("listening on ")
            .unwrap()
            .to_owned();
        Self { child, url }
    }

    fn drive(&self, mode: &str, more: &[&str]) -> Output {
        Command::new(LOADTEST)
            .args(["run", "--url", &self.url, "--mode", mode])
            .args([
                "--sessions",
                "4",
                "--warmup",
                "200ms",
                "--duration",
                "800ms",
            ])
            .args(["--pid", &self.child.id().to_string()])
            .args(more)
            .output()
            .unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn the_floor_answers_every_call_and_the_report_says_so() {
    let server = Server::start(&["serve-floor"]);
    let file = std::env::temp_dir().join(format!("loadtest-{}.json", std::process::id()));
    let ran = server.drive(
        "legacy",
        &["--legacy-stateless", "--json", file.to_str().unwrap()],
    );
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(report["calls"].as_u64().unwrap() > 0);
    assert!(report["latency"]["p99_us"].as_f64().unwrap() > 0.0);
    assert!(report["server"]["rss_kib"].as_u64().unwrap() > 0);
    assert_eq!(
        (report["wrong"].as_u64(), report["failed"].as_u64()),
        (Some(0), Some(0))
    );
}

#[test]
fn the_peer_answers_in_every_mode() {
    for configured in [["true", "false"], ["false", "true"], ["false", "false"]] {
        let [stateful, json] = configured;
        let server = Server::start(&["serve-rmcp", "--stateful", stateful, "--json", json]);
        for mode in ["legacy", "modern"] {
            let ran = server.drive(mode, &[]);
            let said = String::from_utf8_lossy(&ran.stdout);
            assert!(ran.status.success(), "{mode} {configured:?}: {said}");
        }
    }
}

#[test]
fn answers_that_are_not_the_expected_ones_fail_the_run() {
    let server = Server::start(&["serve-floor"]);
    let ran = server.drive("legacy", &["--answer-prefix", "Echo: "]);
    assert!(!ran.status.success());
    assert!(String::from_utf8_lossy(&ran.stdout).contains("not the text"));
}

#[test]
fn a_session_where_none_may_be_fails_the_run() {
    let server = Server::start(&["serve-rmcp"]);
    let ran = server.drive("legacy", &["--legacy-stateless"]);
    assert!(!ran.status.success());
    assert!(String::from_utf8_lossy(&ran.stderr).contains("keeps sessions"));
}
