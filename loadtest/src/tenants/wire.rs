use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::failure::Failure;
use crate::target::Target;

const NARROW: u32 = 4096;
const LONGEST: usize = 8192;
const REST: Duration = Duration::from_millis(200);

pub(super) struct Wire {
    stream: TcpStream,
    host: String,
    path: String,
    authorization: String,
}

pub(super) struct Said {
    pub(super) status: u16,
    pub(super) text: String,
}

impl Wire {
    /// With `narrow`, the system buffers little unread data.
    pub(super) async fn open(target: &Target, narrow: bool) -> Result<Self, Failure> {
        let failed = |cause| Failure::transport("connect", cause);
        let socket = TcpSocket::new_v4().map_err(failed)?;
        if narrow {
            socket.set_recv_buffer_size(NARROW).map_err(failed)?;
        }
        let stream = socket.connect(target.address).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        // Many orderly closes would use up the ports.
        stream.set_zero_linger().map_err(failed)?;
        let text = |value: Option<&http::HeaderValue>| {
            let text = value.and_then(|value| value.to_str().ok());
            text.unwrap_or_default().to_owned()
        };
        Ok(Self {
            stream,
            host: text(Some(&target.host)),
            path: target.path.to_string(),
            authorization: text(target.authorization.as_ref()),
        })
    }

    pub(super) async fn begin_call(&mut self, tool: &str, length: usize) -> Result<(), Failure> {
        let Self {
            host,
            path,
            authorization,
            ..
        } = self;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: {authorization}\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n\
             content-length: {length}\r\n\r\n"
        );
        self.send(head.as_bytes()).await
    }

    pub(super) async fn call(&mut self, tool: &str, arguments: &str) -> Result<(), Failure> {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        self.begin_call(tool, body.len()).await?;
        self.send(body.as_bytes()).await
    }

    pub(super) async fn upgrade(&mut self) -> Result<Said, Failure> {
        let Self {
            host,
            path,
            authorization,
            ..
        } = self;
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: {authorization}\r\n\
             connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: mcp\r\n\r\n"
        );
        self.send(head.as_bytes()).await?;
        self.answer().await
    }

    /// Sends a text frame. Its mask is zero.
    pub(super) async fn frame(&mut self, text: &str) -> Result<(), Failure> {
        let mut frame = vec![0x81];
        match u16::try_from(text.len()) {
            Ok(length @ ..126) => frame.push(0x80 | u8::try_from(length).unwrap_or_default()),
            Ok(length) => {
                frame.push(0x80 | 126);
                frame.extend(length.to_be_bytes());
            }
            Err(_) => {
                frame.push(0x80 | 127);
                frame.extend((text.len() as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.send(&frame).await
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let sent = self.stream.write_all(bytes).await;
        sent.map_err(|cause| Failure::transport("send", cause))
    }

    pub(super) async fn answer(&mut self) -> Result<Said, Failure> {
        let mut read = Vec::new();
        let until_head = |read: &[u8]| read.windows(4).any(|end| end == b"\r\n\r\n");
        while !until_head(&read) {
            self.more(&mut read).await?;
        }
        let status = read.get(9..12).and_then(|it| str::from_utf8(it).ok());
        let status = status.and_then(|it| it.parse().ok()).unwrap_or_default();
        if status >= 400 {
            // The refusal's text may come after the head.
            while !read.ends_with(b"}")
                && timeout(REST, self.more(&mut read))
                    .await
                    .is_ok_and(|it| it.is_ok())
            {}
        }
        let text = String::from_utf8_lossy(&read).into_owned();
        Ok(Said { status, text })
    }

    pub(super) async fn ended(&mut self) {
        let mut read = [0; 1024];
        while matches!(self.stream.read(&mut read).await, Ok(bytes) if bytes > 0) {}
    }

    async fn more(&mut self, read: &mut Vec<u8>) -> Result<(), Failure> {
        let mut next = [0; 2048];
        let bytes = self.stream.read(&mut next).await;
        let bytes = bytes.map_err(|cause| Failure::transport("read", cause))?;
        if bytes == 0 || read.len() > LONGEST {
            return Err(Failure::transport("read", "the connection ended"));
        }
        read.extend_from_slice(&next[..bytes]);
        Ok(())
    }
}
