//! HTTP/2 frames that client libraries would not send.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::address;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RESET: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) type Head = Vec<(&'static str, String)>;

pub(crate) fn head(authority: &str, tool: &str) -> Head {
    let named = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/mcp"),
        (":authority", authority),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ];
    named.map(|(name, value)| (name, value.to_owned())).to_vec()
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// HPACK without compression. Names and values have at most 126 bytes.
pub(crate) fn packed(head: &Head) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in head {
        block.push(0);
        for text in [*name, value.as_str()] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.as_bytes());
        }
    }
    block
}

pub(crate) async fn ask(url: &str, head: &Head, body: &[u8]) -> String {
    let mut bytes = frame(HEADERS, END_HEADERS, 1, &packed(head));
    bytes.extend(frame(DATA, END_STREAM, 1, body));
    send(url, &[], &bytes).await
}

/// Returns `answer` with its text, `reset`, `goaway` or `closed`.
pub(crate) async fn send(url: &str, settings: &[u8], frames: &[u8]) -> String {
    let mut socket = TcpStream::connect(address(url)).await.unwrap();
    let mut bytes = PREFACE.to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, settings));
    bytes.extend(frames);
    let (mut reader, mut writer) = socket.split();
    let writing = async {
        let _ = writer.write_all(&bytes).await;
        std::future::pending::<String>().await
    };
    let reading = async {
        let mut text = String::new();
        loop {
            let mut head = [0; 9];
            if reader.read_exact(&mut head).await.is_err() {
                return "closed".to_owned();
            }
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            if reader.read_exact(&mut payload).await.is_err() {
                return "closed".to_owned();
            }
            match head[3] {
                RESET => return format!("reset {:?}", payload.last()),
                GO_AWAY => return format!("goaway {:?}", payload.get(7)),
                DATA => {
                    text.push_str(&String::from_utf8_lossy(&payload));
                    if head[4] & END_STREAM != 0 {
                        return format!("answer {text}");
                    }
                }
                _ => {}
            }
        }
    };
    let both = async {
        tokio::select! { said = reading => said, said = writing => said }
    };
    let said = timeout(Duration::from_secs(15), both).await;
    said.unwrap_or_else(|_| "silent".to_owned())
}
