//! Tests rules on granted scopes, for every way that a request takes.

use futures::{SinkExt as _, StreamExt as _};
use reqwest::Client;
use serde_json::{Value, json};
use shoal_auth::fixture::{AuthorizationServer, SigningKey};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::client::{
    Events, Session, call, initialize, initialized, modern, modern_call, post, post_modern,
    request, response, text,
};
use crate::process::{SOON, Server, shoal};
use crate::reload::redis;

const RESOURCE: &str = "https://mcp.example.com/mcp";
const ANY: &str = "127.0.0.1:0";
const RULES: &str = r#"[
    { name = "sums", effect = "allow", tools = ["add"], scopes = ["math"] },
    { name = "finance", effect = "allow", tools = ["echo"], when = 'has(claims.department) && claims.department == "finance" && issuer == claims.iss' },
    { name = "notes", effect = "allow", resources = ["*"], when = '"read" in scopes' },
]"#;

/// Two tokens of one person: `strong` has the scopes and the claim of the rules, `weak` has neither.
struct Granting {
    issuer: AuthorizationServer,
    strong: String,
    weak: String,
}

impl Granting {
    async fn start() -> Self {
        let key = SigningKey::es256("first");
        let issuer = AuthorizationServer::start(&[&key]).await;
        let mut claims = issuer.claims(RESOURCE);
        let weak = key.token(&claims);
        claims["scope"] = json!("mcp math read");
        claims["department"] = json!("finance");
        let strong = key.token(&claims);
        Self {
            issuer,
            strong,
            weak,
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = shoal(&["serve", "--admin", ANY]);
        let issuers = format!("[{{ issuer = '{}' }}]", self.issuer.issuer);
        command
            .args(arguments)
            .env("SHOAL_AUTH__MODE", "oauth")
            .env("SHOAL_AUTH__RESOURCE", RESOURCE)
            .env("SHOAL_AUTH__ISSUERS", issuers)
            .env("SHOAL_AUTH__REQUIRED_SCOPES", "['mcp']")
            .env("SHOAL_SERVER__WEBSOCKET", "true")
            // Without a learning time, Shoal answers "unknown" for unknown tools at once.
            .env("SHOAL_CLUSTER__LEARNING", "0s")
            .env("SHOAL_POLICY__RULES", RULES);
        command
    }
}

fn add() -> Value {
    json!({ "a": 1, "b": 2 })
}

fn expect(listed: &Value, called: &Value, may: bool) {
    let tools = listed["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{listed}")).iter();
    let names: Vec<_> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
    if may {
        assert_eq!(names, ["add", "echo"]);
        assert_eq!(text(called), r#"{"sum":3.0}"#);
    } else {
        assert_eq!(names, [""; 0]);
        assert_eq!(called["error"]["message"], "unknown tool: add", "{called}");
    }
}

/// The token of each request decides, and not the token that opened the session.
async fn expect_of_session(server: &Server, granting: &Granting) {
    let session = Session::open_as(&server.mcp, Some(&granting.weak)).await;
    let ask = async |token: &str, message: &Value| {
        let asked = post(&server.mcp, message).header("mcp-session-id", &session.id);
        let asked = asked.header("mcp-protocol-version", "2025-11-25");
        response(asked.bearer_auth(token).send().await.unwrap()).await
    };
    for (token, may) in [(&granting.weak, false), (&granting.strong, true)] {
        let listed = ask(token, &request(1, "tools/list", json!({}))).await;
        let called = ask(token, &call(2, "add", add())).await;
        expect(&listed, &called, may);
        let echoed = ask(token, &call(3, "echo", json!({ "text": "mine" }))).await;
        assert_eq!(echoed.get("result").is_some(), may, "{echoed}");
        let read = request(4, "resources/read", json!({ "uri": "demo://readme" }));
        let read = ask(token, &read).await;
        let subscribe = request(5, "resources/subscribe", json!({ "uri": "demo://counter" }));
        let subscribed = ask(token, &subscribe).await;
        for answer in [read, subscribed] {
            assert_eq!(answer.get("result").is_some(), may, "{answer}");
        }
    }
}

async fn expect_of_batch(server: &Server, granting: &Granting) {
    let opened = post(&server.mcp, &initialize(0, "2025-03-26")).bearer_auth(&granting.weak);
    let session = opened.send().await.unwrap().headers()["mcp-session-id"].clone();
    let batch = json!([
        call(1, "add", add()),
        request(2, "tools/list", json!({})),
        request(3, "resources/subscribe", json!({ "uri": "demo://counter" })),
    ]);
    for (token, may) in [(&granting.weak, false), (&granting.strong, true)] {
        let answer = post(&server.mcp, &batch).header("mcp-session-id", &session);
        let answer = answer.bearer_auth(token).send().await.unwrap();
        let said = answer.text().await.unwrap();
        assert_eq!(said.contains("unknown tool: add"), !may, "{said}");
        assert_eq!(said.contains(r#""name":"echo""#), may, "{said}");
        let errors = said.matches(r#""error""#).count();
        assert_eq!(errors, if may { 0 } else { 2 }, "{said}");
    }
}

async fn expect_of_modern(server: &Server, granting: &Granting) {
    for (token, may) in [(&granting.weak, false), (&granting.strong, true)] {
        let ask = async |message: Value| {
            let asked = post_modern(&server.mcp, &message).bearer_auth(token);
            response(asked.send().await.unwrap()).await
        };
        let listed = ask(modern(1, "tools/list", json!({}))).await;
        expect(&listed, &ask(modern_call(2, "add", add())).await, may);
    }
}

async fn expect_of_http_sse(server: &Server, granting: &Granting) {
    let origin = server.mcp.strip_suffix("/mcp").unwrap();
    for (token, may) in [(&granting.weak, false), (&granting.strong, true)] {
        let opened = Client::new()
            .get(format!("{origin}/sse"))
            .bearer_auth(token);
        let opened = opened.header("accept", "text/event-stream").send().await;
        let mut events = Events::of(opened.unwrap());
        let first = events.next().await.unwrap();
        let endpoint = first.lines().find_map(|line| line.strip_prefix("data: "));
        let url = format!("{origin}{}", endpoint.unwrap());
        let send = async |message: &Value| {
            let sent = post(&url, message).bearer_auth(token).send().await;
            assert!(sent.unwrap().status().is_success());
        };
        send(&initialize(0, "2024-11-05")).await;
        events.message().await;
        send(&initialized()).await;
        send(&request(1, "tools/list", json!({}))).await;
        let listed = events.message().await;
        send(&call(2, "add", add())).await;
        expect(&listed, &events.message().await, may);
    }
}

async fn expect_of_websocket(server: &Server, granting: &Granting) {
    let address = server.mcp.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap();
    for (token, may) in [(&granting.weak, false), (&granting.strong, true)] {
        let mut opening = format!("ws://{address}/mcp").into_client_request().unwrap();
        let headers = opening.headers_mut();
        headers.insert("sec-websocket-protocol", "mcp".parse().unwrap());
        let bearer = format!("Bearer {token}").parse().unwrap();
        headers.insert("authorization", bearer);
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut socket, _) = client_async(opening, stream).await.unwrap();
        let mut ask = async |message: Value| {
            let sent = Message::text(message.to_string());
            socket.send(sent).await.unwrap();
            loop {
                let answer = timeout(SOON, socket.next()).await.unwrap().unwrap();
                if let Message::Text(text) = answer.unwrap() {
                    return serde_json::from_str::<Value>(&text).unwrap();
                }
            }
        };
        ask(initialize(0, "2025-11-25")).await;
        let listed = ask(request(1, "tools/list", json!({}))).await;
        expect(&listed, &ask(call(2, "add", add())).await, may);
    }
}

#[tokio::test]
async fn scopes_and_claims_decide_by_every_transport() {
    let granting = Granting::start().await;
    let server = Server::of(granting.command(&["--demo", "--listen", ANY])).await;
    expect_of_session(&server, &granting).await;
    expect_of_batch(&server, &granting).await;
    expect_of_modern(&server, &granting).await;
    expect_of_http_sse(&server, &granting).await;
    expect_of_websocket(&server, &granting).await;
}

#[tokio::test]
async fn an_owner_at_another_node_decides_by_them_too() {
    let granting = Granting::start().await;
    let (_redis, store) = redis().await;
    let shared = ["--cluster-listen", ANY, "--store", &*store];
    let owner = [&["--roles", "session"], &shared[..]].concat();
    let owner = Server::announced(granting.command(&owner)).await;
    let edge = [&["--roles", "edge", "--listen", ANY], &shared[..]].concat();
    let edge = Server::announced(granting.command(&edge)).await;
    let join = ["--roles", "worker", "--demo", "--join", &*owner.cluster];
    let _worker = Server::of(granting.command(&join)).await;
    for node in [&owner, &edge] {
        node.wait_for_readiness(200).await;
    }
    // The edge applies the rules to single calls; the session's owner applies them to lists, batches and subscriptions.
    expect_of_session(&edge, &granting).await;
    expect_of_batch(&edge, &granting).await;
    expect_of_http_sse(&edge, &granting).await;
    expect_of_websocket(&edge, &granting).await;
}
