use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use shoal_ports::SessionId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::client::SocketSession;
use super::connection::{READ_AT_ONCE, SocketConnection};
use super::end::ConnectionEnd;
use super::receiving::{ArrivedMessage, CONTROL_FRAME, hand_over};
use crate::body_budget::BodyPermit;
use crate::upgrade::Duplex;

/// How long and how much a client may send after the close. Closing at once would reset the
/// connection and lose the reason.
const LINGER: Duration = Duration::from_secs(5);
const LINGER_BYTES: usize = 32 << 20;
const LONGEST_REASON: usize = 123;

impl SocketConnection {
    pub(super) async fn end(mut self, end: ConnectionEnd) {
        let _ = timeout(LINGER, async {
            match end {
                ConnectionEnd::Gone => {
                    let _ = self.socket.flush().await;
                    io::Result::Ok(())
                }
                ConnectionEnd::Close(code, why) => {
                    self.say_the_rest().await;
                    let reason = short(&why).into();
                    let told = self.farewell(CloseFrame { code, reason }).await;
                    if told.is_err() {
                        return Ok(());
                    }
                    if matches!(code, CloseCode::Away | CloseCode::Restart) {
                        self.hear_the_rest().await;
                    }
                    linger(self.socket.into_inner().into_inner()).await
                }
            }
        })
        .await;
    }

    async fn farewell(&mut self, why: CloseFrame) -> Result<(), Error> {
        self.socket.flush().await?;
        self.socket.close(Some(why)).await
    }

    /// Messages that still arrive are answered when the client resumes.
    async fn hear_the_rest(&mut self) {
        let Some(SocketSession {
            id, single: None, ..
        }) = self.session.take()
        else {
            return;
        };
        loop {
            if !self.reads() {
                self.handed_over.next().await;
                continue;
            }
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    let room = self.socket.get_mut().took(text.len());
                    self.hand_over_unanswered(&id, Bytes::from(text), room)
                        .await;
                }
                Some(Ok(Message::Ping(payload) | Message::Pong(payload))) => {
                    let bytes = CONTROL_FRAME + payload.len();
                    self.socket.get_mut().passed(bytes);
                }
                _ => return,
            }
        }
    }

    async fn hand_over_unanswered(
        &mut self,
        session: &SessionId,
        text: Bytes,
        room: Option<BodyPermit>,
    ) {
        let (client, began) = (Arc::clone(&self.client), Instant::now());
        match ArrivedMessage::read(&client, began, &text, Some(session), room) {
            Ok(message) => {
                let asks = message.asks();
                let handing_over = tokio::spawn(hand_over(client, session.clone(), message));
                if asks {
                    self.handed_over.push(handing_over);
                } else {
                    let _ = handing_over.await;
                }
            }
            Err(refused) => refused.count(&client.edge.recorder, began),
        }
    }

    /// Refusals are in no stream, so a client that resumes would miss those that were not written
    /// here.
    async fn say_the_rest(&mut self) {
        while let Some(said) = self.handed_over.next().await {
            let said = said.unwrap_or(Ok(None)).unwrap_or(None);
            if self.say(said).await.is_err() {
                return;
            }
        }
    }
}

/// The client's close shows that it has received everything.
async fn linger(mut connection: Box<dyn Duplex>) -> io::Result<()> {
    connection.shutdown().await?;
    let mut scrap = vec![0; READ_AT_ONCE];
    let mut taken = 0;
    while taken < LINGER_BYTES {
        match connection.read(&mut scrap).await? {
            0 => break,
            length => taken += length,
        }
    }
    Ok(())
}

fn short(reason: &str) -> String {
    let mut end = reason.len().min(LONGEST_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason[..end].to_owned()
}
