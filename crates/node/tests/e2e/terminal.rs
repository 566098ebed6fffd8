use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::sync::mpsc;

use nix::pty::openpty;
use tokio::time::timeout;

use crate::command::output;
use crate::process::{SOON, Server, shoal};

pub(crate) struct Ended {
    pub(crate) shown: String,
    pub(crate) printed: String,
    pub(crate) code: i32,
}

/// Waits for the first text of each pair in `answers`, and then types the second.
pub(crate) async fn at_a_terminal(words: &[&str], answers: &[(&str, &str)]) -> Ended {
    let pty = openpty(None, None).unwrap();
    let mut command = shoal(words);
    command
        .stdin(Stdio::from(pty.slave.try_clone().unwrap()))
        .stderr(Stdio::from(pty.slave))
        .stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    // The command also holds the terminal open, so the reads below would not end.
    drop(command);
    let mut terminal = File::from(pty.master);
    let mut keyboard = terminal.try_clone().unwrap();
    let (sender, seen) = mpsc::channel();
    std::thread::spawn(move || {
        let mut chunk = [0; 1024];
        while let Ok(read @ 1..) = terminal.read(&mut chunk) {
            let _ = sender.send(String::from_utf8_lossy(&chunk[..read]).into_owned());
        }
    });
    let answers: Vec<(String, String)> = answers
        .iter()
        .map(|(question, answer)| ((*question).to_owned(), (*answer).to_owned()))
        .collect();
    let typing = tokio::task::spawn_blocking(move || {
        let (mut shown, mut read) = (String::new(), 0);
        let mut answers = answers.into_iter().peekable();
        while let Ok(more) = seen.recv() {
            shown.push_str(&more);
            while let Some((question, answer)) = answers.peek()
                && let Some(at) = shown[read..].find(question.as_str())
            {
                read += at + question.len();
                keyboard
                    .write_all(format!("{answer}\n").as_bytes())
                    .unwrap();
                answers.next();
            }
        }
        shown
    });
    let output = timeout(SOON, child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    Ended {
        shown: timeout(SOON, typing).await.unwrap().unwrap(),
        printed: String::from_utf8(output.stdout).unwrap(),
        code: output.status.code().unwrap_or(-1),
    }
}

#[tokio::test]
async fn a_tool_asks_whoever_sits_there_in_either_era() {
    let server = Server::start(&["--demo"]).await;
    let answers = [("  > ", "40"), ("  > ", "4"), ("  > ", "tomorrow")];
    for era in ["modern", "legacy"] {
        let words = ["call", "--url", &server.mcp, "--era", era, "book_table"];
        let words = [&words[..], &[r#"{"restaurant":"Fuji"}"#]].concat();
        let ended = at_a_terminal(&words, &answers).await;
        assert_eq!(ended.code, 0, "{era}: {}", ended.shown);
        for part in [
            "When would you like to eat at Fuji",
            "at most 20",
            "guests (",
            "required",
        ] {
            assert!(
                ended.shown.contains(part),
                "{era}: {part:?}: {}",
                ended.shown
            );
        }
        assert!(
            ended.printed.contains("tomorrow"),
            "{era}: {}",
            ended.printed
        );
        assert!(!ended.printed.contains("  > "), "{era}: {}", ended.printed);
    }
}

#[tokio::test]
async fn progress_is_shown_and_cleared() {
    let server = Server::start(&["--demo"]).await;
    let job = r#"{"steps":4,"interval_ms":30}"#;
    let words = ["call", "--url", &server.mcp, "long_job", job];
    let ended = at_a_terminal(&words, &[]).await;
    assert_eq!(ended.code, 0, "{}", ended.shown);
    assert!(ended.shown.contains("50 % step 2 of 4"), "{}", ended.shown);
    assert!(ended.shown.ends_with("\r\x1b[K"), "{:?}", ended.shown);
    assert!(!ended.printed.contains('%'), "{}", ended.printed);
}

#[tokio::test]
async fn a_question_is_answered_beforehand_where_nobody_sits_there() {
    let server = Server::start(&["--demo"]).await;
    for era in ["modern", "legacy"] {
        let call = ["call", "--url", &server.mcp, "--era", era];
        let table = ["book_table", r#"{"restaurant":"Fuji"}"#];
        let call =
            async |answers: &[&str]| output(&[&call[..], answers, &table].concat(), "").await;
        let booked = call(&["--answer", "guests=4", "--answer", "date=tomorrow"]).await;
        assert_eq!(booked.code, 0, "{era}: {}", booked.stderr);
        assert!(
            booked.stdout.contains("tomorrow"),
            "{era}: {}",
            booked.stdout
        );
        let half = call(&["--answer", "guests=4"]).await;
        let advice = "Run this in a terminal, or use --answer date=VALUE";
        assert!(half.stderr.contains(advice), "{era}: {}", half.stderr);
        let nothing = call(&[]).await;
        let advice = "run this in a terminal, or use --answer NAME=VALUE";
        let told = format!("{}{}", nothing.stdout, nothing.stderr);
        assert!(told.contains(advice), "{era}: {told}");
        assert_eq!(nothing.code, 3, "{era}: {told}");
    }
}

#[tokio::test]
async fn a_token_is_not_shown_while_it_is_typed() {
    let words = ["config", "hash-token"];
    let typed = at_a_terminal(&words, &[("Token (", "my own secret")]).await;
    assert_eq!(typed.code, 0, "{}", typed.shown);
    assert!(!typed.shown.contains("secret"), "{}", typed.shown);
    let piped = output(&words, "my own secret\n").await;
    assert_eq!(typed.printed, piped.stdout);
    let made = at_a_terminal(&words, &[("Token (", "")]).await;
    assert_eq!(made.code, 0, "{}", made.shown);
    assert!(made.printed.starts_with("token:  "), "{}", made.printed);
}

#[tokio::test]
async fn a_token_is_made_where_none_is_given_and_shown_with_its_hash() {
    let words = ["config", "hash-token"];
    let made = async || {
        let made = output(&words, "").await;
        assert_eq!(made.code, 0, "{}", made.stderr);
        let value = |name: &str| {
            let mut lines = made.stdout.lines();
            let line = lines.find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("{}", made.stdout))
                .trim()
                .to_owned()
        };
        (value("token:"), value("sha256:"))
    };
    let ((token, hash), (other, _)) = (made().await, made().await);
    assert_ne!(token, other);
    assert!(token.len() >= 40, "{token}");
    assert_eq!(output(&words, &token).await.stdout.trim(), hash);
    let blank = output(&words, " \n").await;
    assert_eq!(blank.code, 2);
    assert!(blank.stderr.contains("no token"), "{}", blank.stderr);
}

/// The server puts terminal commands into name, title, description, error and answer.
#[tokio::test]
async fn nothing_that_a_server_says_is_obeyed_by_the_terminal() {
    let hostile = r#"
import json, sys
bad = '\x1b[2J\x1b]0;owned\x07\x9b31m'
tool = {'name': 'bad' + bad, 'description': 'says ' + bad, 'inputSchema': {'type': 'object', 'properties': {
    'x' + bad: {'enum': [bad], 'default': bad, 'description': bad}}}}
def asked():
    field = {'type': 'string', 'title': bad, 'description': bad, 'enum': [bad]}
    return {'jsonrpc': '2.0', 'id': 'ask', 'method': 'elicitation/create', 'params': {
        'message': 'Who? ' + bad, 'requestedSchema': {'type': 'object', 'properties': {'who': field}, 'required': ['who']}}}
def send(message):
    print(json.dumps(message), flush=True)
call = None
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get('method'), message.get('id')
    if method == 'initialize':
        about = {'name': bad, 'version': '1'}
        send({'jsonrpc': '2.0', 'id': id, 'result': {
            'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': about}})
    elif method == 'tools/list':
        tools = [dict(tool, name=name) for name in ('asks', 'fails', 'says')]
        send({'jsonrpc': '2.0', 'id': id, 'result': {'tools': tools}})
    elif method == 'tools/call' and message['params']['name'] == 'asks':
        call = id
        token = message['params'].get('_meta', {}).get('progressToken')
        if token is not None:
            send({'jsonrpc': '2.0', 'method': 'notifications/progress', 'params': {
                'progressToken': token, 'progress': 1, 'total': 2, 'message': bad}})
        send({'jsonrpc': '2.0', 'method': 'notifications/message', 'params': {'level': 'error', 'logger': bad, 'data': bad}})
        send(asked())
    elif method == 'tools/call' and message['params']['name'] == 'fails':
        send({'jsonrpc': '2.0', 'id': id, 'error': {'code': -32603, 'message': 'broken ' + bad}})
    elif id == 'ask':
        content = [{'type': 'text', 'text': 'answered ' + bad}]
        send({'jsonrpc': '2.0', 'id': call, 'result': {'content': content}})
    elif method == 'tools/call':
        content = [{'type': 'text', 'text': 'said\tit\n' + bad}, {'type': 'resource_link', 'uri': 'a:b', 'name': bad}]
        send({'jsonrpc': '2.0', 'id': id, 'result': {'content': content}})
    elif id is not None:
        send({'jsonrpc': '2.0', 'id': id, 'error': {'code': -32601, 'message': 'none'}})
"#;
    let server = Server::start(&["--", "python3", "-c", hostile]).await;
    let url = ["--url", server.mcp.as_str(), "--era", "legacy"];
    let words = |words: &[&'static str]| [words, &url[..]].concat();
    let mut seen = Vec::new();
    for (words, code, part) in [
        (words(&["tools"]), 0, "says "),
        (words(&["tools", "--output", "json"]), 0, "owned"),
        (words(&["call", "says"]), 0, "said\tit\n"),
        (words(&["call", "says", "--output", "json"]), 0, "owned"),
        (words(&["call", "fails"]), 5, "broken "),
        (words(&["call", "fails", "--output", "json"]), 5, "broken "),
    ] {
        let output = output(&words, "").await;
        assert_eq!(output.code, code, "{words:?}: {}", output.stderr);
        let text = output.stdout + &output.stderr;
        assert!(text.contains(part), "{words:?}: {text}");
        seen.push((format!("{words:?}"), text));
    }
    let asked = at_a_terminal(
        &words(&["call", "asks"]),
        &[("  > ", "me"), ("  > ", "/decline")],
    )
    .await;
    assert!(
        asked.shown.contains("Who?") && asked.shown.contains("none of these"),
        "{}",
        asked.shown
    );
    seen.push((
        "asks".to_owned(),
        asked.shown.replace("\r\x1b[K", "").replace("\r\n", "\n") + &asked.printed,
    ));
    for (words, text) in seen {
        let obeyed = text
            .chars()
            .find(|letter| letter.is_control() && !"\n\t".contains(*letter));
        assert_eq!(obeyed, None, "{words}: {text:?}");
    }
}
