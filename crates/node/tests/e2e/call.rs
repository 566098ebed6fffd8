use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::command::output;
use crate::process::{SOON, Server, shoal};

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
async fn arguments_are_listed_with_their_tools() {
    let server = Server::start(&["--demo"]).await;
    let tools = output(&["tools", "--url", &server.mcp], "").await;
    let lines: Vec<&str> = tools.stdout.lines().collect();
    let job = lines.iter().position(|line| line.starts_with("long_job "));
    let arguments = lines[job.unwrap() + 1..][..2].join("\n");
    for part in [
        "    steps        integer, required",
        "How many steps to take.",
    ] {
        assert!(arguments.contains(part), "{part:?}: {arguments}");
    }
}

#[tokio::test]
async fn a_server_without_tools_is_said_to_list_none() {
    let rules = (
        "SHOAL_POLICY__RULES",
        "[{ name = 'none', effect = 'deny' }]",
    );
    let server = Server::start_with(&["--demo"], &[rules]).await;
    let tools = output(&["tools", "--url", &server.mcp], "").await;
    assert_eq!((tools.code, tools.stdout.as_str()), (0, ""));
    for part in ["lists no tools", "[policy]", "shoal status"] {
        assert!(tools.stderr.contains(part), "{part}: {}", tools.stderr);
    }
}

#[tokio::test]
async fn everything_is_printed_as_json() {
    let server = Server::start(&["--demo"]).await;
    let url = server.mcp.as_str();
    let admin = server.admin.as_str();
    let printed = async |words: &[&str]| {
        let output = output(&[words, &["--output", "json"]].concat(), "").await;
        let printed = serde_json::from_str(&output.stdout);
        let printed: Value =
            printed.unwrap_or_else(|error| panic!("{words:?}: {error}: {}", output.stdout));
        (output.code, printed)
    };
    let (code, tools) = printed(&["tools", "--url", url]).await;
    let named = |tool: &Value| tool["name"] == "echo" && tool["inputSchema"].is_object();
    assert!(code == 0 && tools["tools"].as_array().unwrap().iter().any(named));
    let (code, result) = printed(&["call", "--url", url, "echo", r#"{"text":"a"}"#]).await;
    assert_eq!(
        (code, &result["content"][0]["text"]),
        (0, &Value::from("a"))
    );
    let (code, result) = printed(&["call", "--url", url, "add", r#"{"a":"x"}"#]).await;
    assert_eq!((code, &result["isError"]), (3, &Value::from(true)));
    let (code, refused) = printed(&["call", "--url", url, "nothing"]).await;
    assert_eq!((code, &refused["error"]["exit_code"]), (5, &Value::from(5)));
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nothing")
    );
    let words = &[
        "call",
        "--url",
        url,
        "book_table",
        r#"{"restaurant":"Fuji"}"#,
    ];
    let (code, asks) = printed(words).await;
    assert_eq!((code, &asks["error"]["exit_code"]), (3, &Value::from(3)));
    let (code, status) = printed(&["status", "--admin", admin]).await;
    assert!(code == 0 && status["pools"].is_array(), "{status}");
    let (code, ready) = printed(&["status", "--admin", admin, "--ready"]).await;
    assert_eq!((code, &ready["status"]), (0, &Value::from("ready")));
    let (code, checked) = printed(&["config", "check"]).await;
    assert!(code == 0 && checked["warnings"].is_array(), "{checked}");
    let (code, shown) = printed(&["config", "show"]).await;
    assert!(
        code == 0 && shown["server"]["listen"].is_string(),
        "{shown}"
    );
}

#[tokio::test]
async fn what_fails_is_said_with_an_exit_code() {
    let server = Server::start(&["--demo"]).await;
    let url = server.mcp.as_str();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|was| was.local_addr());
    let closed = format!("http://{}/mcp", closed.unwrap());
    let nobody = closed
        .trim_start_matches("http://")
        .trim_end_matches("/mcp");
    let slow = r#"{"steps":60,"interval_ms":1000}"#;
    let table = r#"{"restaurant":"Fuji"}"#;
    let hurried = &["call", "--url", url, "--timeout", "3s", "long_job", slow];
    for (words, code, part) in [
        (&hurried[..], 6, "--timeout"),
        (&["call", "--url", url, "nothing"], 5, "nothing"),
        (&["call", "--url", url, "echo", "[1]"], 2, "JSON object"),
        (&["call", "--url", url, "book_table", table], 3, "terminal"),
        (&["tools", "--url", &closed], 4, "shoal serve"),
        (&["status", "--admin", nobody], 4, "--admin"),
        (&["tools", "--url", "nonsense"], 2, "http://HOST:PORT/mcp"),
        (&["tools", "--url", url, "--timeout", "0s"], 2, "--timeout"),
    ] {
        let output = output(words, "").await;
        assert_eq!(output.code, code, "{words:?}: {}", output.stderr);
        assert!(output.stderr.contains(part), "{words:?}: {}", output.stderr);
        assert_eq!(output.stdout, "", "{words:?}");
    }
    server.wait_for_calls(0).await;
}

#[tokio::test]
async fn a_call_that_is_interrupted_is_taken_back() {
    let server = Server::start(&["--demo"]).await;
    let slow = r#"{"steps":600,"interval_ms":1000}"#;
    for era in ["modern", "legacy"] {
        let mut call = shoal(&["call", "--url", &server.mcp, "--era", era, "long_job", slow]);
        let mut call = call.stderr(Stdio::null()).spawn().unwrap();
        server.wait_for_calls(1).await;
        let pid = Pid::from_raw(i32::try_from(call.id().unwrap()).unwrap());
        kill(pid, Signal::SIGINT).unwrap();
        let status = tokio::time::timeout(SOON, call.wait()).await.unwrap();
        assert_eq!(status.unwrap().code(), Some(130), "{era}");
        server.wait_for_calls(0).await;
    }
}

#[tokio::test]
async fn completions_and_man_pages_are_written() {
    for shell in ["bash", "zsh", "fish"] {
        let script = output(&["completions", shell], "").await;
        assert!(
            script.code == 0 && script.stdout.contains("client-config"),
            "{shell}"
        );
    }
    let directory = std::env::temp_dir().join(format!("shoal-man-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let written = output(&["man", directory.to_str().unwrap()], "").await;
    assert_eq!(written.code, 0, "{}", written.stderr);
    let page = std::fs::read_to_string(directory.join("shoal.1")).unwrap();
    assert!(directory.join("shoal-call.1").exists() && page.contains("Exit codes"));
    std::fs::remove_dir_all(&directory).unwrap();
    let gone = output(&["man", directory.to_str().unwrap()], "").await;
    assert!(
        gone.code == 1 && gone.stderr.contains("man pages"),
        "{}",
        gone.stderr
    );
}

#[tokio::test]
async fn a_client_is_configured_with_this_program() {
    let printed = output(&["client-config", "claude-desktop"], "").await;
    let configuration: Value = serde_json::from_str(&printed.stdout).unwrap();
    let program = &configuration["mcpServers"]["shoal"]["command"];
    let own = std::fs::canonicalize(env!("CARGO_BIN_EXE_shoal")).unwrap();
    assert_eq!(program, own.to_str().unwrap());
    assert!(printed.stderr.contains("claude_desktop_config.json"));
}
