//! The examples for server authors, called by the client of the official Rust SDK.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, Implementation, ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::{ClientHandler, ErrorData, RoleClient, ServiceExt as _};
use serde_json::{Value, json};
use shoal_testkit::directory::Directory;
use shoal_testkit::process::{Launch, Process, SOON};
use shoal_testkit::programs;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

const SOCKETS: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

struct Client {
    service: RunningService<RoleClient, User>,
    user: User,
    _child: Child,
}

#[derive(Clone, Default)]
struct User {
    answer: Option<Value>,
    progress: Arc<Mutex<Vec<f64>>>,
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("examples", "1"))
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(match &self.answer {
            Some(answer) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(answer.clone())
            }
            None => ElicitResult::new(ElicitationAction::Decline),
        })
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().push(params.progress);
    }
}

impl Client {
    async fn of(example: &str, more: &[&str], user: User) -> Self {
        let mut child = Command::new(programs::example(example).unwrap())
            .arg("stdio")
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let streams = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let service = timeout(SOON, user.clone().serve(streams)).await.unwrap();
        Self {
            service: service.unwrap(),
            user,
            _child: child,
        }
    }

    async fn tools(&self) -> Vec<String> {
        let tools = timeout(SOON, self.service.list_all_tools()).await.unwrap();
        let mut names: Vec<String> = tools.unwrap().into_iter().map(|t| t.name.into()).collect();
        names.sort();
        names
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> Result<String, String> {
        let arguments = arguments.as_object().unwrap().clone();
        let call = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = timeout(SOON, self.service.call_tool(call)).await.unwrap();
        let result = result.map_err(|error| error.to_string())?;
        let result = serde_json::to_value(result).unwrap();
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        match result["isError"] == json!(true) {
            true => Err(text),
            false => Ok(text),
        }
    }
}

async fn output(launch: &mut Command) -> (ExitStatus, String) {
    let output = timeout(SOON, launch.output()).await.unwrap().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status, String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn a_tool_server_answers_and_reports_progress() {
    let client = Client::of("weather", &[], User::default()).await;
    assert_eq!(client.tools().await, ["forecast", "now", "whoami"]);
    let now = client.call("now", json!({ "city": "Bergen" })).await;
    assert_eq!(now.unwrap(), "Bergen: 21 degrees, no clouds");
    let days = json!({ "city": "Bergen", "days": 4 });
    let forecast = client.call("forecast", days).await;
    assert_eq!(forecast.unwrap(), "Bergen: 4 days without clouds");
    assert_eq!(*client.user.progress.lock(), [1.0, 2.0, 3.0, 4.0]);
    // The call's deadline is too short for so many days.
    let days = json!({ "city": "Bergen", "days": 1_000_000 });
    let refused = client.call("forecast", days).await.unwrap_err();
    assert!(refused.contains("not enough time"), "{refused}");
    let who = client.call("whoami", json!({})).await;
    assert_eq!(who.unwrap(), "anonymous");
}

#[tokio::test]
async fn a_stateful_server_keeps_the_notes_of_each_session_apart() {
    let directory = Directory::create("examples").unwrap();
    let log = directory.file("notes.log");
    let notes = programs::example("notes").unwrap();
    let launch = Launch::new("notes", notes, log).arguments(SOCKETS);
    let server = Process::start(&launch).unwrap();
    let url = server.announced("shoal: serving MCP on ").await.unwrap();
    let one = Client::of("notes", &["--url", &url], User::default()).await;
    let other = Client::of("notes", &["--url", &url], User::default()).await;
    for (title, text) in [("milk", "two litres"), ("bread", "one")] {
        let noted = one.call("note", json!({ "title": title, "text": text }));
        assert_eq!(noted.await.unwrap(), format!("noted {title}"));
    }
    let milk = json!({ "title": "milk" });
    assert_eq!(one.call("read", milk.clone()).await.unwrap(), "two litres");
    assert_eq!(one.call("titles", json!({})).await.unwrap(), "bread, milk");
    assert_eq!(other.call("titles", json!({})).await.unwrap(), "");
    let missing = other.call("read", milk).await.unwrap_err();
    assert!(missing.contains("there is no note"), "{missing}");
    server.end(SOON).await;
}

#[tokio::test]
async fn a_server_asks_its_user_in_the_middle_of_a_call() {
    let user = User {
        answer: Some(json!({ "guests": 3, "date": "Friday" })),
        ..User::default()
    };
    let willing = Client::of("booking", &[], user).await;
    let table = json!({ "restaurant": "Pesto" });
    let booked = willing.call("book", table.clone()).await;
    assert_eq!(booked.unwrap(), "booked Pesto for 3 on Friday");
    let unwilling = Client::of("booking", &[], User::default()).await;
    assert_eq!(unwilling.call("book", table).await.unwrap(), "not booked");
}

#[tokio::test]
async fn a_worker_within_another_program_joins_a_cluster() {
    let directory = Directory::create("examples").unwrap();
    let log = |name: &str| directory.file(name);
    let node = Launch::new(
        "node",
        programs::example("weather").unwrap(),
        log("node.log"),
    );
    let node = node.arguments(SOCKETS).arguments([
        "--roles",
        "edge,session",
        "--cluster-listen",
        "127.0.0.1:0",
    ]);
    let node = Process::start(&node).unwrap();
    let cluster = node.announced("shoal: cluster on ").await.unwrap();
    let url = node.announced("shoal: serving MCP on ").await.unwrap();
    let worker = Launch::new("worker", programs::example("worker").unwrap(), log("w.log"));
    let worker = Process::start(&worker.arguments([cluster])).unwrap();
    let client = Client::of("weather", &["--url", &url], User::default()).await;
    let joined = async {
        while client.tools().await != ["uptime"] {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, joined).await.unwrap();
    let uptime = client.call("uptime", json!({})).await.unwrap();
    assert!(uptime.parse::<u64>().is_ok(), "{uptime}");
    worker.signal(Signal::SIGTERM).unwrap();
    assert!(worker.exit(SOON).await.unwrap().success());
    node.end(SOON).await;
}

#[tokio::test]
async fn the_command_line_is_the_programs_own() {
    let notes = || Command::new(programs::example("notes").unwrap());
    let (_, help) = output(notes().arg("--help")).await;
    assert!(help.contains("Usage: notes [COMMAND]"), "{help}");
    assert!(help.contains("Without a command: `serve`"), "{help}");
    let (_, version) = output(notes().arg("--version")).await;
    assert!(version.starts_with("notes 0."), "{version}");
    assert!(version.contains(" (shoal 0."), "{version}");
    let (_, shown) = output(notes().args(["config", "show"])).await;
    for line in [
        "[pools.notes]",
        "backend = \"handler\"",
        "concurrency = 32",
        "calls = \"20s\"",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    // The environment variable overrides the author's setting.
    let variable = ("SHOAL_POOLS__NOTES__CONCURRENCY", "7");
    let (_, shown) = output(notes().args(["config", "show"]).env(variable.0, variable.1)).await;
    assert!(shown.contains("concurrency = 7"), "{shown}");
}

#[tokio::test]
async fn a_server_that_is_not_in_the_program_is_told() {
    let shoal = || Command::new(programs::shoal().unwrap());
    let variable = ("SHOAL_POOLS__WEATHER__BACKEND", "handler");
    let mut serve = shoal();
    serve.args(SOCKETS).env(variable.0, variable.1);
    let (status, told) = output(&mut serve).await;
    assert_eq!(status.code(), Some(2), "{told}");
    assert!(told.contains("pools.weather.backend"), "{told}");
    assert!(
        told.contains("start the one that was built with it"),
        "{told}"
    );
    // A program with its own server refuses other pools.
    let mut notes = Command::new(programs::example("notes").unwrap());
    let (status, told) = output(notes.args(SOCKETS).env(variable.0, variable.1)).await;
    assert_eq!(status.code(), Some(2), "{told}");
    assert!(told.contains("brings that of the pool \"notes\""), "{told}");
}
