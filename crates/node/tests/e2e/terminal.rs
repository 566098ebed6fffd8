//! `shoal call` at a terminal: progress is shown, and a tool can ask.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::sync::mpsc;

use nix::pty::openpty;
use tokio::time::timeout;

use crate::process::{SOON, Server, shoal};

/// What was shown at the terminal, and what was printed.
pub(crate) struct Ended {
    pub(crate) shown: String,
    pub(crate) printed: String,
    pub(crate) code: i32,
}

/// Runs a command at a terminal where each question that ends in a key is answered by its value, in order.
pub(crate) async fn at_a_terminal(words: &[&str], answers: &[(&str, &str)]) -> Ended {
    let pty = openpty(None, None).unwrap();
    let mut command = shoal(words);
    command
        .stdin(Stdio::from(pty.slave.try_clone().unwrap()))
        .stderr(Stdio::from(pty.slave))
        .stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    // It keeps the terminal open.
    drop(command);
    let mut terminal = File::from(pty.master);
    let mut keyboard = terminal.try_clone().unwrap();
    let (sender, seen) = mpsc::channel();
    // Ends when nobody has the other side any more.
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
    let answers = [
        ("Answer? [Y/n] ", "y"),
        ("  > ", "40"),
        ("  > ", "4"),
        ("  > ", "tomorrow"),
    ];
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
        assert!(
            !ended.printed.contains("Answer?"),
            "{era}: {}",
            ended.printed
        );
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
