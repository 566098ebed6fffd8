//! Each hostile connection repeats its attempt after the same pause.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use http::HeaderValue;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::item::Item;
use super::tally::{Holding, Tally};
use super::wire::Wire;
use crate::connection::{Goodbye, Reply};
use crate::failure::Failure;
use crate::mcp::client::Client;
use crate::mcp::tools::{call, echo};
use crate::mcp::{Mode, modern};
use crate::target::Target;

/// An attempt that the server has not refused after this time holds a resource.
const SETTLED: Duration = Duration::from_millis(100);
/// The same time for a large body, which waits briefly for room.
const SETTLED_BODY: Duration = Duration::from_millis(1500);
/// The server ends a connection with unread answers sooner or later.
const UNREAD: Duration = Duration::from_secs(10);
const LARGE: usize = 2 << 20;
const WEBSOCKET_TEXT: usize = 64 << 10;
const LONG_URI: usize = 8000;
const AT_ONCE: u64 = 4;
const ASKABLE: &str = r#"{"elicitation":{"form":{}}}"#;

#[derive(Clone, Copy)]
pub(super) enum Deed {
    Harmless,
    Hold(Item),
}

/// The hostile tenant's own thread does not delay the good tenant's timer. Dropping the tenant
/// closes its connections.
pub(super) struct Hostile {
    pub(super) tally: Arc<Tally>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Hostile {
    /// Between repetitions of `deed`, each connection pauses for `pace`.
    pub(super) fn begin(
        targets: &[Target],
        connections: usize,
        pace: Duration,
        deed: Deed,
    ) -> anyhow::Result<Self> {
        let tally = Arc::new(Tally::default());
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let ones = (0..connections).map(|number| One {
            target: targets[number % targets.len()].clone(),
            tally: Arc::clone(&tally),
            number,
            kept: Vec::new(),
            client: None,
            made: 0,
        });
        let ones: Vec<One> = ones.collect();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let mut running = JoinSet::new();
                for one in ones {
                    let share = one.number as f64 / connections as f64;
                    running.spawn(one.go_on(deed, deed.spread(pace).mul_f64(share), pace));
                }
                let _ = stopped.await;
            });
        });
        Ok(Self {
            tally,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Deed {
    /// For large messages, the spread is the time for which each message is held, so that the run
    /// measures memory instead of copying speed.
    fn spread(self, pace: Duration) -> Duration {
        match self {
            Self::Hold(Item::AnswerBytes | Item::UnreadWebsockets) => UNREAD,
            _ => pace,
        }
    }
}

struct One {
    target: Target,
    tally: Arc<Tally>,
    number: usize,
    kept: Vec<Holding>,
    client: Option<Client>,
    made: u64,
}

impl One {
    async fn go_on(mut self, deed: Deed, after: Duration, pace: Duration) {
        sleep(after).await;
        loop {
            if let Err(failure) = self.attempt(deed).await {
                self.tally.failed(&failure);
                self.client = None;
            }
            sleep(pace).await;
        }
    }

    async fn attempt(&mut self, deed: Deed) -> Result<(), Failure> {
        let Deed::Hold(item) = deed else {
            return echo(self.client(Mode::Modern, "{}").await?, "echo", "harmless").await;
        };
        match item {
            Item::Requests => self.request().await,
            Item::RequestBytes => self.body().await,
            Item::Places => self.job(60_000).await,
            Item::Queue => self.job(2_000).await,
            Item::AnswerBytes => self.unread_answer().await,
            Item::UnreadStreams => self.unread_stream().await,
            Item::Sessions => self.session().await,
            Item::StoredBytes => self.subscribe(LONG_URI).await,
            Item::Streams => self.stream().await,
            Item::Websockets => self.websocket().await,
            Item::UnreadWebsockets => self.unread_websocket().await,
            Item::Questions => self.question().await,
            Item::WaitingCalls => self.waiting_call().await,
            Item::Subscriptions => self.subscribe(32).await,
            Item::Listen => self.listen().await,
            Item::Tasks => self.task().await,
            Item::IdleConnections => self.idle().await,
        }
    }

    async fn request(&self) -> Result<(), Failure> {
        let mut wire = Wire::open(&self.target, false).await?;
        wire.begin_call("echo", 100).await?;
        let mut held = None;
        let said = match timeout(SETTLED, wire.answer()).await {
            Ok(said) => said?,
            Err(_) => {
                held.replace(self.tally.hold(1));
                wire.answer().await?
            }
        };
        self.tally.refused(said.status, &said.text);
        Ok(())
    }

    async fn body(&self) -> Result<(), Failure> {
        let mut wire = Wire::open(&self.target, false).await?;
        wire.begin_call("echo", LARGE).await?;
        wire.send(&[b' '; 32 << 10]).await?;
        let mut patience = SETTLED_BODY;
        loop {
            if let Ok(said) = timeout(patience, wire.answer()).await {
                let said = said?;
                self.tally.refused(said.status, &said.text);
                return Ok(());
            }
            patience = Duration::from_secs(1);
            wire.send(&[b' '; 4 << 10]).await?;
        }
    }

    async fn job(&mut self, ms: u32) -> Result<(), Failure> {
        let client = self.client(Mode::Modern, "{}").await?;
        let arguments = format!(r#"{{"steps":1,"interval_ms":{ms}}}"#);
        call(client, "long_job", &arguments, "done after 1 steps").await
    }

    async fn unread_answer(&self) -> Result<(), Failure> {
        let mut wire = Wire::open(&self.target, true).await?;
        let text = "x".repeat(LARGE);
        wire.call("echo", &format!(r#"{{"text":"{text}"}}"#))
            .await?;
        sleep(UNREAD).await;
        let said = wire.answer().await?;
        if said.status != 200 {
            self.tally.refused(said.status, &said.text);
        }
        Ok(())
    }

    async fn unread_stream(&self) -> Result<(), Failure> {
        let mut wire = Wire::open(&self.target, true).await?;
        wire.call("long_job", r#"{"steps":10000,"interval_ms":1}"#)
            .await?;
        let said = wire.answer().await?;
        if said.status != 200 {
            self.tally.refused(said.status, &said.text);
            return Ok(());
        }
        sleep(UNREAD).await;
        Ok(())
    }

    async fn session(&mut self) -> Result<(), Failure> {
        Client::open(&self.target, Mode::Legacy, Goodbye::Reset).await?;
        self.kept.push(self.tally.hold(1));
        Ok(())
    }

    async fn subscribe(&mut self, length: usize) -> Result<(), Failure> {
        for _ in 0..AT_ONCE {
            self.made += 1;
            let uri = format!("demo://{}/{}/", self.number, self.made);
            let uri = format!("{uri:x<length$}");
            let params = format!(r#""uri":"{uri}""#);
            let client = self.client(Mode::Legacy, "{}").await?;
            client
                .request("resources/subscribe", None, &params, |_| Ok(()))
                .await?;
            let amount = if length == LONG_URI { length as u64 } else { 1 };
            self.kept.push(self.tally.hold(amount));
        }
        Ok(())
    }

    async fn stream(&self) -> Result<(), Failure> {
        let client = Client::open(&self.target, Mode::Legacy, Goodbye::Reset).await?;
        let reply = client.listen().await?;
        self.read(reply).await
    }

    async fn listen(&mut self) -> Result<(), Failure> {
        let mut client = Client::open(&self.target, Mode::Modern, Goodbye::Reset).await?;
        let uris: Vec<String> = (0..200)
            .map(|at| format!(r#""demo://{}/{at}""#, self.number))
            .collect();
        let params = format!(
            r#""notifications":{{"resourceSubscriptions":[{}]}}"#,
            uris.join(",")
        );
        let reply = client
            .start(1, "subscriptions/listen", None, &params)
            .await?;
        self.read(reply).await
    }

    async fn read(&self, mut reply: Reply) -> Result<(), Failure> {
        if !reply.is_streamed() {
            let said = reply.next().await?.unwrap_or_default();
            self.tally.refused(200, &said.data);
            return Ok(());
        }
        let _held = self.tally.hold(1);
        while reply.next_bytes().await?.is_some() {}
        Ok(())
    }

    async fn websocket(&self) -> Result<(), Failure> {
        let Some(mut wire) = self.upgraded(false).await? else {
            return Ok(());
        };
        let _held = self.tally.hold(1);
        wire.ended().await;
        Ok(())
    }

    async fn unread_websocket(&self) -> Result<(), Failure> {
        let Some(mut wire) = self.upgraded(true).await? else {
            return Ok(());
        };
        let text = "x".repeat(WEBSOCKET_TEXT);
        let call = |id| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
            )
        };
        for id in 2.. {
            let sent = timeout(UNREAD, wire.frame(&call(id))).await;
            sent.unwrap_or_else(|_| Err(Failure::transport("send", "not taken")))?;
            sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }

    /// Returns `None` if the server refuses the WebSocket.
    async fn upgraded(&self, narrow: bool) -> Result<Option<Wire>, Failure> {
        let mut wire = Wire::open(&self.target, narrow).await?;
        let said = wire.upgrade().await?;
        if said.status != 101 {
            self.tally.refused(said.status, &said.text);
            return Ok(None);
        }
        wire.frame(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"hostile","version":"1"}}}"#).await?;
        Ok(Some(wire))
    }

    async fn question(&mut self) -> Result<(), Failure> {
        let (reply, mut held) = (self.ask(Mode::Legacy).await?, Vec::new());
        hold_at(reply, "elicitation/create", &self.tally, &mut held).await
    }

    async fn waiting_call(&mut self) -> Result<(), Failure> {
        let reply = self.ask(Mode::Modern).await?;
        hold_at(reply, "requestState", &self.tally, &mut self.kept).await
    }

    async fn ask(&mut self, mode: Mode) -> Result<Reply, Failure> {
        let name = HeaderValue::from_static("book_table");
        let client = self.client(mode, ASKABLE).await?;
        let id = client.next_id();
        let params = r#""name":"book_table","arguments":{"restaurant":"nowhere"}"#;
        client.start(id, "tools/call", Some(&name), params).await
    }

    async fn task(&mut self) -> Result<(), Failure> {
        let name = HeaderValue::from_static("long_job");
        let client = self.client(Mode::Modern, modern::TASKS).await?;
        let id = client.next_id();
        let params = r#""name":"long_job","arguments":{"steps":1,"interval_ms":1000}"#;
        let reply = client.start(id, "tools/call", Some(&name), params).await?;
        hold_at(reply, "taskId", &self.tally, &mut self.kept).await
    }

    async fn idle(&self) -> Result<(), Failure> {
        let mut wire = Wire::open(&self.target, false).await?;
        let _held = self.tally.hold(1);
        wire.ended().await;
        Ok(())
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
    tally: &Arc<Tally>,
    held: &mut Vec<Holding>,
) -> Result<(), Failure> {
    while let Some(event) = reply.next().await? {
        if event.data.contains(sign) {
            held.push(tally.hold(1));
        } else if event.data.contains("rror") {
            tally.refused(0, &event.data);
        }
    }
    Ok(())
}
