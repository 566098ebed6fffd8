use bytes::{BufMut as _, Bytes, BytesMut};
use futures::SinkExt as _;
use shoal_ports::StreamItem;
use shoal_telemetry::metrics::{self, Direction, metrics};
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::connection::{PIECE, SocketConnection};
use super::end::{AWAY, ConnectionEnd, MOVED, NOT_TEXT, OVER, UNREAD};

const EVENT_MEMBER: &str = "mcpEventId";

impl SocketConnection {
    pub(super) async fn tell(&mut self, item: Option<StreamItem>) -> Result<(), ConnectionEnd> {
        match item {
            Some(StreamItem::Event { id, data }) => {
                if let Some(session) = &self.session {
                    self.client.edge.awaited_answers.passed(&session.id, &data);
                }
                let text = match self.client.resumable {
                    true => with_member(EVENT_MEMBER, &id.to_string(), &data),
                    false => data,
                };
                // A client that can resume reads the message from the log later.
                let kept = self.client.reader().keep(text);
                self.write(kept.map_err(|_| UNREAD)?).await?;
                if let Some((single, _)) = self.session.as_ref().and_then(|it| it.single.as_ref()) {
                    single.passed(id);
                }
                Ok(())
            }
            Some(StreamItem::Passing { data }) => match self.client.reader().keep(data) {
                Ok(text) => self.write(text).await,
                Err(_) => Ok(()),
            },
            Some(StreamItem::Prime { .. }) => Ok(()),
            Some(StreamItem::Retry(_) | StreamItem::Moved) => {
                let edge = &self.client.edge;
                if !edge.drain.is_cancelled() {
                    return Err(MOVED);
                }
                sleep(edge.share_of_return()).await;
                Err(AWAY)
            }
            None => Err(OVER),
        }
    }

    pub(super) async fn say(&mut self, text: Option<Bytes>) -> Result<(), ConnectionEnd> {
        match text {
            Some(text) => self.write(text).await,
            None => Ok(()),
        }
    }

    /// Waits until the connection has taken the whole message.
    pub(super) async fn write(&mut self, text: Bytes) -> Result<(), ConnectionEnd> {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        metrics()
            .http
            .bytes(Direction::Out, metrics::Body::WebSocket, bytes);
        let written = match text.len() <= PIECE {
            true => {
                let text = Utf8Bytes::try_from(text).map_err(|_| NOT_TEXT)?;
                self.put(Message::Text(text)).await
            }
            false => self.write_in_pieces(&text).await,
        };
        written.map_err(|_| ConnectionEnd::Gone)
    }

    /// Writes in pieces, because the socket's buffer would keep the size of the largest frame.
    async fn write_in_pieces(&mut self, text: &Bytes) -> Result<(), Error> {
        let mut rest = text.clone();
        let mut kind = Data::Text;
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE));
            let frame = Frame::message(piece, OpCode::Data(kind), rest.is_empty());
            self.put(Message::Frame(frame)).await?;
            kind = Data::Continue;
        }
        Ok(())
    }

    /// Flushes first, because the buffer holds one frame.
    pub(super) async fn put(&mut self, frame: Message) -> Result<(), Error> {
        self.socket.flush().await?;
        self.socket.send(frame).await
    }
}

/// `value` must need no escapes.
pub(super) fn with_member(name: &str, value: &str, text: &Bytes) -> Bytes {
    let Some(at) = memchr::memchr(b'{', text) else {
        return text.clone();
    };
    let (before, rest) = text.split_at(at + 1);
    let mut with = BytesMut::with_capacity(text.len() + name.len() + value.len() + 6);
    with.put_slice(before);
    with.put_slice(b"\"");
    with.put_slice(name.as_bytes());
    with.put_slice(b"\":\"");
    with.put_slice(value.as_bytes());
    with.put_slice(b"\",");
    with.put_slice(rest);
    with.freeze()
}
