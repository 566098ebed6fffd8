use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use shoal_ports::{GrantWatch, StreamItem};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;

use super::client::{SocketClient, SocketSession};
use super::end::{AWAY, ConnectionEnd, NOT_OPENED};
use crate::load::{OpenStreamCount, StreamPermit};
use crate::metered::{MessageBounds, MeteredConnection};
use crate::upgrade::Duplex;

/// Handovers at which reading stops.
const HANDED_OVER_AT_ONCE: usize = 64;
pub(super) const READ_AT_ONCE: usize = 8 << 10;
/// Unanswered pings after which the client counts as dead.
const UNHEARD: u32 = 2;
/// The socket's buffer has room for one frame, so that pongs for a client that does not read cannot
/// pile up. Only the newest ping is answered (RFC 6455, 5.5.3).
const WRITTEN_AT_ONCE: usize = 2 * PIECE;

pub(super) type HandOverAnswer = Result<Option<Bytes>, ConnectionEnd>;

pub(super) struct SocketConnection {
    pub(super) client: Arc<SocketClient>,
    pub(super) socket: WebSocketStream<MeteredConnection>,
    pub(super) session: Option<SocketSession>,
    /// Handovers to sessions, which continue if these handles are dropped.
    pub(super) handed_over: FuturesUnordered<JoinHandle<HandOverAnswer>>,
    watch: GrantWatch,
    unheard: u32,
}

pub(super) async fn serve(
    client: Arc<SocketClient>,
    session: Option<SocketSession>,
    watch: GrantWatch,
    _held: (StreamPermit, OpenStreamCount),
    connection: Box<dyn Duplex>,
) {
    let edge = &client.edge;
    let limit = edge.config.limits.body_bytes;
    let bounds = MessageBounds {
        bytes: limit,
        within: edge.config.endpoint.body_timeout.get(),
        budget: Arc::clone(&edge.budget),
        principal: client.principal.clone(),
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_AT_ONCE)
        .write_buffer_size(0)
        .max_write_buffer_size(WRITTEN_AT_ONCE)
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit));
    let metered = MeteredConnection::new(connection, bounds);
    let socket = WebSocketStream::from_raw_socket(metered, Role::Server, Some(config)).await;
    let mut connection = SocketConnection {
        client,
        socket,
        session,
        handed_over: FuturesUnordered::new(),
        watch,
        unheard: 0,
    };
    let end = connection.run().await;
    connection.end(end).await;
}

impl SocketConnection {
    async fn run(&mut self) -> ConnectionEnd {
        match self.steps().await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn steps(&mut self) -> Result<Infallible, ConnectionEnd> {
        let config = &self.client.edge.config;
        let mut pings = interval(config.streams.keep_alive.get());
        let mut late = Box::pin(sleep(config.endpoint.body_timeout.get()));
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        let mut sent_away: BoxFuture<'_, ()> = Box::pin(Arc::clone(&self.client).sent_away());
        let mut ending: Option<BoxFuture<'_, ()>> = None;
        loop {
            let (opened, resumable) = (self.session.is_some(), self.client.resumable);
            let reads = self.reads();
            let quiet = self.session.as_ref().and_then(SocketSession::sent_away);
            tokio::select! {
                item = next_item(self.session.as_mut()) => match item {
                    None if ending.is_some() => return Err(AWAY),
                    item => self.tell(item).await?,
                },
                Some(said) = self.handed_over.next() => {
                    let said = said.unwrap_or(Ok(None))?;
                    self.say(said).await?;
                }
                read = self.socket.next(), if reads => self.hear(read).await?,
                _ = pings.tick() => self.ping().await?,
                () = &mut sent_away, if resumable || !opened => return Err(AWAY),
                () = cancelled(quiet), if ending.is_none() => {
                    ending = self.session.as_ref().and_then(SocketSession::end);
                }
                () = ended(ending.as_mut()) => return Err(AWAY),
                news = self.watch.next() => self.client.hear_of_grant(news)?,
                () = &mut late, if !opened => return Err(NOT_OPENED),
            }
        }
    }

    pub(super) fn reads(&self) -> bool {
        self.handed_over.len() < HANDED_OVER_AT_ONCE
    }

    async fn ping(&mut self) -> Result<(), ConnectionEnd> {
        // Silence does not count while this loop does not read.
        let silent = !self.socket.get_mut().heard() && self.reads();
        self.unheard = if silent { self.unheard + 1 } else { 0 };
        if self.unheard > UNHEARD {
            return Err(ConnectionEnd::Gone);
        }
        let ping = self.put(Message::Ping(Bytes::new())).await;
        ping.map_err(|_| ConnectionEnd::Gone)
    }
}

async fn next_item(session: Option<&mut SocketSession>) -> Option<StreamItem> {
    match session {
        Some(session) => poll_fn(|cx| session.events.items.poll_recv(cx)).await,
        None => pending().await,
    }
}

async fn ended(ending: Option<&mut BoxFuture<'_, ()>>) {
    match ending {
        Some(ending) => ending.await,
        None => pending().await,
    }
}

async fn cancelled(token: Option<CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => pending().await,
    }
}

pub(super) const PIECE: usize = 64 << 10;
