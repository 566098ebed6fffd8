use nix::sys::signal::Signal;
use serde_json::json;

use crate::client::{Session, call, initialize, modern_call, post, post_modern, response, text};
use crate::command::output;
use crate::process::{SOON, Server};

async fn server() -> Server {
    server_with(&[]).await
}

async fn server_with(more: &[(&str, &str)]) -> Server {
    let hash = async |token: &str| {
        let hashed = output(&["config", "hash-token"], token).await;
        hashed.stdout.trim().to_owned()
    };
    let (alice, bob) = (hash("alice's token\n").await, hash("bob's token").await);
    let tokens =
        format!("[{{ name = 'alice', sha256 = '{alice}' }}, {{ name = 'bob', sha256 = '{bob}' }}]");
    let environment = [
        ("SHOAL_AUTH__MODE", "tokens"),
        ("SHOAL_AUTH__TOKENS", tokens.as_str()),
    ];
    let environment = [&environment, more].concat();
    Server::start_with(&["--demo"], &environment).await
}

#[tokio::test]
async fn nobody_calls_without_a_token() {
    let server = server().await;
    let echo = modern_call(1, "echo", json!({ "text": "hello" }));
    for request in [
        post(&server.mcp, &initialize(0, "2025-11-25")),
        post_modern(&server.mcp, &echo),
        post_modern(&server.mcp, &echo).bearer_auth("guess"),
    ] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 401);
        assert!(answer.headers().contains_key("www-authenticate"));
    }
    let answer = post_modern(&server.mcp, &echo).bearer_auth("alice's token");
    let answer = response(answer.send().await.unwrap()).await;
    assert_eq!(text(&answer), "hello");
}

/// Anyone can send wrong tokens, so Shoal logs one line for all of them, and no guessed token.
#[tokio::test]
async fn of_many_guesses_one_is_told_and_none_of_what_was_guessed() {
    let mut server = server_with(&[("SHOAL_TELEMETRY__LOGS__REPEATS_PER", "1h")]).await;
    let echo = modern_call(1, "echo", json!({ "text": "hello" }));
    for guess in 0..50 {
        let guess = post_modern(&server.mcp, &echo).bearer_auth(format!("guess-{guess}"));
        assert_eq!(guess.send().await.unwrap().status(), 401);
    }
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0);
    server.said("suppressed=49").await;
    let log = server.log();
    let told = log.lines().filter(|line| line.contains("refused a caller"));
    let told: Vec<&str> = told.filter(|line| line.contains(" INFO ")).collect();
    assert_eq!(told.len(), 1, "{log}");
    let expected = "the bearer token is not valid";
    assert!(
        told[0].contains(expected) && told[0].contains("refusal=\"unknown\""),
        "{log}"
    );
    assert!(!log.contains("guess-"), "{log}");
}

#[tokio::test]
async fn a_session_is_its_principals_alone() {
    let server = server().await;
    let alice = Session::open_as(&server.mcp, Some("alice's token")).await;
    let bob = Session::open_as(&server.mcp, Some("bob's token")).await;
    let echo = call(1, "echo", json!({ "text": "mine" }));
    assert_eq!(text(&alice.ask(&echo).await), "mine");
    let stolen = post(&server.mcp, &echo)
        .header("mcp-session-id", &alice.id)
        .header("mcp-protocol-version", "2025-11-25");
    let answer = stolen.bearer_auth("bob's token").send().await.unwrap();
    assert_eq!(answer.status(), 404);
    assert_eq!(text(&bob.ask(&echo).await), "mine");
    assert_eq!(text(&alice.ask(&echo).await), "mine");
}

#[tokio::test]
async fn the_command_line_calls_with_a_token() {
    let server = server().await;
    let echo = ["call", "--url", &server.mcp, "echo", r#"{"text":"mine"}"#];
    let refused = output(&echo, "").await;
    assert_eq!(refused.code, 5);
    assert!(refused.stderr.contains("SHOAL_TOKEN"), "{}", refused.stderr);
    for era in ["modern", "legacy"] {
        let token = ["--token", "alice's token", "--era", era];
        let called = output(&[&echo[..], &token].concat(), "").await;
        assert_eq!(called.stdout, "mine\n", "{era}: {}", called.stderr);
    }
}

#[tokio::test]
async fn tokens_of_a_file_change_without_a_restart() {
    let file = std::env::temp_dir().join(format!("shoal-e2e-tokens-{}.toml", std::process::id()));
    let write = |token: &str| {
        let hash = shoal_node::config::TokenHash::of(token).to_hex();
        let text = format!("[[tokens]]\nname = \"alice\"\nsha256 = \"{hash}\"\n");
        std::fs::write(&file, text).unwrap();
    };
    write("first");
    let environment = [
        ("SHOAL_AUTH__MODE", "tokens"),
        ("SHOAL_AUTH__TOKENS_FILE", file.to_str().unwrap()),
    ];
    let server = Server::start_with(&["--demo"], &environment).await;
    let echo = modern_call(1, "echo", json!({ "text": "hello" }));
    let status = async |token: &str| {
        let answer = post_modern(&server.mcp, &echo).bearer_auth(token).send();
        answer.await.unwrap().status().as_u16()
    };
    assert_eq!(status("first").await, 200);
    let session = Session::open_as(&server.mcp, Some("first")).await;
    write("the second one");
    let changed = async {
        while status("the second one").await != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, changed).await.unwrap();
    assert_eq!(status("first").await, 401);
    let mine = post(&server.mcp, &call(1, "echo", json!({ "text": "mine" })))
        .header("mcp-session-id", &session.id)
        .header("mcp-protocol-version", "2025-11-25")
        .bearer_auth("the second one");
    let answer = response(mine.send().await.unwrap()).await;
    assert_eq!(text(&answer), "mine");
    std::fs::remove_file(&file).unwrap();
}
