//! An answer, read to its end or until it would wait, and its comparable form.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(30);
/// Clients act on these headers. Some other headers contain times.
const COMPARED: [&str; 9] = [
    "content-type",
    "allow",
    "www-authenticate",
    "access-control-allow-origin",
    "access-control-allow-methods",
    "access-control-allow-headers",
    "cache-control",
    "vary",
    "connection",
];
/// Headers that must be present, with any value.
const PRESENT: [&str; 2] = ["mcp-session-id", "retry-after"];

#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Answer {
    pub(crate) async fn to(address: SocketAddr, request: &[u8]) -> Self {
        let asked = async {
            let mut socket = TcpStream::connect(address).await.unwrap();
            // The server may refuse early and stop reading.
            let _ = socket.write_all(request).await;
            let is_get = request.starts_with(b"GET ");
            let mut text = Vec::new();
            loop {
                let read = socket.read_buf(&mut text).await.unwrap_or(0);
                let answer = Self::parse(&String::from_utf8_lossy(&text));
                let opened = is_get && answer.is_stream();
                if read == 0 || opened {
                    return answer;
                }
            }
        };
        timeout(SOON, asked).await.unwrap_or_else(|_| {
            panic!(
                "no end of the answer to {}",
                String::from_utf8_lossy(request)
            )
        })
    }

    fn parse(text: &str) -> Self {
        let text = match text.split_once("\r\n\r\n") {
            Some(("HTTP/1.1 100 Continue", rest)) => rest,
            _ => text,
        };
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return Self::default();
        };
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut answer = Self {
            status: status.unwrap_or_default(),
            headers: headers.collect(),
            body: String::new(),
        };
        answer.body = match answer.header("transfer-encoding") {
            Some(_) => unchunked(body),
            None => body.to_owned(),
        };
        answer
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    pub(crate) fn messages(&self) -> Vec<String> {
        let lines = self.body.lines();
        let texts = lines.filter_map(|line| match self.is_stream() {
            true => line.strip_prefix("data:"),
            false => Some(line),
        });
        let texts = texts.map(str::trim).filter(|text| !text.is_empty());
        let mut messages: Vec<_> = texts
            .flat_map(|text| {
                canonical(text, true)
                    .lines()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect();
        messages.sort();
        messages
    }

    pub(crate) fn event_id(&self) -> Option<&str> {
        self.body
            .lines()
            .filter_map(|line| line.strip_prefix("id: "))
            .next_back()
    }

    /// Sorts the answers to a batch, because a batch's messages run concurrently.
    pub(crate) fn normal(&self, session: &str, is_batch: bool) -> String {
        let mut lines = vec![format!("HTTP {}", self.status)];
        for name in COMPARED {
            lines.extend(self.header(name).map(|value| format!("{name}: {value}")));
        }
        for name in PRESENT {
            lines.extend(self.header(name).map(|_| format!("{name}: …")));
        }
        let is_stream = self.is_stream();
        let head = lines.len();
        for line in self.body.lines().filter(|line| !line.is_empty()) {
            // Comments only keep a slow stream alive. Retry hints and ids differ.
            let kept = match line.split_once(':') {
                Some(("" | "retry", _)) if is_stream => continue,
                Some(("id", _)) if is_stream => "id: …".to_owned(),
                Some(("data", data)) if is_stream => canonical(data.trim(), is_batch),
                _ => canonical(line, is_batch),
            };
            lines.push(if session.is_empty() {
                kept
            } else {
                kept.replace(session, "{session}")
            });
        }
        if is_batch {
            lines[head..].sort();
        }
        lines.join("\n")
    }
}

fn canonical(text: &str, is_batch: bool) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(answers)) if is_batch => {
            let mut answers: Vec<_> = answers.iter().map(Value::to_string).collect();
            answers.sort();
            answers.join("\n")
        }
        Ok(value) => value.to_string(),
        Err(_) => text.to_owned(),
    }
}

fn unchunked(mut text: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|chunk| !chunk.is_empty()) else {
            break;
        };
        body.push_str(chunk);
        text = rest[size..].trim_start_matches("\r\n");
    }
    body
}
