//! Programs that the tests start, and parts of results.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

pub(crate) const LOADTEST: &str = env!("CARGO_BIN_EXE_loadtest");

/// Returns the binary that `TEST_SHOAL_BIN` names, else the one next to `loadtest`.
pub(crate) fn shoal() -> PathBuf {
    let named = std::env::var_os("TEST_SHOAL_BIN").map(PathBuf::from);
    let shoal = named.unwrap_or_else(|| Path::new(LOADTEST).with_file_name("shoal"));
    assert!(
        shoal.is_file(),
        "build it (cargo build -p shoal-node), or name it in the variable TEST_SHOAL_BIN"
    );
    shoal
}

/// A running server, killed on drop.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Server {
    /// Starts a server of `loadtest`.
    pub(crate) fn own(arguments: &[&str]) -> Self {
        let mut command = Command::new(LOADTEST);
        Self::announced(command.args(arguments), "listening on ")
    }

    pub(crate) fn shoal() -> Self {
        let mut command = Command::new(shoal());
        command
            .args(["serve", "--demo", "--listen", "127.0.0.1:0"])
            .args(["--admin", "127.0.0.1:0"]);
        Self::announced(&mut command, "shoal: serving MCP on ")
    }

    fn announced(command: &mut Command, prefix: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.find_map(|line| line.unwrap().strip_prefix(prefix).map(str::to_owned));
        // Reads the rest of the output, so that the process cannot block on it.
        std::thread::spawn(move || lines.for_each(drop));
        let url = url.unwrap();
        Self { child, url }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a path for a temporary file.
pub(crate) fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("loadtest-{}-{name}", std::process::id()))
}

/// Runs a command of `loadtest`, which writes its result to a temporary file.
pub(crate) fn run(command: &mut Command, name: &str) -> (Output, Value) {
    let json = file(&format!("{name}.json"));
    let ran = command.arg("--json").arg(&json).output().unwrap();
    let text = std::fs::read(&json).unwrap_or_else(|error| panic!("{error}: {}", said(&ran)));
    std::fs::remove_file(&json).unwrap();
    (ran, serde_json::from_slice(&text).unwrap())
}

pub(crate) fn said(ran: &Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    format!("{out}\n{err}")
}

pub(crate) fn figure(outcome: &Value, name: &str) -> f64 {
    let figures = outcome["figures"].as_array().unwrap();
    let found = figures.iter().find(|figure| figure["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no {name} in {figures:?}"));
    found["value"].as_f64().unwrap()
}

pub(crate) fn verdict(outcome: &Value, beginning: &str) -> Option<bool> {
    let verdicts = outcome["verdicts"].as_array().unwrap();
    let starts = |verdict: &&Value| verdict["what"].as_str().unwrap().starts_with(beginning);
    let found = verdicts.iter().find(starts);
    found.unwrap_or_else(|| panic!("no {beginning} in {verdicts:?}"))["held"].as_bool()
}
