use std::collections::HashMap;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

pub(crate) const SHARED: (&str, &str) = ("SHOAL_POOLS__STDIO__BACKEND__STDIO__ISOLATION", "shared");
/// Longer than any step takes on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The command has no variables that could configure the binary.
pub(crate) fn shoal(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shoal"));
    command.args(arguments).kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SHOAL_")
            || name.to_string_lossy().starts_with("OTEL_")
        {
            command.env_remove(name);
        }
    }
    command
}

pub(crate) struct Server {
    /// Empty without an edge.
    pub(crate) mcp: String,
    /// Empty without a cluster listener.
    pub(crate) cluster: String,
    pub(crate) admin: String,
    child: Child,
    log: Log,
}

#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<String>>);

impl Server {
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[]).await
    }

    pub(crate) async fn start_with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut all = vec!["serve", "--admin", "127.0.0.1:0"];
        if !arguments.contains(&"--listen") {
            all.extend(["--listen", "127.0.0.1:0"]);
        }
        all.extend(arguments);
        let mut command = shoal(&all);
        command.envs(environment.iter().copied());
        Self::of(command).await
    }

    pub(crate) async fn of(command: Command) -> Self {
        let server = Self::announced(command).await;
        server.wait_for_readiness(200).await;
        server
    }

    pub(crate) async fn announced(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Log::of(&mut child);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut announced = HashMap::new();
        while !announced.contains_key("admin") {
            let line = timeout(SOON, lines.next_line()).await.unwrap().unwrap();
            let line = line.unwrap_or_else(|| panic!("no admin port: {}", log.text()));
            let said = line.strip_prefix("shoal: ");
            let (what, address) = said.and_then(|said| said.split_once(" on ")).unwrap();
            announced.insert(what.to_owned(), address.to_owned());
        }
        let mut address = |what: &str| announced.remove(what).unwrap_or_default();
        Self {
            mcp: address("serving MCP"),
            cluster: address("cluster"),
            admin: address("admin"),
            child,
            log: log.clone(),
        }
    }

    pub(crate) async fn status(&self) -> Value {
        let answer = reqwest::get(format!("{}/status", self.admin)).await;
        answer.unwrap().json().await.unwrap()
    }

    pub(crate) async fn readiness(&self) -> (u16, Value) {
        let answer = reqwest::get(format!("{}/readyz", self.admin)).await;
        let answer = answer.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    pub(crate) async fn wait_for_readiness(&self, status: u16) {
        let ready = async {
            while self.readiness().await.0 != status {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(SOON, ready).await.unwrap_or_else(|_| {
            panic!("not {status}: {}", self.log.text());
        });
    }

    pub(crate) async fn wait_for_calls(&self, running: usize) {
        let status = format!("{}/status", self.admin);
        let reached = async {
            loop {
                let status: Value = reqwest::get(&status).await.unwrap().json().await.unwrap();
                if status["pools"][0]["workers"][0]["running"] == running {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let reached = timeout(SOON, reached).await;
        reached.unwrap_or_else(|_| panic!("not {running} calls: {}", self.log.text()));
    }

    pub(crate) async fn said(&self, words: &str) {
        self.log.said(words).await;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    pub(crate) async fn exit_code(&mut self) -> i32 {
        let status: ExitStatus = timeout(SOON, self.child.wait()).await.unwrap().unwrap();
        status.code().unwrap_or(-1)
    }

    pub(crate) fn log(&self) -> String {
        self.log.text()
    }
}

impl Log {
    fn of(child: &mut Child) -> Self {
        let log = Self::default();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let written = log.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let mut text = written.0.lock().unwrap();
                text.push_str(&line);
                text.push('\n');
            }
        });
        log
    }

    async fn said(&self, words: &str) {
        let said = async {
            while !self.text().contains(words) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let said = timeout(SOON, said).await;
        said.unwrap_or_else(|_| panic!("not said: {words}: {}", self.text()));
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

fn send(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill(Pid::from_raw(pid), signal).unwrap();
}

pub(crate) struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    log: Log,
}

impl Bridge {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    pub(crate) fn start_with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut all = vec!["stdio"];
        all.extend(arguments);
        let mut command = shoal(&all);
        command.envs(environment.iter().copied());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Self {
            log: Log::of(&mut child),
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        }
    }

    pub(crate) async fn said(&self, words: &str) {
        self.log.said(words).await;
    }

    pub(crate) async fn write(&mut self, line: impl AsRef<[u8]>) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_ref()).await.unwrap();
        input.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.write(message.to_string()).await;
    }

    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = timeout(SOON, self.output.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("no message: {}", self.log.text()));
        line.unwrap()
            .map(|line| serde_json::from_str(&line).unwrap())
    }

    pub(crate) async fn response(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        loop {
            let message = self.next().await.unwrap_or_else(|| {
                panic!("no response to {id}: {}", self.log.text());
            });
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub(crate) async fn of_method(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await.unwrap_or_else(|| {
                panic!("no {method}: {}", self.log.text());
            });
            if message["method"] == method {
                return message;
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    pub(crate) async fn end(mut self) -> (i32, Vec<Value>) {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        let status = timeout(SOON, self.child.wait()).await.unwrap().unwrap();
        (status.code().unwrap_or(-1), messages)
    }

    pub(crate) fn log(&self) -> String {
        self.log.text()
    }
}
