use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use shoal_testkit::cluster::{Cluster, Member, Tools};

use crate::client::{Client, within};
use crate::{LEASE, start};

const SOON: Duration = Duration::from_secs(40);

async fn three_edges(lease: Duration) -> Cluster {
    let builder = Cluster::builder().edges(3).sessions(2).workers(2);
    start(builder.lease(lease).tools(Tools::Chaos)).await
}

struct Console<'a> {
    node: &'a Member,
    http: reqwest::Client,
}

impl<'a> Console<'a> {
    fn of(node: &'a Member) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { node, http }
    }

    async fn ask(&self, method: Method, path: &str) -> (StatusCode, Value) {
        let url = format!("http://{}/console/api/{path}", self.node.admin().address());
        let request = self
            .http
            .request(method, url)
            .header("x-shoal-console", "1");
        let answer = within(request.send()).await.unwrap();
        (answer.status(), within(answer.json()).await.unwrap())
    }

    async fn post(&self, path: &str, body: String) -> (StatusCode, Value) {
        let url = format!("http://{}/console/api/{path}", self.node.admin().address());
        let request = self.http.post(url).header("x-shoal-console", "1");
        let answer = within(request.body(body).send()).await.unwrap();
        let status = answer.status();
        let text = within(answer.text()).await.unwrap();
        let last = text.lines().rev().find(|line| line.contains('{')).unwrap();
        let last = last.trim_start_matches("data: ");
        (status, serde_json::from_str(last).unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(Method::GET, path).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn until(&self, path: &str, right: impl Fn(&Value) -> bool) -> Value {
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            let body = self.get(path).await;
            if right(&body) {
                return body;
            }
            assert!(tokio::time::Instant::now() < deadline, "{path}: {body}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn items(listing: &Value) -> &[Value] {
    listing["items"].as_array().unwrap()
}

fn texts<'v>(items: &'v [Value], member: &str) -> Vec<&'v str> {
    items
        .iter()
        .filter_map(|item| item[member].as_str())
        .collect()
}

async fn sessions_on_both_nodes(cluster: &Cluster, console: &Console<'_>) -> Vec<Client> {
    let mut clients = Vec::new();
    loop {
        clients.push(Client::open(cluster.url()).await);
        let sessions = console.get("sessions").await;
        let mut owners = texts(items(&sessions), "node");
        owners.sort_unstable();
        owners.dedup();
        if owners.len() == 2 {
            return clients;
        }
        assert!(clients.len() < 50, "one node takes them all: {sessions}");
    }
}

#[tokio::test]
async fn any_edge_shows_all_nodes_and_ends_a_session_of_another() {
    let cluster = three_edges(LEASE).await;
    let console = Console::of(cluster.edges()[0]);
    let clients = sessions_on_both_nodes(&cluster, &console).await;

    let sessions = console.get("sessions").await;
    assert_eq!(sessions["total"], clients.len(), "{sessions}");
    assert_eq!(sessions["unseen"], json!([]), "{sessions}");
    let mut listed = texts(items(&sessions), "id");
    let mut opened: Vec<&str> = clients.iter().map(Client::session).collect();
    listed.sort_unstable();
    opened.sort_unstable();
    assert_eq!(listed, opened);
    assert_eq!(items(&sessions)[0]["client"], "test 1", "{sessions}");

    let few = console.get("sessions?limit=1").await;
    assert_eq!((items(&few).len(), &few["total"]), (1, &sessions["total"]));
    let victim = clients[0].session();
    let found = console.get(&format!("sessions?filter={victim}")).await;
    assert_eq!(texts(items(&found), "id"), [victim]);
    let detail = console.get(&format!("sessions/{victim}")).await;
    assert_eq!(detail["session"]["revision"], "2025-11-25", "{detail}");
    assert_eq!(detail["log_level"], "info", "{detail}");

    let path = format!("sessions/{victim}/end");
    let (status, ended) = console.ask(Method::POST, &path).await;
    assert_eq!((status.as_u16(), &ended["node"]), (200, &detail["node"]));
    let answer = clients[0].call(1, "echo", &json!({ "nonce": "n" })).await;
    assert_eq!(answer.status, 404, "{answer:?}");
    clients[1].echo_patiently(2).await;
    let (status, _) = console.ask(Method::POST, &path).await;
    assert_eq!(status, 404, "there is nothing left to end");

    let seen = console.get("overview").await;
    let nodes = seen["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 5, "{seen}");
    assert!(nodes.iter().all(|node| node["trouble"].is_null()), "{seen}");
    let pool = &seen["pools"].as_array().unwrap()[0];
    assert_eq!(pool["workers"].as_array().unwrap().len(), 2, "{seen}");
    assert_eq!(pool["workers"][0]["reached_by"], 5, "{seen}");
}

#[tokio::test]
async fn calls_on_other_nodes_are_seen_and_cancelled() {
    let cluster = three_edges(LEASE).await;
    let [first, _, last] = cluster.edges()[..] else {
        panic!("three edges")
    };
    let client = Client::open(last.mcp_url().unwrap()).await;
    let arguments = json!({ "nonce": "long", "ms": 600_000 });
    let mut events = client.stream(1, "long", &arguments).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let modern = tokio::spawn(modern_call(http, last.mcp_url().unwrap().to_owned()));

    let console = Console::of(first);
    let both = |calls: &Value| texts(items(calls), "worker").len() == 2;
    let calls = console.until("calls", both).await;
    let calls = items(&calls);
    assert_eq!(texts(calls, "target"), ["long", "long"]);
    let of_session = |call: &&Value| call["session"] == client.session();
    let legacy = calls.iter().find(of_session).unwrap();
    let other = calls.iter().find(|call| call["session"].is_null()).unwrap();
    assert_eq!(
        (&legacy["modern"], &other["modern"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(legacy["journaled"], true, "{legacy}");
    assert_ne!(
        legacy["node"], other["node"],
        "a session node's, and the edge's"
    );
    let detail = console.get(&format!("sessions/{}", client.session())).await;
    assert_eq!(detail["calls"][0]["id"], legacy["id"], "{detail}");

    for call in [legacy, other] {
        let id = call["id"].as_str().unwrap();
        let path = format!("calls/{id}/cancel");
        let (status, done) = console.ask(Method::POST, &path).await;
        assert_eq!((status.as_u16(), &done["node"]), (200, &call["node"]));
    }
    let rest = events.rest().await;
    assert_eq!(rest.last().unwrap()["error"]["code"], -32800, "{rest:?}");
    let answer = within(modern).await.unwrap();
    assert!(answer.contains("-32800"), "{answer}");
    console.until("calls", |calls| calls["total"] == 0).await;
    client.echo_patiently(2).await;
}

#[tokio::test]
async fn a_node_that_does_not_answer_holds_up_nobody() {
    // With a long lease, the paused node does not count as dead.
    let cluster = three_edges(Duration::from_secs(120)).await;
    let console = Console::of(cluster.edges()[0]);
    let clients = sessions_on_both_nodes(&cluster, &console).await;
    let paused = cluster.sessions()[0];
    paused.pause().await.unwrap();
    // Waits, because SIGSTOP takes effect with a delay.
    let stopped = |sessions: &Value| sessions["unseen"] != json!([]);
    let sessions = console.until("sessions", stopped).await;
    let unseen = sessions["unseen"].as_array().unwrap();
    assert_eq!(unseen.len(), 1, "{sessions}");
    assert!(unseen[0]["reason"].as_str().unwrap().contains("reached"));
    assert!(items(&sessions).len() < clients.len(), "{sessions}");
    assert!(!items(&sessions).is_empty(), "{sessions}");
    let overview = console.get("overview").await;
    let nodes = overview["nodes"].as_array().unwrap();
    let troubled = |node: &&Value| !node["trouble"].is_null();
    assert_eq!(nodes.iter().filter(troubled).count(), 1, "{overview}");
    // The console cannot tell whether the call runs on the paused node.
    let path = "calls/00000000-0000-7000-8000-000000000000/cancel";
    let (status, _) = console.ask(Method::POST, path).await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    paused.resume().await.unwrap();
}

#[tokio::test]
async fn errors_are_told_with_their_traces_by_every_node() {
    let cluster = three_edges(LEASE).await;
    let [first, second, _] = cluster.edges()[..] else {
        panic!("three edges")
    };
    let client = Client::open(second.mcp_url().unwrap()).await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let meta = json!({ "traceparent": format!("00-{trace}-b7ad6b7169203331-01") });
    let params = json!({ "name": "no_such_tool", "arguments": {}, "_meta": meta });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    client.post(&request).await;
    let console = Console::of(first);
    let errors = console.until("errors", |errors| errors["total"] == 1).await;
    let error = &items(&errors)[0];
    assert_eq!(
        (&error["trace"], &error["code"]),
        (&json!(trace), &json!(-32602))
    );
    assert_eq!(error["target"], "no_such_tool");
    assert_eq!(error["session"], client.session());
    let counted = |seen: &Value| {
        let rates = seen["rates"].as_array().unwrap();
        let rejected = rates.iter().filter_map(|step| step["rejected"].as_u64());
        rejected.sum::<u64>() == 1
    };
    console.until("overview", counted).await;
}

#[tokio::test]
async fn calls_of_a_tool_are_counted_at_all_edges() {
    let cluster = three_edges(LEASE).await;
    let [first, second, last] = cluster.edges()[..] else {
        panic!("three edges")
    };
    for edge in [second, last] {
        let client = Client::open(edge.mcp_url().unwrap()).await;
        client.echo_patiently(1).await;
    }
    let console = Console::of(first);
    let call = json!({ "arguments": { "nonce": "n" } }).to_string();
    let called = console.post("tools/echo/call", call.clone()).await;
    let text = &called.1["result"]["content"][0]["text"];
    assert_eq!(
        (called.0, text),
        (StatusCode::OK, &json!("n")),
        "{}",
        called.1
    );
    let echo = |listed: &Value| {
        let mut tools = items(listed).iter();
        tools.find(|tool| tool["name"] == "echo").unwrap().clone()
    };
    let all = |listed: &Value| echo(listed)["outcomes"]["ok"] == 3;
    let listed = console.until("tools?filter=ECHO", all).await;
    let shown = echo(&listed);
    assert!(shown["rate"].as_f64().unwrap() > 0.0, "{shown}");
    assert!(shown["p95_ms"].as_f64().unwrap() > 0.0, "{shown}");
    assert_eq!(
        (&listed["unseen"], &listed["calls_off"]),
        (&json!([]), &Value::Null)
    );

    let other = Console::of(cluster.sessions()[0]);
    let listed = other.get("tools").await;
    assert_eq!(echo(&listed)["outcomes"]["ok"], 3, "{listed}");
    assert!(
        listed["calls_off"].as_str().unwrap().contains("no edge"),
        "{listed}"
    );
    assert_eq!(other.get("tools/echo").await["definition"]["name"], "echo");
    assert_eq!(
        other.post("tools/echo/call", call).await.0,
        StatusCode::FORBIDDEN
    );
}

#[tokio::test]
async fn what_a_lost_node_did_is_known_where_nobody_looked_before() {
    let cluster = three_edges(LEASE).await;
    let [first, second, victim] = cluster.edges()[..] else {
        panic!("three edges")
    };
    let client = Client::open(victim.mcp_url().unwrap()).await;
    client
        .post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "no_such_method" }))
        .await;
    let rejected = |seen: &Value| {
        let rates = seen["rates"].as_array().unwrap();
        let rejected = rates.iter().filter_map(|step| step["rejected"].as_u64());
        rejected.sum::<u64>() == 1
    };
    Console::of(first).until("overview", rejected).await;
    victim.kill().await.unwrap();
    let lost = |seen: &Value| {
        let lost = seen["lost"].as_array().unwrap();
        rejected(seen) && lost.iter().any(|lost| lost["until"].is_u64())
    };
    Console::of(second).until("overview", lost).await;
}

async fn modern_call(http: reqwest::Client, url: String) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let arguments = json!({ "nonce": "modern", "ms": 600_000 });
    let params = json!({ "name": "long", "arguments": arguments, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let post = http.post(url).json(&call);
    let post = post
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "long");
    let answer = post.send().await.unwrap();
    answer.text().await.unwrap()
}
