//! `load` against Shoal itself, with all its options. Build the server first, so that it is next to
//! the load tool: `cargo build -p shoal-node --bin shoal`.

#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

mod shoal_binary;

const LOADTEST: &str = env!("CARGO_BIN_EXE_loadtest");

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let program = shoal_binary::shoal(LOADTEST);
        let mut child = Command::new(&program)
            .args([
                "serve",
                "--demo",
                "--listen",
                "127.0.0.1:0",
                "--admin",
                "127.0.0.1:0",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.find_map(|line| {
            let line = line.unwrap();
            line.strip_prefix("shoal: serving MCP on ")
                .map(str::to_owned)
        });
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            url: url.unwrap(),
        }
    }

    fn load(&self, mode: &str, more: &str) -> Value {
        let port = self.url.rsplit(':').next().unwrap().replace('/', "-");
        let json = std::env::temp_dir().join(format!("loadtest-shoal-{port}.json"));
        let ran = Command::new(LOADTEST)
            .args([
                "load", "--url", &self.url, "--mode", mode, "--warmup", "200ms",
            ])
            .args([
                "--pid",
                &self.child.id().to_string(),
                "--json",
                json.to_str().unwrap(),
            ])
            .args(more.split_whitespace())
            .output()
            .unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr),
        );
        assert!(ran.status.success(), "{mode} {more}: {out}\n{err}");
        let result = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        std::fs::remove_file(&json).unwrap();
        result
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn figure(result: &Value, name: &str) -> f64 {
    let figures = result["figures"].as_array().unwrap();
    let figure = figures.iter().find(|figure| figure["name"] == name);
    figure.unwrap_or_else(|| panic!("no {name} in {figures:?}"))["value"]
        .as_f64()
        .unwrap()
}

#[test]
fn shoal_answers_every_kind_of_call_in_both_eras() {
    let server = Server::start();
    let mix = "echo=4,payload:1MiB=1,progress:10=2,elicitation=2,journaled=2,update=1";
    for (mode, mix) in [
        ("legacy", format!("{mix},count=2")),
        ("modern", mix.to_owned()),
    ] {
        let more = format!("--sessions 8 --duration 4s --listeners 3 --slow-readers 3 --mix {mix}");
        let result = server.load(mode, &more);
        assert!(figure(&result, "calls answered") > 0.0);
        assert!(figure(&result, "server memory at the end") > 0.0);
        let whole = "slow readers that got all of their stream";
        assert!(
            result.to_string().contains(whole) || result.to_string().contains("the server cut off")
        );
    }
}

#[test]
fn shoal_keeps_up_with_ramps_and_churn() {
    let server = Server::start();
    let result = server.load(
        "legacy",
        "--sessions 16 --duration 4s --rate 20..60 --ramp-steps 2 --churn 10",
    );
    assert!(figure(&result, "sessions opened, used and ended") > 0.0);
    let due = result["latencies"][0]["count"].as_u64().unwrap();
    assert_eq!(due, 160, "{result}");
    let result = server.load("modern", "--clients 2..8 --ramp-steps 2 --duration 2s");
    assert!(figure(&result, "8 sessions: calls a second") > 0.0);
    let task = Command::new(LOADTEST)
        .args([
            "load",
            "--url",
            &server.url,
            "--mode",
            "legacy",
            "--mix",
            "task",
        ])
        .output()
        .unwrap();
    assert!(!task.status.success());
    let said = [task.stdout, task.stderr].concat();
    assert!(String::from_utf8_lossy(&said).contains("does not say that its calls may be tasks"));
}
