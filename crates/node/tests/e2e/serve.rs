use reqwest::Client;
use serde_json::json;

use crate::client::{Session, call, modern, modern_call, post_modern, request, response, text};
use crate::process::{SOON, Server, shoal};

pub(crate) const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/fixture.py");

#[tokio::test]
async fn a_legacy_client_initializes_and_calls() {
    let server = Server::start(&["--demo"]).await;
    let session = Session::open(&server.mcp).await;
    let tools = session.ask(&request(1, "tools/list", json!({}))).await;
    assert!(tools["result"]["tools"].as_array().unwrap().len() > 5);
    for (id, tool) in [(2, "echo"), (3, "echo_once")] {
        let answer = session
            .ask(&call(id, tool, json!({ "text": "hello" })))
            .await;
        assert_eq!((text(&answer), &answer["id"]), ("hello", &json!(id)));
    }
}

#[tokio::test]
async fn a_modern_client_discovers_and_calls() {
    let server = Server::start(&["--demo"]).await;
    let discover = modern(1, "server/discover", json!({}));
    let answer = post_modern(&server.mcp, &discover).send().await.unwrap();
    let answer = response(answer).await;
    let versions = answer["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")));
    let echo = modern_call(2, "echo", json!({ "text": "hello" }));
    let answer = post_modern(&server.mcp, &echo).send().await.unwrap();
    assert_eq!(text(&response(answer).await), "hello");
}

#[tokio::test]
async fn http2_is_spoken_without_tls() {
    let server = Server::start(&["--demo"]).await;
    let client = Client::builder().http2_prior_knowledge().build().unwrap();
    let echo = modern_call(2, "echo", json!({ "text": "hello" }));
    let post = post_modern(&server.mcp, &echo).build().unwrap();
    let answer = client.execute(post).await.unwrap();
    assert_eq!(answer.version(), http::Version::HTTP_2);
    assert_eq!(text(&response(answer).await), "hello");
}

#[tokio::test]
async fn the_admin_port_tells_how_the_node_is() {
    let server = Server::start(&["--demo", "--conformance"]).await;
    let _session = Session::open(&server.mcp).await;
    let get = async |path: &str, host: &str| {
        let get = Client::new().get(format!("{}{path}", server.admin));
        let answer = get.header("host", host).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    };
    let (code, alive): (_, serde_json::Value) = get("/livez", "localhost").await;
    assert_eq!((code, &alive["status"]), (200, &json!("alive")));
    let (code, ready) = get("/readyz", "localhost").await;
    assert_eq!((code, &ready["status"]), (200, &json!("ready")));
    assert_eq!(ready["reasons"], json!([]));
    let (code, status) = get("/status", "localhost:8081").await;
    assert_eq!(code, 200);
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["sessions"]["live"], 1);
    assert_eq!(status["draining"], false);
    let pools: Vec<_> = status["pools"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&pools[0]["name"], &pools[1]["name"]),
        (&json!("conformance"), &json!("demo"))
    );
    let (code, refused) = get("/status", "evil.example").await;
    assert_eq!(code, 403);
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("server.admin_hosts")
    );
    assert_eq!(get("/nothing", "localhost").await.0, 404);
    let (code, seen) = get("/console/api/overview", "localhost").await;
    assert_eq!((code, &seen["nodes"][0]["live_sessions"]), (200, &json!(1)));
    assert_eq!(get("/console/api/overview", "evil.example").await.0, 403);
}

#[tokio::test]
async fn a_console_that_others_can_reach_asks_for_its_token() {
    let hosts = ("SHOAL_SERVER__ADMIN_HOSTS", "['shoal.internal']");
    let token = (
        "SHOAL_SERVER__ADMIN_TOKEN",
        "{ value = 'only-for-this-test' }",
    );
    let status = async |server: &Server, token: &str| {
        let get = Client::new().get(format!("{}/console/api/calls", server.admin));
        let answer = get.bearer_auth(token).send().await.unwrap();
        answer.status().as_u16()
    };
    let closed = Server::start_with(&["--demo"], &[hosts]).await;
    assert_eq!(status(&closed, "only-for-this-test").await, 403);
    let guarded = Server::start_with(&["--demo"], &[hosts, token]).await;
    assert_eq!(status(&guarded, "another").await, 401);
    assert_eq!(status(&guarded, "only-for-this-test").await, 200);
    assert!(!guarded.log().contains("only-for-this-test"));
}

#[tokio::test]
async fn two_pools_with_the_same_name_of_a_tool_are_told() {
    let twice = [
        ("SHOAL_POOLS__A__BACKEND", "demo"),
        ("SHOAL_POOLS__B__BACKEND", "demo"),
        ("SHOAL_POOLS__C__BACKEND", "demo"),
        ("SHOAL_POOLS__C__PREFIX", "c_"),
    ];
    let server = Server::start_with(&[], &twice).await;
    let (code, ready) = server.readiness().await;
    assert_eq!(code, 200);
    let conflicts = ready["conflicts"].as_array().unwrap();
    let echo = conflicts
        .iter()
        .find(|conflict| conflict["name"] == "echo" && conflict["kind"] == "tool");
    let echo = echo.unwrap_or_else(|| panic!("{ready}"));
    assert_eq!((&echo["kept"], &echo["hidden"]), (&json!("a"), &json!("b")));
    let session = Session::open(&server.mcp).await;
    let answer = session
        .ask(&call(1, "c_echo", json!({ "text": "c" })))
        .await;
    assert_eq!(text(&answer), "c");
}

#[tokio::test]
async fn a_stdio_server_is_put_behind() {
    let server = Server::start(&["--", "python3", FIXTURE]).await;
    let session = Session::open(&server.mcp).await;
    let answer = session
        .ask(&call(1, "shout", json!({ "text": "hello" })))
        .await;
    assert_eq!(text(&answer), "HELLO");
    let shout = modern_call(2, "shout", json!({ "text": "modern" }));
    let answer = post_modern(&server.mcp, &shout).send().await.unwrap();
    assert_eq!(text(&response(answer).await), "MODERN");
}

#[tokio::test]
async fn a_pool_that_does_not_start_keeps_the_node_from_traffic() {
    let mut command = shoal(&["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.arg("--demo");
    let backend = "{ stdio = { command = \"/does/not/exist\" } }";
    command.env("SHOAL_POOLS__STDIO__BACKEND", backend);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = {
        use tokio::io::AsyncBufReadExt as _;
        tokio::io::BufReader::new(child.stdout.take().unwrap()).lines()
    };
    lines.next_line().await.unwrap();
    let admin = lines.next_line().await.unwrap().unwrap();
    let admin = admin.strip_prefix("shoal: admin on ").unwrap();
    let answer = reqwest::get(format!("{admin}/readyz")).await.unwrap();
    assert_eq!(answer.status(), 503);
    let answer: serde_json::Value = answer.json().await.unwrap();
    assert_eq!(answer["status"], "not ready");
    let reason = answer["reasons"][0].as_str().unwrap();
    assert!(reason.starts_with("pool stdio is not ready"), "{reason}");
}

#[tokio::test]
async fn a_wrong_path_is_told_the_right_one() {
    let server = Server::start(&["--demo"]).await;
    let url = server.mcp.replace("/mcp", "/mpc");
    let answer = reqwest::get(url).await.unwrap();
    assert_eq!(answer.status(), 404);
    assert!(
        answer
            .text()
            .await
            .unwrap()
            .contains("MCP is served at /mcp")
    );
}

#[tokio::test]
async fn a_bare_shoal_serves_the_demo_and_says_how_to_call_it() {
    let mut command = shoal(&[]);
    command
        .env("SHOAL_SERVER__LISTEN", "127.0.0.1:0")
        .env("SHOAL_SERVER__ADMIN", "127.0.0.1:0");
    let server = Server::of(command).await;
    let session = Session::open(&server.mcp).await;
    let answer = session
        .ask(&call(1, "echo", json!({ "text": "bare" })))
        .await;
    assert_eq!(text(&answer), "bare");
    server.said("All settings:").await;
    let log = server.log();
    let hint = log.split("Try it:\n").nth(1).unwrap();
    let hint = hint.split("\n\nPut your own").next().unwrap();
    let shell = tokio::process::Command::new("sh")
        .arg("-c")
        .arg(hint)
        .output();
    let output = shell.await.unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(answer.contains(r#""text":"hello""#), "{hint}: {answer}");
}

#[tokio::test]
async fn a_server_on_the_command_line_gets_what_it_is_given_and_the_rest_is_named() {
    let arguments = [
        "--env",
        "GIVEN_KEY",
        "--env",
        "SET=a=b",
        "--",
        "python3",
        FIXTURE,
    ];
    let environment = [
        ("GIVEN_KEY", "given-value"),
        ("GITHUB_TOKEN", "secret-value"),
    ];
    let server = Server::start_with(&arguments, &environment).await;
    let session = Session::open(&server.mcp).await;
    for (name, value) in [
        ("GIVEN_KEY", "given-value"),
        ("SET", "a=b"),
        ("GITHUB_TOKEN", "None"),
    ] {
        let answer = session
            .ask(&call(1, "variable", json!({ "text": name })))
            .await;
        assert_eq!(text(&answer), value, "{name}");
    }
    let log = server.log();
    assert!(
        log.contains("GITHUB_TOKEN") && log.contains("--env NAME"),
        "{log}"
    );
    assert!(
        !log.contains("GIVEN_KEY") && !log.contains("-value"),
        "{log}"
    );
}

#[tokio::test]
async fn a_server_on_the_command_line_gets_the_whole_environment_but_for_shoals_own() {
    let environment = [
        ("GITHUB_TOKEN", "given-value"),
        ("SHOAL_CALLS__TIMEOUT", "30s"),
    ];
    let arguments = ["--inherit", "--", "python3", FIXTURE];
    let server = Server::start_with(&arguments, &environment).await;
    let session = Session::open(&server.mcp).await;
    for (name, value) in [
        ("GITHUB_TOKEN", "given-value"),
        ("SHOAL_CALLS__TIMEOUT", "None"),
    ] {
        let answer = session
            .ask(&call(1, "variable", json!({ "text": name })))
            .await;
        assert_eq!(text(&answer), value, "{name}");
    }
    assert!(!server.log().contains("GITHUB_TOKEN"), "{}", server.log());
}

#[tokio::test]
async fn a_configured_server_gets_what_its_pool_inherits_and_the_rest_is_named() {
    let backend = format!(
        "{{ stdio = {{ command = 'python3', args = ['{FIXTURE}'], inherit = ['GIVEN_*'] }} }}"
    );
    let environment = [
        ("SHOAL_POOLS__FILES__BACKEND", backend.as_str()),
        ("GIVEN_KEY", "given-value"),
        ("GITHUB_TOKEN", "secret-value"),
    ];
    let server = Server::start_with(&[], &environment).await;
    let session = Session::open(&server.mcp).await;
    let asked = json!({ "text": "GIVEN_KEY" });
    let answer = session.ask(&call(1, "variable", asked)).await;
    assert_eq!(text(&answer), "given-value");
    let log = server.log();
    assert!(log.contains("GITHUB_TOKEN"), "{log}");
    assert!(
        !log.contains("GIVEN_KEY") && !log.contains("-value"),
        "{log}"
    );
}

#[tokio::test]
async fn a_log_that_nobody_reads_stops_nothing() {
    let mut command = shoal(&["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command
        .args(["--", "python3", FIXTURE])
        .env("SHOAL_TELEMETRY__LOGS__REPEATS", "0")
        .env("SHOAL_LOGGING__LEVEL", "info,shoal::stdio=debug")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = {
        use tokio::io::AsyncBufReadExt as _;
        tokio::io::BufReader::new(child.stdout.take().unwrap()).lines()
    };
    let mut announced = async |prefix: &str| {
        let line = tokio::time::timeout(SOON, lines.next_line()).await;
        let line = line.unwrap().unwrap().unwrap();
        line.strip_prefix(prefix).unwrap().to_owned()
    };
    let mcp = announced("shoal: serving MCP on ").await;
    let admin = announced("shoal: admin on ").await;
    let dropping = async {
        while reqwest::get(format!("{admin}/readyz"))
            .await
            .unwrap()
            .status()
            != 200
        {}
        let session = Session::open(&mcp).await;
        let mut round = 0;
        loop {
            round += 1;
            let answer = session
                .ask(&call(1, "grumble", json!({ "text": format!("x{round}") })))
                .await;
            assert_eq!(text(&answer), format!("X{round}"));
            let metrics = reqwest::get(format!("{admin}/metrics")).await.unwrap();
            let metrics = metrics.text().await.unwrap();
            let mut dropped = metrics.lines().filter_map(|line| {
                let value = line.strip_prefix("shoal_log_dropped_total")?;
                value.rsplit(' ').next()?.parse::<f64>().ok()
            });
            if dropped.any(|count| count > 0.0) {
                return;
            }
        }
    };
    tokio::time::timeout(3 * SOON, dropping)
        .await
        .expect("lines are dropped, and calls answered");
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(pid),
        nix::sys::signal::Signal::SIGTERM,
    )
    .unwrap();
    let status = tokio::time::timeout(SOON, child.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.code(), Some(0));
}
