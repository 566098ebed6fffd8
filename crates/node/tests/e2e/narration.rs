use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::process::{SOON, Server, shoal};
use crate::serve::FIXTURE;

const ADDRESSES: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
const BROKEN: &str = "import sys; print('loading', file=sys.stderr); import nosuchmodule";

struct AtTerminal {
    child: Child,
    shown: Arc<Mutex<String>>,
}

impl AtTerminal {
    fn start(mut command: Command) -> Self {
        let pty = openpty(None, None).unwrap();
        command
            .stdin(Stdio::from(pty.slave.try_clone().unwrap()))
            .stdout(Stdio::from(pty.slave.try_clone().unwrap()))
            .stderr(Stdio::from(pty.slave));
        let child = command.spawn().unwrap();
        // The command also holds the terminal open, so the reads below would not end.
        drop(command);
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut terminal, written) = (File::from(pty.master), shown.clone());
        std::thread::spawn(move || {
            let mut chunk = [0; 1024];
            while let Ok(read @ 1..) = terminal.read(&mut chunk) {
                let text = String::from_utf8_lossy(&chunk[..read]).replace("\r\n", "\n");
                written.lock().unwrap().push_str(&text);
            }
        });
        Self { child, shown }
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    async fn shows(&self, words: &str) {
        let shown = async {
            while !self.shown().contains(words) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let shown = timeout(SOON, shown).await;
        shown.unwrap_or_else(|_| panic!("{words:?} is not in {}", self.shown()));
    }

    async fn exit_code(&mut self) -> Option<i32> {
        let status = timeout(SOON, self.child.wait()).await.unwrap().unwrap();
        status.code()
    }
}

fn serve(words: &[&str]) -> Command {
    let mut command = shoal(&[&ADDRESSES[..], words].concat());
    // Variables of this machine could cause warnings.
    command.env_clear();
    command.envs(["PATH", "HOME"].map(|name| (name, std::env::var_os(name).unwrap_or_default())));
    command
}

#[tokio::test]
async fn at_a_terminal_a_server_starts_is_ready_and_stops_in_a_line_each() {
    let mut server = AtTerminal::start(serve(&["--", "python3", FIXTURE]));
    server.shows("/console/\n").await;
    let shown = server.shown();
    let lines: Vec<&str> = shown.lines().collect();
    let [starting, ready] = lines[..] else {
        panic!("two lines are enough: {shown}");
    };
    assert_eq!(starting, format!("starting python3 {FIXTURE} …"));
    assert!(ready.starts_with("ready: "), "{ready}");
    for part in [
        " tools at http://127.0.0.1:",
        "/mcp; console at http://127.0.0.1:",
    ] {
        assert!(ready.contains(part), "{part:?}: {ready}");
    }
    let pid = i32::try_from(server.child.id().unwrap()).unwrap();
    kill(Pid::from_raw(pid), Signal::SIGINT).unwrap();
    assert_eq!(server.exit_code().await, Some(0));
    let last = "stopping on SIGINT; a second signal exits at once\n";
    assert!(server.shown().ends_with(last), "{}", server.shown());
}

#[tokio::test]
async fn at_a_terminal_a_server_that_cannot_start_is_told_by_its_own_last_words() {
    let mut server = AtTerminal::start(serve(&["--", "python3", "-c", BROKEN]));
    assert_eq!(server.exit_code().await, Some(1));
    server.shows("No module named").await;
    let shown = server.shown();
    let reason = shown
        .find("shoal: cannot start the server `python3")
        .unwrap();
    for part in [
        "exit status: 1",
        "\n    loading\n",
        "\n    ModuleNotFoundError: No module named",
    ] {
        let at = shown
            .find(part)
            .unwrap_or_else(|| panic!("{part:?}: {shown}"));
        assert!(at > reason, "{part:?}: {shown}");
    }
    assert_eq!(
        shown.matches("cannot start the server").count(),
        1,
        "{shown}"
    );
    for part in ["shutting down", "shut down", "serving MCP"] {
        assert!(!shown.contains(part), "{part:?}: {shown}");
    }
}

#[tokio::test]
async fn colours_are_for_those_who_want_them() {
    let shown = async |no_color: &str| {
        let mut command = serve(&["--demo"]);
        command
            .env("SHOAL_LOGGING__LEVEL", "debug")
            .env("NO_COLOR", no_color);
        let server = AtTerminal::start(command);
        server.shows("DEBUG").await;
        server.shown()
    };
    assert!(shown("").await.contains("\u{1b}["));
    assert!(!shown("1").await.contains('\u{1b}'));
}

fn messages(log: &str) -> Vec<Value> {
    let lines = log.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn without_a_terminal_the_log_has_the_same_and_standard_output_the_addresses() {
    let json = [("SHOAL_LOGGING__FORMAT", "json")];
    let mut server = Server::start_with(&["--", "python3", FIXTURE], &json).await;
    server.said("\"ready\"").await;
    let told = messages(&server.log());
    let find = |what: &str| told.iter().position(|line| line["message"] == what);
    let (starting, ready) = (find("starting").unwrap(), find("ready").unwrap());
    assert!(starting < ready);
    let ready = &told[ready];
    assert_eq!(ready["url"], server.mcp);
    assert_eq!(ready["console"], format!("{}/console/", server.admin));
    assert!(ready["tools"].as_u64().unwrap() > 1, "{ready}");
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0);
    let told = messages(&server.log());
    let steps = told.iter().filter(|line| {
        let message = line["message"].as_str().unwrap();
        message.starts_with("shutting down:")
    });
    assert_eq!(steps.count(), 0, "{}", server.log());
}

#[tokio::test]
async fn without_a_terminal_the_reason_is_a_line_of_the_log() {
    let mut command = serve(&["--", "python3", "-c", BROKEN]);
    command
        .env("SHOAL_LOGGING__FORMAT", "json")
        .stdout(Stdio::null());
    let output = timeout(SOON, command.output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    let told = messages(&log);
    let reason = told
        .iter()
        .find(|line| line["message"] == "cannot start")
        .unwrap();
    let reason = reason["reason"].as_str().unwrap();
    for part in ["exit status: 1", "No module named"] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[tokio::test]
async fn what_a_server_tells_operators_is_told_to_who_asks() {
    let grumbles =
        "import sys; print('seventeen lines', file=sys.stderr); exec(open(sys.argv[1]).read())";
    let words = ["--", "python3", "-c", grumbles, FIXTURE];
    let server = Server::start(&words).await;
    assert!(
        !server.log().contains("seventeen lines\n"),
        "{}",
        server.log()
    );
    let level = [("SHOAL_LOGGING__LEVEL", "info,shoal::stdio=debug")];
    let server = Server::start_with(&words, &level).await;
    server.said(": seventeen lines").await;
}

#[tokio::test]
async fn a_document_that_is_not_there_is_exit_code_2() {
    let mut command = serve(&["--openapi", "/does/not/exist.json"]);
    let output = timeout(SOON, command.output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("cannot read /does/not/exist.json"), "{log}");
}
