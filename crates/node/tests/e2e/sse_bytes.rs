//! Event streams must satisfy strict official SDKs.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{Events, Session, call, modern, modern_call, post_modern};
use crate::process::{SOON, Server};

#[derive(Debug, Default)]
struct Event {
    kind: Option<String>,
    id: Option<String>,
    data: Option<String>,
}

/// In the Java SDK, fields other than `event`, `id` and `data` are errors.
fn strict(stream: &str) -> Vec<Event> {
    let mut events = vec![Event::default()];
    for line in stream.lines() {
        let event = events.last_mut().unwrap();
        match line.split_once(':') {
            None if line.is_empty() => events.push(Event::default()),
            Some(("event", kind)) => event.kind = Some(kind.trim().to_owned()),
            Some(("id", id)) => event.id = Some(id.trim().to_owned()),
            Some(("data", data)) => event.data = Some(data.trim().to_owned()),
            Some(("", _comment)) => {}
            _ => panic!("Invalid SSE response. Line: {line}\n{stream}"),
        }
    }
    events.retain(|event| event.data.is_some());
    events
}

async fn exchange(address: &str, head: &str, body: &Value) -> (String, String) {
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n{head}\r\n{body}",
        body.len(),
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    tokio::time::timeout(SOON, reading).await.unwrap().unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, chunks) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), dechunked(chunks))
}

fn dechunked(mut chunks: &str) -> String {
    let mut body = String::new();
    loop {
        let (length, rest) = chunks.split_once("\r\n").unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return body;
        }
        body.push_str(&rest[..length]);
        chunks = rest[length..].strip_prefix("\r\n").unwrap();
    }
}

/// Progress makes the answer a stream.
fn job(mut call: Value) -> Value {
    call["params"]["_meta"]["progressToken"] = json!("job");
    call
}

fn kinds(events: &[Event]) -> Vec<Option<&str>> {
    events.iter().map(|event| event.kind.as_deref()).collect()
}

#[tokio::test]
async fn a_call_is_read_by_clients_that_know_no_retry() {
    let server = Server::start(&["--demo"]).await;
    let address = server.mcp.split('/').nth(2).unwrap();
    let session = Session::open(&server.mcp).await;
    let arguments = json!({ "steps": 2, "interval_ms": 50 });
    let head = format!(
        "Mcp-Session-Id: {}\r\nMCP-Protocol-Version: 2025-11-25\r\n",
        session.id
    );
    let legacy = job(call(1, "long_job", arguments.clone()));
    let (answered, stream) = exchange(address, &head, &legacy).await;
    assert!(
        answered.contains("cache-control: no-store, no-transform\r\n"),
        "{answered}"
    );
    assert!(answered.contains("x-accel-buffering: no"), "{answered}");
    let events = strict(&stream);
    assert_eq!(events[0].data.as_deref(), Some(""), "{stream}");
    assert!(events.iter().all(|event| event.id.is_some()), "{stream}");
    let mut expected = vec![Some("message"); 4];
    expected[0] = None;
    assert_eq!(kinds(&events), expected, "{stream}");

    let head =
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: long_job\r\n";
    let modern = job(modern_call(2, "long_job", arguments));
    let (answered, stream) = exchange(address, head, &modern).await;
    assert!(answered.contains("no-transform"), "{answered}");
    assert_eq!(kinds(&strict(&stream)), [Some("message"); 3], "{stream}");
}

#[tokio::test]
async fn a_retry_stands_only_at_the_end_of_a_stream_that_the_server_closes() {
    let mut server = Server::start(&["--demo"]).await;
    let session = Session::open(&server.mcp).await;
    let mut listening = session.listen().await;
    let toggle = call(1, "toggle_bonus_tool", json!({}));
    session.ask(&toggle).await;
    let told = async {
        loop {
            let event = listening.next().await.unwrap();
            assert!(!event.contains("retry:"), "{event}");
            if event.contains("list_changed") {
                return event;
            }
        }
    };
    let told = tokio::time::timeout(SOON, told).await.unwrap();
    assert_eq!(kinds(&strict(&told)), [Some("message")], "{told}");
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let listen = modern(2, "subscriptions/listen", listen);
    let listener = post_modern(&server.mcp, &listen);
    let mut listener = Events::of(listener.send().await.unwrap());
    let first = listener.next().await.unwrap();
    assert_eq!(kinds(&strict(&first)), [Some("message")], "{first}");

    server.signal(nix::sys::signal::Signal::SIGTERM);
    let mut last = Vec::new();
    while let Some(event) = listening.next().await {
        last.push(event);
    }
    let (last, before) = last.split_last().unwrap();
    assert!(last.trim().starts_with("retry: "), "{last}");
    assert!(before.iter().all(|event| !event.contains("retry:")));
    drop(listener);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
}
