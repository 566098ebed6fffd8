//! Each hostile connection repeats its attempt after the same pause.

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use http::{HeaderValue, header};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::item::Item;
use crate::connection::{Goodbye, Reply, narrow_socket};
use crate::failure::Failure;
use crate::findings::Findings;
use crate::mcp::client::Client;
use crate::mcp::tools::{call, echo};
use crate::mcp::{Mode, request};
use crate::target::Target;

/// An attempt that the server has not refused after this time holds a resource.
const SETTLED: Duration = Duration::from_millis(100);
/// The server ends a connection with unread answers sooner or later.
const UNREAD: Duration = Duration::from_secs(10);
const LARGE: usize = 2 << 20;
const WEBSOCKET_TEXT: usize = 64 << 10;
pub(super) const LONG_URI: usize = 8000;
const AT_ONCE: u64 = 4;
const ASKABLE: &str = r#"{"elicitation":{"form":{}}}"#;
const BOOKING: &str = r#""restaurant":"nowhere""#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"hostile","version":"1"}}}"#;

#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Has a clone for everything that a connection holds.
    held: Arc<()>,
    /// Counted by status and code.
    refused: Findings,
}

impl Tally {
    fn hold(&self) -> Arc<()> {
        Arc::clone(&self.held)
    }

    pub(super) fn held(&self) -> usize {
        Arc::strong_count(&self.held) - 1
    }

    fn refused(&self, failure: &Failure) {
        let what = match failure {
            Failure::Status { status, body, .. } => format!("{status} {}", code(body)),
            Failure::Wrong(why) if code(why).is_empty() => "tool error".to_owned(),
            Failure::Wrong(why) => code(why),
            Failure::Transport(_) => "connection ended".to_owned(),
        };
        self.refused.add(what.trim_end(), failure);
    }

    pub(super) fn refusals(&self) -> String {
        let refused = self.refused.violations();
        let each = refused
            .iter()
            .map(|one| format!("{} × {}", one.what, one.count));
        match refused.is_empty() {
            true => "-".to_owned(),
            false => each.collect::<Vec<_>>().join(", "),
        }
    }
}

/// Returns the code of a JSON-RPC error.
fn code(text: &str) -> String {
    let rest = text.split_once("\"code\":").map_or("", |(_, rest)| rest);
    let end = rest.find([',', '}']).unwrap_or(rest.len());
    rest[..end].trim().to_owned()
}

/// The hostile tenant's own thread does not delay the good tenant's timer. Dropping the tenant
/// closes its connections.
pub(super) struct Hostile {
    pub(super) tally: Arc<Tally>,
    runtime: Option<Runtime>,
}

impl Hostile {
    /// Between repetitions of their attempt, which is a harmless call without `item`, connections pause for `pace`.
    pub(super) fn begin(
        targets: &[Target],
        connections: usize,
        pace: Duration,
        item: Option<Item>,
    ) -> anyhow::Result<Self> {
        let tally = Arc::new(Tally::default());
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build()?;
        // Large messages are spread over the time for which each is held, so that the run measures memory instead of
        // copying speed.
        let spread = match item {
            Some(Item::AnswerBytes | Item::UnreadWebsockets) => UNREAD,
            _ => pace,
        };
        for (number, target) in (0..connections).zip(targets.iter().cycle()) {
            let one = One {
                target: target.clone(),
                tally: Arc::clone(&tally),
                number,
                kept: Vec::new(),
                client: None,
                made: 0,
            };
            let after = spread.mul_f64(number as f64 / connections as f64);
            runtime.spawn(one.go_on(item, after, pace));
        }
        let runtime = Some(runtime);
        Ok(Self { tally, runtime })
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct One {
    target: Target,
    tally: Arc<Tally>,
    number: usize,
    kept: Vec<Arc<()>>,
    client: Option<Client>,
    made: u64,
}

impl One {
    async fn go_on(mut self, item: Option<Item>, after: Duration, pace: Duration) {
        sleep(after).await;
        loop {
            if let Err(failure) = self.attempt(item).await {
                self.tally.refused(&failure);
                self.client = None;
            }
            sleep(pace).await;
        }
    }

    async fn attempt(&mut self, item: Option<Item>) -> Result<(), Failure> {
        let Some(item) = item else {
            let client = self.client(Mode::Modern, "{}").await?;
            return echo(client, "echo", "harmless").await;
        };
        match item {
            Item::Requests => self.slow_call(100, 0, 0).await,
            Item::RequestBytes => self.slow_call(LARGE, 32 << 10, 4 << 10).await,
            Item::Places => self.job(60_000).await,
            Item::Queue => self.job(2_000).await,
            Item::AnswerBytes => {
                let text = "x".repeat(LARGE);
                self.unread("echo", &format!(r#""text":"{text}""#)).await
            }
            Item::UnreadStreams => {
                let arguments = r#""steps":10000,"interval_ms":1"#;
                self.unread("long_job", arguments).await
            }
            Item::Sessions => {
                Client::open(&self.target, Mode::Legacy, Goodbye::Reset).await?;
                self.kept.push(self.tally.hold());
                Ok(())
            }
            Item::StoredBytes => self.subscribe(LONG_URI).await,
            Item::Subscriptions => self.subscribe(32).await,
            Item::Streams => {
                let mut client = Client::open(&self.target, Mode::Legacy, Goodbye::Reset).await?;
                self.read(client.listen("").await?).await
            }
            Item::Listen => self.listen().await,
            Item::Websockets => {
                let mut socket = self.websocket().await?;
                let _held = self.tally.hold();
                while let Some(Ok(_)) = socket.next().await {}
                Ok(())
            }
            Item::UnreadWebsockets => self.unread_websocket().await,
            Item::Questions => {
                let reply = self.start(Mode::Legacy, ASKABLE, "book_table", BOOKING);
                let (reply, mut held) = (reply.await?, Vec::new());
                hold_at(reply, "elicitation/create", &self.tally, &mut held).await
            }
            Item::WaitingCalls => {
                let reply = self.start(Mode::Modern, ASKABLE, "book_table", BOOKING);
                let reply = reply.await?;
                hold_at(reply, "requestState", &self.tally, &mut self.kept).await
            }
            Item::Tasks => {
                let arguments = r#""steps":1,"interval_ms":1000"#;
                let (mode, able) = (Mode::Modern, request::TASKS);
                let reply = self.start(mode, able, "long_job", arguments).await?;
                hold_at(reply, "taskId", &self.tally, &mut self.kept).await
            }
            Item::IdleConnections => {
                let mut socket = narrow_socket(&self.target).await?;
                let _held = self.tally.hold();
                // The server ends the connection.
                let _ = socket.read_to_end(&mut Vec::new()).await;
                Ok(())
            }
        }
    }

    /// Sends the head of a call, the `first` bytes of its body, and `more` bytes each second.
    async fn slow_call(&self, length: usize, first: usize, more: usize) -> Result<(), Failure> {
        let (mut reading, mut writing) = narrow_socket(&self.target).await?.into_split();
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\nauthorization: {}\r\nconnection: close\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: echo\r\n\
             content-length: {length}\r\n\r\n{}",
            self.target.path,
            text(&self.target.host),
            self.target.authorization.as_ref().map_or("", text),
            " ".repeat(first),
        );
        let sending = async {
            writing.write_all(head.as_bytes()).await?;
            sleep(SETTLED).await;
            let _held = self.tally.hold();
            loop {
                sleep(Duration::from_secs(1)).await;
                writing.write_all(" ".repeat(more).as_bytes()).await?;
            }
        };
        let mut answer = Vec::new();
        // An error ends the answer.
        let _: Result<(), std::io::Error> = tokio::select! {
            biased;
            read = reading.read_to_end(&mut answer) => read.map(drop),
            sent = sending => sent,
        };
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.get(9..12).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| Failure::transport("read", "the connection ended"))?;
        Err(Failure::Status {
            status,
            retry_after_s: None,
            body: answer,
        })
    }

    async fn job(&mut self, ms: u32) -> Result<(), Failure> {
        let client = self.client(Mode::Modern, "{}").await?;
        let arguments = format!(r#"{{"steps":1,"interval_ms":{ms}}}"#);
        call(client, "long_job", &arguments, "done after 1 steps").await
    }

    async fn unread(&self, tool: &'static str, arguments: &str) -> Result<(), Failure> {
        let mut client = Client::open(&self.target, Mode::Modern, Goodbye::Reset).await?;
        client.narrow().await?;
        let params = format!(r#""name":"{tool}","arguments":{{{arguments}}}"#);
        let meta = r#""progressToken":1"#;
        let _reply = client.start(1, "tools/call", tool, &params, meta).await?;
        sleep(UNREAD).await;
        Ok(())
    }

    async fn subscribe(&mut self, length: usize) -> Result<(), Failure> {
        for _ in 0..AT_ONCE {
            self.made += 1;
            let uri = format!("demo://{}/{}/", self.number, self.made);
            let params = format!(r#""uri":"{uri:x<length$}""#);
            let client = self.client(Mode::Legacy, "{}").await?;
            let subscribing = client.request("resources/subscribe", "", &params, |_| Ok(()));
            subscribing.await?;
            self.kept.push(self.tally.hold());
        }
        Ok(())
    }

    async fn listen(&self) -> Result<(), Failure> {
        let mut client = Client::open(&self.target, Mode::Modern, Goodbye::Reset).await?;
        let uri = |at| format!(r#""demo://{}/{at}""#, self.number);
        let uris = (0..200).map(uri).collect::<Vec<_>>().join(",");
        let notifications = format!(r#"{{"resourceSubscriptions":[{uris}]}}"#);
        self.read(client.listen(&notifications).await?).await
    }

    async fn read(&self, mut reply: Reply) -> Result<(), Failure> {
        if !reply.is_streamed() {
            let refusal = reply.next().await?.unwrap_or_default();
            return Err(Failure::Wrong(refusal.data));
        }
        let _held = self.tally.hold();
        while reply.next_bytes().await?.is_some() {}
        Ok(())
    }

    async fn unread_websocket(&self) -> Result<(), Failure> {
        let mut socket = self.websocket().await?;
        let text = "x".repeat(WEBSOCKET_TEXT);
        for id in 2.. {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
            );
            let sent = timeout(UNREAD, socket.send(Message::text(call))).await;
            let sent = sent.map_err(|_| Failure::transport("send", "not taken"))?;
            sent.map_err(|cause| Failure::transport("send", cause))?;
            sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }

    async fn websocket(&self) -> Result<WebSocketStream<TcpStream>, Failure> {
        let socket = narrow_socket(&self.target).await?;
        let url = format!("ws://{}{}", text(&self.target.host), self.target.path);
        let mut request = url
            .into_client_request()
            .map_err(|cause| Failure::transport("upgrade", cause))?;
        let headers = request.headers_mut();
        let protocol = HeaderValue::from_static("mcp");
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        headers.extend((self.target.authorization.clone()).map(|it| (header::AUTHORIZATION, it)));
        let opened = client_async(request, socket).await;
        let (mut socket, _) = opened.map_err(|error| match error {
            Error::Http(answer) => Failure::Status {
                status: answer.status().as_u16(),
                retry_after_s: None,
                body: String::from_utf8_lossy(answer.body().as_deref().unwrap_or_default()).into(),
            },
            error => Failure::transport("upgrade", error),
        })?;
        let sent = socket.send(Message::text(INITIALIZE)).await;
        sent.map_err(|cause| Failure::transport("send", cause))?;
        Ok(socket)
    }

    async fn start(
        &mut self,
        mode: Mode,
        able: &'static str,
        tool: &'static str,
        arguments: &str,
    ) -> Result<Reply, Failure> {
        let client = self.client(mode, able).await?;
        let id = client.next_id();
        let params = format!(r#""name":"{tool}","arguments":{{{arguments}}}"#);
        client.start(id, "tools/call", tool, &params, "").await
    }

    async fn client(&mut self, mode: Mode, able: &'static str) -> Result<&mut Client, Failure> {
        let client = match self.client.take() {
            Some(client) => client,
            None => Client::open_with(None, &self.target, mode, Goodbye::Reset, able).await?,
        };
        Ok(self.client.insert(client))
    }
}

/// Reads an answer. Each event that contains `sign` holds a resource, and each error is a refusal.
async fn hold_at(
    mut reply: Reply,
    sign: &str,
    tally: &Tally,
    held: &mut Vec<Arc<()>>,
) -> Result<(), Failure> {
    while let Some(event) = reply.next().await? {
        if event.data.contains(sign) {
            held.push(tally.hold());
        } else if event.data.contains("rror") {
            // The client stays.
            tally.refused(&Failure::Wrong(event.data));
        }
    }
    Ok(())
}

fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Failure, Tally};

    #[test]
    fn refusals_are_counted_by_status_and_code() {
        let tally = Tally::default();
        for (status, body) in [(429, r#"{"error":{"code":50300}}"#), (503, "")] {
            tally.refused(&Failure::Status {
                status,
                retry_after_s: None,
                body: body.to_owned(),
            });
        }
        tally.refused(&Failure::Wrong(r#"{"code":-32800}"#.to_owned()));
        assert_eq!(tally.refusals(), "-32800 × 1, 429 50300 × 1, 503 × 1");
    }
}
