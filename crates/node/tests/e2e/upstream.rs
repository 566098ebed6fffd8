//! Tests one Shoal in front of others.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::client::{Session, call, modern_call, post_modern, request, response, text};
use crate::process::{SHARED, SOON, Server, shoal};
use crate::reload::setting::{ConfigFile, Seen, until};
use crate::serve::FIXTURE;

fn address(server: &Server) -> String {
    let address = server.mcp.trim_start_matches("http://");
    address.trim_end_matches("/mcp").to_owned()
}

async fn echo(session: &Session, id: u64, said: &str) -> Value {
    session
        .ask(&call(id, "echo", json!({ "text": said })))
        .await
}

#[tokio::test]
async fn a_server_is_put_behind_by_its_url() {
    let upstream = Server::start(&["--demo"]).await;
    let server = Server::start(&[&upstream.mcp]).await;
    let session = Session::open(&server.mcp).await;
    let tools = session.ask(&request(1, "tools/list", json!({}))).await;
    assert!(tools["result"]["tools"].as_array().unwrap().len() > 5);
    assert_eq!(text(&echo(&session, 2, "legacy").await), "legacy");
    let once = call(3, "echo_once", json!({ "text": "once" }));
    assert_eq!(text(&session.ask(&once).await), "once");
    let echo = modern_call(4, "echo", json!({ "text": "modern" }));
    let answer = post_modern(&server.mcp, &echo).send().await.unwrap();
    assert_eq!(text(&response(answer).await), "modern");
}

/// Each call must be answered in its session while `crash` stops the tool's server.
async fn under_load(server: &Server, tool: &str, mut crash: impl AsyncFnMut()) {
    let sessions = [
        Session::open(&server.mcp).await,
        Session::open(&server.mcp).await,
    ];
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let load = sessions.iter().enumerate().flat_map(|(at, session)| {
        let (over, answered) = (&over, &answered);
        (0..8).map(move |of| async move {
            for count in 1.. {
                let id = (at * 8 + of) * 1_000_000 + count;
                let said = json!({ "text": id.to_string() });
                let answer = session.ask(&call(id as u64, tool, said)).await;
                assert_eq!(text(&answer), id.to_string());
                answered.fetch_add(1, Ordering::Relaxed);
                if over.load(Ordering::Relaxed) {
                    break;
                }
            }
        })
    });
    let goes_on = async || {
        let enough = answered.load(Ordering::Relaxed) + 100;
        let wait = async {
            while answered.load(Ordering::Relaxed) < enough {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        // Enough time for a hundred calls, and for the growing pauses before restarts.
        tokio::time::timeout(SOON * 3, wait)
            .await
            .expect("calls are answered");
    };
    let crashes = async {
        goes_on().await;
        for _ in 0..3 {
            crash().await;
            goes_on().await;
        }
        over.store(true, Ordering::Relaxed);
    };
    tokio::join!(futures::future::join_all(load), crashes);
}

#[tokio::test]
async fn no_client_notices_that_the_server_is_restarted_under_load() {
    let mut upstream = Server::start(&["--demo"]).await;
    let listen = address(&upstream);
    let server = Server::start(&[&upstream.mcp]).await;
    let restart = async || {
        upstream.signal(Signal::SIGKILL);
        upstream.exit_code().await;
        upstream = Server::start(&["--demo", "--listen", &listen]).await;
    };
    under_load(&server, "echo", restart).await;
}

#[tokio::test]
async fn no_client_notices_that_the_server_crashes_under_load() {
    let server = Server::start_with(&["--", "python3", "-u", FIXTURE], &[SHARED]).await;
    let session = Session::open(&server.mcp).await;
    let crash = async || {
        let asked = call(1, "process", json!({ "text": "" }));
        let pid = text(&session.ask(&asked).await).parse().unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    };
    under_load(&server, "shout", crash).await;
}

#[tokio::test]
async fn one_of_several_servers_may_go_away() {
    let servers = [
        Server::start(&["--demo"]).await,
        Server::start(&["--demo"]).await,
    ];
    let server = Server::start(&[&servers[0].mcp, &servers[1].mcp]).await;
    let session = Session::open(&server.mcp).await;
    let [first, second] = servers;
    drop(first);
    for id in 1..20 {
        let said = id.to_string();
        assert_eq!(text(&echo(&session, id, &said).await), said);
    }
    server.wait_for_readiness(200).await;
    drop(second);
    let refused = echo(&session, 20, "nobody").await;
    assert!(
        refused["error"]["code"].as_i64().unwrap() >= 50_300,
        "{refused}"
    );
}

/// The servers are behind a Shoal with the settings `more`. One of them runs a call that waits for a file.
struct Pair {
    servers: [Server; 2],
    processes: Vec<String>,
    _front: Server,
    config: ConfigFile,
    asked: JoinHandle<Value>,
    busy: usize,
}

impl Pair {
    async fn with_a_call(of: &str, more: &str) -> Self {
        let serve = ["--", "python3", "-u", FIXTURE];
        let servers = [
            Server::start_with(&serve, &[SHARED]).await,
            Server::start_with(&serve, &[SHARED]).await,
        ];
        let mut processes = Vec::new();
        for server in &servers {
            processes.push(Seen::of(server).await.call("process", "").await);
        }
        let [first, second] = [&servers[0].mcp, &servers[1].mcp];
        let config = ConfigFile::new(&format!(
            "[pools.remote]\nbackend = {{ http = {{ urls = ['{first}', '{second}'] {of} }} }}\n{more}"
        ));
        let front = Server::start(&["--config", config.path()]).await;
        let (url, file) = (front.mcp.clone(), config.beside("go"));
        let asked = tokio::spawn(async move {
            let session = Session::open(&url).await;
            let wait = call(1, "wait", json!({ "text": file.to_str().unwrap() }));
            session.ask(&wait).await
        });
        let mut busy = None;
        until(async || {
            for (at, server) in servers.iter().enumerate() {
                // A call that is still held has no stream that the front could resume.
                if server.status().await["sessions"]["journaled"] == 1 {
                    busy = Some(at);
                }
            }
            busy.is_some()
        })
        .await;
        Self {
            servers,
            processes,
            _front: front,
            config,
            asked,
            busy: busy.unwrap(),
        }
    }

    async fn kill_the_busy_one(&mut self) {
        let busy = &mut self.servers[self.busy];
        busy.signal(Signal::SIGKILL);
        busy.exit_code().await;
    }

    async fn answer(self) -> Value {
        let answered = tokio::time::timeout(SOON, self.asked).await;
        answered.expect("it ends").unwrap()
    }
}

#[tokio::test]
async fn a_call_that_may_be_repeated_runs_at_another_server_when_its_own_is_lost() {
    let safe = "[pools.remote.tools.hints]\nwait = { idempotent = true }\n";
    let mut pair = Pair::with_a_call("", safe).await;
    pair.kill_the_busy_one().await;
    let other = 1 - pair.busy;
    pair.servers[other].wait_for_calls(1).await;
    std::fs::write(pair.config.beside("go"), "").unwrap();
    let pid = pair.processes[other].clone();
    assert_eq!(text(&pair.answer().await), pid);
}

#[tokio::test]
async fn a_call_that_may_not_be_repeated_ends_when_its_server_does_not_come_back() {
    let mut pair = Pair::with_a_call(", resume_for = '1s'", "").await;
    pair.kill_the_busy_one().await;
    std::fs::write(pair.config.beside("go"), "").unwrap();
    let ended = pair.answer().await;
    assert_eq!(ended["error"]["code"], 50_002, "{ended}");
    assert!(
        ended.to_string().contains("could not be resumed in time"),
        "{ended}"
    );
}

#[tokio::test]
async fn what_cannot_be_a_server_is_refused_at_once() {
    for (url, told) in [
        ("ftp://host/mcp", "no URL of an MCP endpoint"),
        ("http://user:secret@host/mcp", "must not hold a password"),
    ] {
        let output = shoal(&["serve", url]).output().await.unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(told), "{error}");
    }
}

async fn observed() -> (Child, String) {
    let script = "/../worker/tests/fixtures/streamable.py";
    let mut child = Command::new("python3")
        .arg("-u")
        .arg([env!("CARGO_MANIFEST_DIR"), script].concat())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap().expect("it starts");
    (child, url)
}

#[tokio::test]
async fn headers_of_clients_reach_the_server_where_its_pool_names_them() {
    let (_upstream, url) = observed().await;
    let pool = format!("{{ http = {{ url = '{url}', forward = ['X-Team'] }} }}");
    let environment = [("SHOAL_POOLS__REMOTE__BACKEND", &*pool)];
    let server = Server::start_with(&[], &environment).await;
    let seen = async || {
        let seen = reqwest::get(url.replace("/mcp", "/seen")).await.unwrap();
        let seen: Value = seen.json().await.unwrap();
        let call = &seen["headers"]["tools/call"];
        (call["x-team"].clone(), call["x-other"].clone())
    };
    let session = Session::open(&server.mcp).await;
    let legacy = session.post(&call(1, "echo", json!({ "text": "x" })));
    let modern = post_modern(&server.mcp, &modern_call(2, "echo", json!({ "text": "x" })));
    for (request, team) in [(legacy, "blue"), (modern, "red")] {
        let request = request.header("x-team", team).header("x-other", "no");
        let answer = response(request.send().await.unwrap()).await;
        assert_eq!(text(&answer), "x");
        assert_eq!(seen().await, (json!(team), Value::Null));
    }
    assert_eq!(text(&echo(&session, 3, "x").await), "x");
    assert_eq!(seen().await, (Value::Null, Value::Null));
}

#[tokio::test]
async fn headers_that_cannot_be_passed_on_are_refused_by_the_check() {
    let pool = "{ http = { url = 'http://localhost/mcp', forward = ['Mcp-Session-Id'] } }";
    let mut check = shoal(&["config", "check"]);
    let output = check.env("SHOAL_POOLS__REMOTE__BACKEND", pool).output();
    let output = output.await.unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("backend.http.forward"), "{error}");
}
