use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{Session, call, modern, modern_call, post_modern, request, response, text};
use crate::command::output;
use crate::process::{SOON, Server};
use crate::reload::setting::{ConfigFile, until};
use crate::telemetry::Collector;

const RULES: &str = r#"
[[policy.rules]]
name = "all"
effect = "allow"

[[policy.rules]]
name = "no jobs"
effect = "deny"
tools = ["long_job"]

[[quotas]]
name = "sums"
per = "principal"
tools = ["add"]
rate = "1/h"
burst = 1

[audit]
arguments = ["ec*"]
"#;

async fn server(environment: &[(&str, &str)]) -> Server {
    let hashed = output(&["config", "hash-token"], "alice's token").await;
    let tokens = format!(
        "[{{ name = 'alice', sha256 = '{}' }}]",
        hashed.stdout.trim()
    );
    let config = ConfigFile::new(RULES);
    let operators = format!(
        "[{{ name = 'vera', role = 'viewer', sha256 = '{}' }}, {{ name = 'olaf', role = 'operator', sha256 = '{}' }}]",
        output(&["config", "hash-token"], "vera")
            .await
            .stdout
            .trim(),
        output(&["config", "hash-token"], "olaf")
            .await
            .stdout
            .trim()
    );
    let own = [
        ("SHOAL_SERVER__OPERATORS", operators.as_str()),
        ("SHOAL_AUTH__MODE", "tokens"),
        ("SHOAL_AUTH__TOKENS", tokens.as_str()),
    ];
    let environment = [&own, environment].concat();
    Server::start_with(&["--demo", "--config", config.path()], &environment).await
}

async fn ask(server: &Server, id: u64, tool: &str, arguments: Value) -> Value {
    let asked = post_modern(&server.mcp, &modern_call(id, tool, arguments));
    let answer = asked.bearer_auth("alice's token").send().await.unwrap();
    response(answer).await
}

pub(crate) fn read(file: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(crate) fn count(events: &[Value], kind: &str, members: Value) -> usize {
    let members = members.as_object().unwrap();
    let fits = |event: &&Value| {
        event["event.name"] == format!("shoal.audit.{kind}")
            && members.iter().all(|(name, value)| event[name] == *value)
    };
    events.iter().filter(fits).count()
}

#[tokio::test]
async fn decisions_and_ends_stand_in_the_file() {
    let place = ConfigFile::new("");
    let file = place.beside("audit.jsonl");
    let mut server = server(&[("SHOAL_AUDIT__FILE", file.to_str().unwrap())]).await;

    let list = request(1, "tools/list", json!({}));
    let missing = crate::client::post(&server.mcp, &list)
        .send()
        .await
        .unwrap();
    let unknown = crate::client::post(&server.mcp, &list).bearer_auth("no token");
    let unknown = unknown.header("user-agent", "\"}\t{").send().await.unwrap();
    assert_eq!(
        (missing.status(), unknown.status()),
        (401.try_into().unwrap(), 401.try_into().unwrap())
    );

    let session = Session::open_as(&server.mcp, Some("alice's token")).await;
    let said = "a\nb\u{2028}\"";
    let echo = session
        .ask(&call(
            2,
            "echo",
            json!({ "text": said, "Api-Key": "hidden" }),
        ))
        .await;
    assert!(echo["result"].is_object(), "{echo}");
    let unreadable = session.ask(&call(6, "echo", json!({ "text": 5 }))).await;
    assert_ne!(unreadable["result"]["isError"], false, "{unreadable}");
    let denied = session.ask(&call(3, "long_job", json!({}))).await;
    assert_eq!(denied["error"]["message"], "unknown tool: long_job");
    let sum = ask(&server, 4, "add", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(text(&sum), r#"{"sum":3.0}"#);
    let refused = ask(&server, 5, "add", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(refused["error"]["code"], 50300, "{refused}");
    let ends = format!("{}/console/api/sessions/{}/end", server.admin, session.id);
    for (token, status) in [("nobody", 401), ("vera", 403), ("olaf", 200)] {
        let end = reqwest::Client::new()
            .post(&ends)
            .header("x-shoal-console", "1");
        let answer = end.bearer_auth(token).send().await.unwrap();
        assert_eq!(answer.status(), status, "{token}");
    }
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());

    let events = read(&file);
    let one = |kind, members: Value| {
        assert_eq!(
            count(&events, kind, members.clone()),
            1,
            "{kind} {members} of {events:#?}"
        );
    };
    let from = "127.0.0.1";
    one(
        "authentication",
        json!({ "shoal.outcome": "missing", "client.address": from }),
    );
    one(
        "authentication",
        json!({ "shoal.outcome": "invalid", "client.address": from, "user_agent.original": "\"}\t{" }),
    );
    assert!(
        count(
            &events,
            "authentication",
            json!({ "shoal.outcome": "accepted", "enduser.id": "alice", "shoal.auth.method": "bearer" })
        ) >= 5
    );
    one(
        "policy",
        json!({ "shoal.outcome": "denied", "shoal.policy.rule": "no jobs", "gen_ai.tool.name": "long_job", "enduser.id": "alice" }),
    );
    one(
        "policy",
        json!({ "shoal.outcome": "allowed", "shoal.policy.rule": "all", "gen_ai.tool.name": "echo", "enduser.id": "alice" }),
    );
    one("policy", json!({ "shoal.outcome": "allowed" }));
    one(
        "quota",
        json!({ "shoal.quota": "sums", "enduser.id": "alice" }),
    );
    let session = session.id.clone();
    let path = format!("/console/api/sessions/{session}/end");
    for (by, status) in [
        (Value::Null, 401),
        (json!("vera"), 403),
        (json!("olaf"), 200),
    ] {
        one(
            "admin",
            json!({ "enduser.id": by, "http.response.status_code": status, "url.path": path }),
        );
    }
    one(
        "call",
        json!({ "gen_ai.tool.name": "echo", "shoal.outcome": "completed", "mcp.session.id": session, "enduser.id": "alice",
        "mcp.protocol.version": "2025-11-25", "mcp.method.name": "tools/call", "shoal.policy.rule": "all" }),
    );
    one(
        "call",
        json!({ "gen_ai.tool.name": "add", "mcp.protocol.version": "2026-07-28", "gen_ai.tool.call.arguments": null,
        "shoal.policy.rule": "all" }),
    );
    let echoed = events
        .iter()
        .find(|event| event["gen_ai.tool.name"] == "echo" && !event["shoal.call.id"].is_null());
    let arguments = echoed.unwrap()["gen_ai.tool.call.arguments"]
        .as_str()
        .unwrap();
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    assert_eq!(arguments, json!({ "text": said, "Api-Key": "[redacted]" }));
    for event in &events {
        assert!(event["time"].as_str().unwrap().ends_with('Z'), "{event}");
    }
}

#[tokio::test]
async fn a_connection_is_let_in_once_for_the_token_that_it_shows() {
    let place = ConfigFile::new("");
    let file = place.beside("audit.jsonl");
    let trusted = ("SHOAL_SERVER__TRUSTED_PROXIES", "[\"127.0.0.1\"]");
    let mut server = server(&[("SHOAL_AUDIT__FILE", file.to_str().unwrap()), trusted]).await;
    let connection = reqwest::Client::builder()
        .pool_max_idle_per_host(1)
        .build()
        .unwrap();
    let list = modern(1, "tools/list", json!({}));
    for (token, from) in [
        ("alice's token", "192.0.2.1"),
        ("alice's token", "192.0.2.1"),
        ("alice's token", "192.0.2.2"),
        ("alice's token", "192.0.2.2"),
        ("no token", "192.0.2.2"),
        ("alice's token", "192.0.2.2"),
        ("alice's token", "192.0.2.2"),
    ] {
        let asked = post_modern(&server.mcp, &list).bearer_auth(token);
        let asked = asked.header("x-forwarded-for", from).build().unwrap();
        let answer = connection.execute(asked).await.unwrap();
        answer.bytes().await.unwrap();
    }
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
    let events = read(&file);
    let told: Vec<_> = events
        .iter()
        .filter(|event| event["event.name"] == "shoal.audit.authentication")
        .map(|event| {
            (
                event["shoal.outcome"].as_str(),
                event["client.address"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (Some("accepted"), Some("192.0.2.1")),
            (Some("accepted"), Some("192.0.2.2")),
            (Some("invalid"), Some("192.0.2.2")),
            (Some("accepted"), Some("192.0.2.2")),
        ]
    );
}

#[tokio::test]
async fn a_stream_that_ends_with_its_token_is_told() {
    let place = ConfigFile::new("");
    let (file, tokens) = (place.beside("audit.jsonl"), place.beside("tokens.toml"));
    let hash = output(&["config", "hash-token"], "bob's token").await;
    let named = format!(
        "[[tokens]]\nname = 'bob'\nsha256 = '{}'\n",
        hash.stdout.trim()
    );
    std::fs::write(&tokens, named).unwrap();
    let environment = [
        ("SHOAL_AUDIT__FILE", file.to_str().unwrap()),
        ("SHOAL_AUTH__TOKENS_FILE", tokens.to_str().unwrap()),
    ];
    let mut server = server(&environment).await;
    let session = Session::open_as(&server.mcp, Some("bob's token")).await;
    let mut listening = session.listen().await;
    let other = format!("[[tokens]]\nname = 'eve'\nsha256 = '{}'\n", "0".repeat(64));
    std::fs::write(&tokens, other).unwrap();
    let ended = async { while listening.next().await.is_some() {} };
    timeout(SOON, ended).await.unwrap();
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
    let events = read(&file);
    let told: Vec<_> = (events.iter())
        .filter(|event| event["shoal.outcome"] == "cut_off")
        .collect();
    let [told] = told[..] else {
        panic!("{events:?}");
    };
    assert_eq!(told["event.name"], "shoal.audit.authentication");
    assert_eq!(told["enduser.id"], "bob");
    assert_eq!(told["mcp.session.id"], session.id.as_str());
    assert!(server.log().contains("ended a stream"), "{}", server.log());
}

#[tokio::test]
async fn events_that_do_not_arrive_are_counted_and_hold_up_nobody() {
    let server = server(&[("SHOAL_AUDIT__FILE", "/dev/full")]).await;
    let sum = ask(&server, 1, "add", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(text(&sum), r#"{"sum":3.0}"#);
    let lost = r#"shoal_audit_lost_total{shoal_audit_sink="file""#;
    until(async || {
        let metrics = reqwest::get(format!("{}/metrics", server.admin))
            .await
            .unwrap();
        metrics
            .text()
            .await
            .unwrap()
            .lines()
            .any(|line| line.starts_with(lost))
    })
    .await;
}

#[tokio::test]
async fn the_collector_gets_events_with_names() {
    let (collector, url) = Collector::start().await;
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("SHOAL_TELEMETRY__LOGS__OTLP", "true"),
        ("SHOAL_AUDIT__OTLP", "true"),
        ("SHOAL_AUDIT__EVENTS", "[\"call\"]"),
    ];
    let mut server = server(&environment).await;
    ask(&server, 1, "add", json!({ "a": 1, "b": 2 })).await;
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
    for part in ["shoal.audit.call", "enduser.id", "alice"] {
        assert!(collector.has("/v1/logs", part), "{part}");
    }
    assert!(!collector.has("/v1/logs", "shoal.audit.policy"));
}

#[tokio::test]
async fn a_trail_that_cannot_be_kept_is_refused() {
    for (name, value, told) in [
        (
            "SHOAL_AUDIT__FILE",
            "/nowhere/audit",
            "audit.file /nowhere/audit",
        ),
        ("SHOAL_AUDIT__OTLP", "true", "telemetry.logs.otlp"),
        ("SHOAL_AUDIT__QUEUE_BYTES", "1", "audit.queue_bytes"),
    ] {
        let mut command = crate::process::shoal(&[
            "serve",
            "--demo",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
        ]);
        let output = command.env(name, value).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(told), "{said}");
    }
}
