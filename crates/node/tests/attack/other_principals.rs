//! Access to other principals' sessions, tasks and states, through another edge.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_auth::fixture::{AuthorizationServer, SigningKey};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::client::{Session, request};
use crate::harness::{Family, RESOURCE, Request, address, trusting};
use crate::process::{SOON, Server};

const RULES: &str = "[\
    { name = 'alice', effect = 'allow', principals = ['alice'] }, \
    { name = 'bob', effect = 'allow', principals = ['bob'], tools = ['echo', 'book_table', 'long_job'] }]";

const NO_SESSION: &str = "404 session not found";
const NO_TASK: &str = "400 -32602";

pub(crate) struct Cluster {
    pub(crate) first: Server,
    pub(crate) second: Server,
    pub(crate) alice: String,
    pub(crate) bob: String,
    _issuer: AuthorizationServer,
    _redis: Child,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let (redis, url) = redis().await;
        let key = SigningKey::es256("first");
        let issuer = AuthorizationServer::start(&[&key]).await;
        let mut claims = issuer.claims(RESOURCE);
        let alice = key.token(&claims);
        claims["sub"] = json!("bob");
        let bob = key.token(&claims);
        let start = async || {
            let mut command = trusting(&issuer);
            command
                .env("SHOAL_NODE__STORE", &url)
                .env("SHOAL_CLUSTER__LISTEN", "127.0.0.1:0")
                .env("SHOAL_SERVER__WEBSOCKET", "true")
                .env("SHOAL_TASKS__AFTER", "10ms")
                .env("SHOAL_POLICY__RULES", RULES)
                .env("SHOAL_STATE_KEYS__KEYS", "[{ value = '0123456789abcdef' }]");
            Server::of(command).await
        };
        let (first, second) = (start().await, start().await);
        Self {
            first,
            second,
            alice,
            bob,
            _issuer: issuer,
            _redis: redis,
        }
    }
}

async fn redis() -> (Child, String) {
    loop {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut server = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--port"])
            .arg(port.to_string())
            .args(["--maxmemory-policy", "noeviction"])
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        // Another process may have taken the port meanwhile.
        while server.try_wait().unwrap().is_none() {
            if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return (server, format!("redis://127.0.0.1:{port}"));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

pub(crate) fn legacy(session: &str, body: &Value) -> Request {
    of_session(Request::post(&body.to_string()), session)
}

fn of_session(request: Request, session: &str) -> Request {
    request
        .header("Mcp-Session-Id", session)
        .header("MCP-Protocol-Version", "2025-11-25")
}

fn handshake(session: &str) -> Request {
    Request::of("GET /mcp", "")
        .without("Content-Length")
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header(
            "Sec-WebSocket-Protocol",
            &format!("mcp.resume, mcp.session.{session}"),
        )
}

pub(crate) async fn family(cluster: &Cluster) -> Family {
    let mut family = Family::new("ids of others");
    sessions(&mut family, cluster).await;
    single_streams(&mut family, cluster).await;
    tasks(&mut family, cluster).await;
    states(&mut family, cluster).await;
    family
}

async fn sessions(family: &mut Family, cluster: &Cluster) {
    let (first, second) = (&cluster.first.mcp, &cluster.second.mcp);
    let session = Session::open_as(first, Some(&cluster.alice)).await.id;
    let list = legacy(&session, &request(1, "tools/list", json!({})));
    let get = || {
        of_session(
            Request::of("GET /mcp", "").header("Accept", "text/event-stream"),
            &session,
        )
    };
    let delete = of_session(Request::of("DELETE /mcp", ""), &session);
    let own = list.clone().bearer(&cluster.alice).send(second).await;
    family.row("none, as a control: one's own session", "200 echo", own);
    for (attack, expected, request) in [
        ("a request in another's session", NO_SESSION, list.clone()),
        ("a stream of another's session", NO_SESSION, get()),
        (
            "a stream from the beginning",
            NO_SESSION,
            get().header("Last-Event-ID", "1-0-0"),
        ),
        (
            "a stream of a call",
            NO_SESSION,
            get().header("Last-Event-ID", "1-1-0"),
        ),
        ("the end of another's session", NO_SESSION, delete.clone()),
        (
            "a WebSocket of another's session",
            NO_SESSION,
            handshake(&session),
        ),
        (
            "HTTP+SSE into another's session",
            NO_SESSION,
            Request::of(
                &format!("POST /messages?sessionId={session}"),
                &request(1, "ping", json!({})).to_string(),
            )
            .header("Content-Type", "application/json"),
        ),
    ] {
        for (edge, url) in [("its own edge", first), ("another edge", second)] {
            let got = request.clone().bearer(&cluster.bob).send(url).await;
            family.row(format!("{attack}, at {edge}"), expected, got);
        }
    }
    for (attack, expected, id) in [
        (
            "a session's id with more behind it",
            NO_SESSION,
            format!("{session}a"),
        ),
        (
            "a part of a session's id",
            NO_SESSION,
            session[..session.len() - 1].to_owned(),
        ),
        ("a pattern for a session's id", NO_SESSION, "*".to_owned()),
        (
            "a path for a session's id",
            NO_SESSION,
            format!("../{session}"),
        ),
        ("an id that is too long", "400", "a".repeat(129)),
        ("two sessions", "404", format!("{session},{session}")),
    ] {
        let got = list
            .clone()
            .header("Mcp-Session-Id", &id)
            .bearer(&cluster.alice);
        family.row(attack, expected, got.send(second).await);
    }
    family.row(
        "a session without a token",
        "401",
        list.clone().send(second).await,
    );
    family.row(
        "the end of a session without a token",
        "401",
        delete.send(second).await,
    );
    let after = list.bearer(&cluster.alice).send(first).await;
    family.row("the session lives after all this", "200 echo", after);
}

async fn single_streams(family: &mut Family, cluster: &Cluster) {
    let (first, second) = (&cluster.first.mcp, &cluster.second.mcp);
    let open = Request::of("GET /sse", "")
        .without("Content-Length")
        .bearer(&cluster.alice);
    let mut stream = TcpStream::connect(address(first)).await.unwrap();
    stream.write_all(&open.bytes()).await.unwrap();
    let mut told = String::new();
    let endpoint = async {
        let mut bytes = [0; 1024];
        loop {
            let length = stream.read(&mut bytes).await.unwrap();
            assert_ne!(length, 0, "{told}");
            told.push_str(&String::from_utf8_lossy(&bytes[..length]));
            if let Some((_, rest)) = told.split_once("data: ")
                && let Some((path, _)) = rest.split_once(['\r', '\n'])
            {
                return path.to_owned();
            }
        }
    };
    let path = timeout(SOON, endpoint).await.unwrap();
    let ping = request(1, "ping", json!({})).to_string();
    let ping =
        Request::of(&format!("POST {path}"), &ping).header("Content-Type", "application/json");
    for (edge, url) in [("its own edge", first), ("another edge", second)] {
        let got = ping.clone().bearer(&cluster.bob).send(url).await;
        family.row(
            format!("a message to another's HTTP+SSE, at {edge}"),
            NO_SESSION,
            got,
        );
    }
    family.row(
        "a message to HTTP+SSE without a token",
        "401",
        ping.send(second).await,
    );
}

async fn tasks(family: &mut Family, cluster: &Cluster) {
    let (first, second) = (&cluster.first.mcp, &cluster.second.mcp);
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let job = json!({ "name": "long_job", "arguments": { "steps": 10_000, "interval_ms": 1000 } });
    let start = Request::able("tools/call", job, &able).bearer(&cluster.alice);
    let told = start.send(first).await;
    let id = member(&told, "taskId").unwrap_or_else(|| panic!("{told}"));
    let ask = |method: &str, id: &str| {
        let mut params = json!({ "taskId": id });
        if method == "tasks/update" {
            params["inputResponses"] = json!({});
        }
        Request::able(method, params, &able)
    };
    let own = ask("tasks/get", &id)
        .bearer(&cluster.alice)
        .send(second)
        .await;
    family.row("none, as a control: one's own task", "200 working", own);
    let unknown = ask("tasks/get", "task-that-never-was").bearer(&cluster.bob);
    family.row("a task that never was", NO_TASK, unknown.send(second).await);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for (edge, url) in [("its own edge", first), ("another edge", second)] {
            let got = ask(method, &id).bearer(&cluster.bob).send(url).await;
            family.row(
                format!("{method} of another's task, at {edge}"),
                NO_TASK,
                got,
            );
        }
        family.row(
            format!("{method} without a token"),
            "401",
            ask(method, &id).send(second).await,
        );
    }
    let as_session = legacy(&id, &request(1, "ping", json!({}))).bearer(&cluster.alice);
    family.row(
        "a task as a session",
        NO_SESSION,
        as_session.send(second).await,
    );
    let after = ask("tasks/get", &id)
        .bearer(&cluster.alice)
        .send(first)
        .await;
    family.row("the task works after all this", "200 working", after);
    let end = ask("tasks/cancel", &id)
        .bearer(&cluster.alice)
        .send(first)
        .await;
    family.row("its owner ends it", "200", end);
}

async fn states(family: &mut Family, cluster: &Cluster) {
    let (first, second) = (&cluster.first.mcp, &cluster.second.mcp);
    let able = json!({ "elicitation": { "form": {} } });
    let table = |restaurant: &str| json!({ "name": "book_table", "arguments": { "restaurant": restaurant } });
    let asked = Request::able("tools/call", table("Chez Ada"), &able);
    let asked = asked.bearer(&cluster.alice).send(first).await;
    let state = member(&asked, "requestState").unwrap_or_else(|| panic!("{asked}"));
    let (_, asked) = asked.split_once("\"inputRequests\":{\"").unwrap();
    let (question, _) = asked.split_once('"').unwrap();
    let answer = |params: Value, state: &str| {
        let mut params = params;
        params["requestState"] = json!(state);
        params["inputResponses"] = json!({ question: { "action": "decline" } });
        Request::able("tools/call", params, &able)
    };
    let half = state.len() / 2;
    let other = if &state[half..=half] == "A" { "B" } else { "A" };
    let tampered = format!("{}{other}{}", &state[..half], &state[half + 1..]);
    let echo = json!({ "name": "echo", "arguments": { "text": "hello" } });
    for (attack, request, token) in [
        (
            "another's state",
            answer(table("Chez Ada"), &state),
            &cluster.bob,
        ),
        (
            "a state that was changed",
            answer(table("Chez Ada"), &tampered),
            &cluster.alice,
        ),
        (
            "a part of a state",
            answer(table("Chez Ada"), &state[..half]),
            &cluster.alice,
        ),
        (
            "an empty state",
            answer(table("Chez Ada"), ""),
            &cluster.alice,
        ),
        (
            "a state of other arguments",
            answer(table("Elsewhere"), &state),
            &cluster.alice,
        ),
        (
            "a state of another tool",
            answer(echo, &state),
            &cluster.alice,
        ),
    ] {
        let got = request.bearer(token).send(second).await;
        family.row(attack, "200 requestState is not valid", got);
    }
    let own = answer(table("Chez Ada"), &state).bearer(&cluster.alice);
    let changed = own.body.replace("decline", "cancel");
    for (attack, url) in [
        ("one's own state, at another edge", second),
        (
            "the same state with another answer: what was done stays",
            second,
        ),
        ("the same where it was made", first),
    ] {
        let mut request = own.clone();
        if attack != "one's own state, at another edge" {
            request = request.header("Content-Length", &changed.len().to_string());
            changed.clone_into(&mut request.body);
        }
        family.row(attack, "200 not booked: declined", request.send(url).await);
    }
}

fn member(answer: &str, name: &str) -> Option<String> {
    let (_, rest) = answer.split_once(&format!("\"{name}\":\""))?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}
