use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::client::{Session, call, modern, modern_call, post_modern, request, response, text};
use crate::command::output;
use crate::process::Server;

const RULES: &str = r#"
[[rules]]
name = "all but jobs"
effect = "allow"
principals = ["alice"]

[[rules]]
name = "bob echoes"
effect = "allow"
principals = ["bob"]
tools = ["echo"]

[[rules]]
name = "no jobs"
effect = "deny"
tools = ["long_job"]
"#;

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let directory = format!("shoal-policy-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        std::fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let file = self.0.join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn server(rules: &str) -> Server {
    let hash = async |token: &str| {
        let hashed = output(&["config", "hash-token"], token).await;
        hashed.stdout.trim().to_owned()
    };
    let tokens = format!(
        "[{{ name = 'alice', sha256 = '{}' }}, {{ name = 'bob', sha256 = '{}' }}]",
        hash("alice's token").await,
        hash("bob's token").await
    );
    let environment = [
        ("SHOAL_AUTH__MODE", "tokens"),
        ("SHOAL_AUTH__TOKENS", tokens.as_str()),
        ("SHOAL_POLICY__FILE", rules),
        ("SHOAL_POLICY__REREAD", "20ms"),
    ];
    Server::start_with(&["--demo"], &environment).await
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{list}"));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn two_callers_see_and_use_different_things() {
    let directory = Directory::new("two");
    let server = server(&directory.write("rules.toml", RULES)).await;
    let tokens = ["alice's token", "bob's token"];
    let [alice, bob] = tokens.map(|token| Session::open_as(&server.mcp, Some(token)));
    let (alice, bob) = (alice.await, bob.await);
    let list = request(1, "tools/list", json!({}));
    let (hers, his) = (alice.ask(&list).await, bob.ask(&list).await);
    assert!(
        names(&hers).len() > 5 && names(&hers).contains(&"add"),
        "{hers}"
    );
    assert!(!names(&hers).contains(&"long_job"), "{hers}");
    assert_eq!(names(&his), ["echo"]);
    let prompts = request(2, "prompts/list", json!({}));
    assert_eq!(bob.ask(&prompts).await["result"]["prompts"], json!([]));
    let resources = request(3, "resources/list", json!({}));
    assert_eq!(bob.ask(&resources).await["result"]["resources"], json!([]));
    let add = call(4, "add", json!({ "a": 1, "b": 2 }));
    assert_eq!(text(&alice.ask(&add).await), r#"{"sum":3.0}"#);
    let (hidden, unknown) = (
        bob.ask(&add).await,
        bob.ask(&call(4, "nope", json!({}))).await,
    );
    assert_eq!(hidden["error"]["code"], unknown["error"]["code"]);
    assert_eq!(hidden["error"]["message"], "unknown tool: add");
    let as_bob = async |message: &Value| {
        let asked = post_modern(&server.mcp, message).bearer_auth("bob's token");
        response(asked.send().await.unwrap()).await
    };
    let listed = as_bob(&modern(5, "tools/list", json!({}))).await;
    assert_eq!(
        (names(&listed), &listed["result"]["cacheScope"]),
        (vec!["echo"], &json!("private"))
    );
    let hidden = as_bob(&modern_call(6, "add", json!({ "a": 1, "b": 2 }))).await;
    assert_eq!(hidden["error"]["message"], "unknown tool: add");
    let echoed = as_bob(&modern_call(7, "echo", json!({ "text": "mine" }))).await;
    assert_eq!(text(&echoed), "mine");
    let older = json!({ "protocolVersion": "2025-03-26", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" } });
    let opened = crate::client::post(&server.mcp, &request(0, "initialize", older));
    let opened = opened.bearer_auth("bob's token").send().await.unwrap();
    let session = opened.headers()["mcp-session-id"].clone();
    let batch = Value::Array(vec![add, call(8, "echo", json!({ "text": "x" }))]);
    let answers = crate::client::post(&server.mcp, &batch).header("mcp-session-id", session);
    let answers = answers.bearer_auth("bob's token").send().await.unwrap();
    let answers = answers.text().await.unwrap();
    assert!(
        answers.contains("unknown tool: add") && !answers.contains("sum"),
        "{answers}"
    );
}

#[tokio::test]
async fn changed_rules_are_in_force_without_a_restart() {
    let directory = Directory::new("changed");
    let file = directory.write("rules.toml", RULES);
    let mut server = server(&file).await;
    let bob = Session::open_as(&server.mcp, Some("bob's token")).await;
    let mut news = bob.listen().await;
    std::fs::write(&file, RULES.replace(r#"["echo"]"#, r#"["echo", "add"]"#)).unwrap();
    let told = news.message().await;
    let method = told["method"].as_str().unwrap();
    assert!(method.ends_with("/list_changed"), "{told}");
    let list = request(1, "tools/list", json!({}));
    assert_eq!(names(&bob.ask(&list).await), ["add", "echo"]);
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
}

#[tokio::test]
async fn rules_are_tested_from_the_command_line() {
    let directory = Directory::new("test");
    let rules = directory.write("rules.toml", RULES);
    let case = |who: &str, tool: &str, expect: &str| {
        format!(
            "[[cases]]\nsubject = {{ principal = '{who}' }}\ntarget = {{ tool = '{tool}' }}\nexpect = '{expect}'\n"
        )
    };
    let good = case("bob", "echo", "allow") + &case("bob", "add", "deny");
    let good = directory.write("good.toml", &good);
    let passed = output(&["policy", "test", &good, "--rules", &rules], "").await;
    assert_eq!(passed.code, 0, "{}", passed.stderr);
    assert_eq!(
        passed.stdout,
        "ok   1: tool echo by \"bob\": allow by bob echoes\nok   2: tool add by \"bob\": deny by no rule\n"
    );
    let bad = directory.write("bad.toml", &case("alice", "long_job", "allow"));
    let failed = output(&["policy", "test", &bad, "--rules", &rules], "").await;
    assert_eq!(failed.code, 3, "{}", failed.stderr);
    assert!(
        failed
            .stdout
            .starts_with("FAIL 1: tool long_job by \"alice\": deny by no jobs")
    );
    let json = [
        "policy", "test", &bad, "--rules", &rules, "--output", "json",
    ];
    let json: Value = serde_json::from_str(&output(&json, "").await.stdout).unwrap();
    assert_eq!(json["cases"][0]["rule"], "no jobs");
    let nothing = output(&["policy", "test", &good], "").await;
    assert_eq!(nothing.code, 2, "{}", nothing.stderr);
    let wrong = "[[policy.rules]]\nname = 'r'\neffect = 'allow'\nwhen = 'true &&\n claim.x'\n";
    let wrong = wrong.replace("'true &&\n claim.x'", "'''true &&\n claim.x'''");
    let config = directory.write("shoal.toml", &wrong);
    let checked = output(&["config", "check", "--config", &config], "").await;
    assert_eq!(checked.code, 2, "{}", checked.stderr);
    let place = "the rule \"r\": when: line 2, column 2: there is no variable \"claim\"";
    assert!(checked.stderr.contains(place), "{}", checked.stderr);
}

#[tokio::test]
async fn a_node_does_not_start_without_its_rules() {
    let environment = [("SHOAL_POLICY__FILE", "/nowhere/rules.toml")];
    let mut command = crate::process::shoal(&[
        "serve",
        "--demo",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
    ]);
    command.envs(environment);
    let ended = command.output().await.unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(
        !ended.status.success() && said.contains("/nowhere/rules.toml"),
        "{said}"
    );
}
