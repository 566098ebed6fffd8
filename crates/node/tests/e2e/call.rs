//! `shoal tools` and `shoal call`.

use serde_json::Value;

use crate::command::output;
use crate::process::Server;

#[tokio::test]
async fn tools_are_listed_and_called_in_both_eras() {
    let server = Server::start(&["--demo"]).await;
    for era in [&[][..], &["--era", "modern"], &["--era", "legacy"]] {
        let with = |words: &[&'static str]| [words, &["--url"], era].concat();
        let url = server.mcp.as_str();
        let mut words: Vec<&str> = with(&["tools"]);
        words.insert(2, url);
        let tools = output(&words, "").await;
        assert_eq!(tools.code, 0, "{era:?}: {}", tools.stderr);
        assert!(tools.stdout.contains("echo_once"), "{}", tools.stdout);
        let mut words: Vec<&str> = with(&["call"]);
        words.insert(2, url);
        words.extend(["echo", r#"{"text":"hello"}"#]);
        let call = output(&words, "").await;
        assert_eq!((call.code, call.stdout.as_str()), (0, "hello\n"), "{era:?}");
    }
}

#[tokio::test]
async fn everything_is_printed_as_json() {
    let server = Server::start(&["--demo"]).await;
    let tools = output(&["tools", "--url", &server.mcp, "--json"], "").await;
    let tools: Value = serde_json::from_str(&tools.stdout).unwrap();
    let named = |tool: &Value| tool["name"] == "echo" && tool["inputSchema"].is_object();
    assert!(tools.as_array().unwrap().iter().any(named));
    let words = [
        "call",
        "--url",
        &server.mcp,
        "--json",
        "echo",
        r#"{"text":"a"}"#,
    ];
    let result: Value = serde_json::from_str(&output(&words, "").await.stdout).unwrap();
    assert_eq!(result["content"][0]["text"], "a");
}

#[tokio::test]
async fn what_fails_is_said_with_an_exit_code() {
    let server = Server::start(&["--demo"]).await;
    let url = server.mcp.as_str();
    // Takes longer than the test waits for anything.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|was| was.local_addr());
    let closed = format!("http://{}/mcp", closed.unwrap());
    let slow = r#"{"steps":60,"interval_ms":1000}"#;
    let hurried = &["call", "--url", url, "--timeout", "300ms", "long_job", slow];
    for (words, code, part) in [
        (&hurried[..], 1, "within 300ms (--timeout)"),
        (&["call", "--url", url, "nothing"], 1, "nothing"),
        (&["call", "--url", url, "echo", "[1]"], 2, "JSON object"),
        (&["tools", "--url", &closed], 1, "cannot be reached"),
        (&["tools", "--url", "nonsense"], 2, "http://HOST:PORT/mcp"),
        (&["tools", "--url", url, "--timeout", "0s"], 2, "--timeout"),
    ] {
        let output = output(words, "").await;
        assert_eq!(output.code, code, "{words:?}: {}", output.stderr);
        assert!(output.stderr.contains(part), "{words:?}: {}", output.stderr);
        assert_eq!(output.stdout, "", "{words:?}");
    }
}

#[tokio::test]
async fn a_client_is_configured_with_this_program() {
    let printed = output(&["client-config", "claude-desktop"], "").await;
    let configuration: Value = serde_json::from_str(&printed.stdout).unwrap();
    let program = &configuration["mcpServers"]["shoal"]["command"];
    assert_eq!(program, env!("CARGO_BIN_EXE_shoal"));
    assert!(printed.stderr.contains("claude_desktop_config.json"));
}
