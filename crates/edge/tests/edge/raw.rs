use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

pub(crate) fn post(lines: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{lines}"
    )
}

pub(crate) async fn send(address: SocketAddr, head: &str, body: &str) -> Answer {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    socket.write_all(request.as_bytes()).await.unwrap();
    timeout(SOON, read(&mut socket)).await.unwrap()
}

pub(crate) async fn read(socket: &mut TcpStream) -> Answer {
    let mut text = Vec::new();
    loop {
        let length = socket.read_buf(&mut text).await.unwrap();
        let read = String::from_utf8_lossy(&text);
        let whole = read.split_once("\r\n\r\n").and_then(|(head, body)| {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>().unwrap())
            });
            (body.len() >= length?).then(|| (head.to_owned(), body.to_owned()))
        });
        if let Some((head, body)) = whole {
            return Answer {
                status: head.split(' ').nth(1).unwrap().parse().unwrap(),
                body: serde_json::from_str(&body).unwrap_or_default(),
            };
        }
        assert_ne!(length, 0, "ended after {read:?}");
    }
}
