use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures::future::try_join_all;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use shoal_protocol::EventId;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::{AWAY, Deeds, Injector};
use crate::cluster::Member;

const CLIENTS: usize = 16;
/// More answers than the stream's log keeps.
const ANSWERS: u64 = 40;
const STEP: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);

pub(in crate::chaos) const SETTINGS: [(&str, &str); 3] = [
    ("server.websocket", "true"),
    ("streams.events_per_stream", "16"),
    ("streams.tail_events", "4"),
];

type Socket = WebSocketStream<TcpStream>;

struct Guest<'a> {
    edges: Vec<&'a Member>,
    session: String,
}

impl Injector<'_> {
    pub(super) async fn come_back_without_ids(&mut self) -> Deeds {
        let edges = self.cluster.edges();
        let guests = try_join_all((0..CLIENTS).map(|number| {
            let mut edges = edges.clone();
            let first = number % edges.len();
            edges.rotate_left(first);
            Guest::open(edges)
        }));
        let guests = guests.await.context("a session cannot be opened")?;
        let patience = self.options.settle;
        let returns = || try_join_all(guests.iter().map(|guest| guest.come_back(patience)));
        let sessions = self.cluster.sessions();
        // The node must come back even if a client fails.
        let (returned, killed) = tokio::join!(returns(), self.kill_one(&sessions, AWAY));
        let deeds = killed?;
        returned?;
        returns().await?;
        Ok(deeds)
    }
}

impl<'a> Guest<'a> {
    async fn open(edges: Vec<&'a Member>) -> anyhow::Result<Self> {
        let edge = edges.first().context("there is no edge")?;
        let mut socket = connect(edge, "mcp.resume").await?;
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "guest", "version": "1" },
        });
        let initialize =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let greeting = ask(&mut socket, &initialize, 0).await?.message;
        let session = greeting["mcpSessionId"].as_str().context("no session id")?;
        let session = session.to_owned();
        for id in 1..=ANSWERS {
            ask(&mut socket, &ping(id), id).await?;
        }
        Ok(Self { edges, session })
    }

    /// The client must get the log's events without a gap, and then the answer.
    async fn come_back(&self, patience: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + patience;
        let protocols = format!("mcp.resume, mcp.session.{}", self.session);
        for (edge, id) in self.edges.iter().cycle().zip(ANSWERS + 1..) {
            let answered = async {
                let mut socket = connect(edge, &protocols).await?;
                ask(&mut socket, &ping(id), id).await
            };
            match answered.await {
                Ok(answer) => return answer.check(&self.session),
                Err(error) if Instant::now() > deadline => {
                    let session = &self.session;
                    return Err(error.context(format!("session {session} is not answered")));
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
        bail!("there is no edge")
    }
}

struct Answer {
    message: Value,
    events: Vec<u64>,
}

impl Answer {
    fn check(&self, session: &str) -> anyhow::Result<()> {
        let events = &self.events;
        let first = *events.first().context("an answer is no event")?;
        ensure!(
            first > 1,
            "session {session} has kept every event: {events:?}"
        );
        let in_order = events.windows(2).all(|pair| pair[1] == pair[0] + 1);
        ensure!(
            in_order,
            "session {session} has a gap or a repeat: {events:?}"
        );
        Ok(())
    }
}

fn ping(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })
}

async fn connect(edge: &Member, protocols: &str) -> anyhow::Result<Socket> {
    let url = edge.mcp_url().context("it is no edge")?;
    let mut request = url.replacen("http://", "ws://", 1).into_client_request()?;
    let host = request.uri().authority().context("no host")?.to_string();
    let offered = protocols.parse()?;
    let headers = request.headers_mut();
    headers.insert("sec-websocket-protocol", offered);
    let connecting = async {
        let stream = TcpStream::connect(host).await?;
        anyhow::Ok(client_async(request, stream).await?.0)
    };
    timeout(STEP, connecting).await?
}

async fn ask(socket: &mut Socket, request: &Value, id: u64) -> anyhow::Result<Answer> {
    socket.send(Message::text(request.to_string())).await?;
    let mut events = Vec::new();
    let answer = async {
        while let Some(message) = socket.next().await {
            match message? {
                Message::Text(text) => {
                    let message: Value = serde_json::from_str(&text)?;
                    events.extend(event_number(&message)?);
                    if message["id"] == id {
                        return Ok(Answer { message, events });
                    }
                }
                Message::Close(frame) => bail!("the connection was closed: {frame:?}"),
                _ => {}
            }
        }
        bail!("the connection has ended")
    };
    timeout(STEP, answer).await?
}

fn event_number(message: &Value) -> anyhow::Result<Option<u64>> {
    let Some(id) = message["mcpEventId"].as_str() else {
        return Ok(None);
    };
    let id: EventId = id.parse()?;
    Ok(Some(id.sequence))
}
