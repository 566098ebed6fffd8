//! Answers a POST of a client that accepts only JSON by reading its stream to the last response.
//!
//! Notifications are dropped, and questions are refused in the client's name.

use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{Backoff, EventStream, GatewayError, SessionId, StreamItem};
use shoal_protocol::{Body, EventId, Message, Outcome, Response, RpcError, batch, error_response};
use tokio::time::{Instant, sleep, timeout_at};

use super::{HandedOverMessage, pass, to};
use crate::backlog::BacklogPermit;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::visit::Visit;

/// Maximum times in a row that the edge reopens the stream without a new message.
const ATTEMPTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Whole<'a> {
    visit: &'a Visit<'a>,
    session: SessionId,
    is_batch: bool,
    responses: Vec<Bytes>,
    /// Room in the backlog for a batch's responses, which the client reads only after the last one.
    held: Vec<BacklogPermit>,
}

impl<'a> Whole<'a> {
    pub(super) fn new(visit: &'a Visit<'a>, session: SessionId, is_batch: bool) -> Self {
        Self {
            visit,
            session,
            is_batch,
            responses: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Reopens the stream if needed.
    ///
    /// # Errors
    /// The client's token is revoked, or the stream cannot be read to its end.
    pub(super) async fn read(
        mut self,
        stream: EventStream,
        handed: &HandedOverMessage,
    ) -> Result<Bytes, RefusedMessage> {
        let edge = self.visit.edge;
        let deadline = Instant::now() + edge.config.calls.timeout.get();
        let cut_off = edge.load.waits_end();
        let revoked = self.visit.until_revoked();
        let read = tokio::select! {
            read = timeout_at(deadline, self.read_all(stream)) => read,
            why = revoked => return Err(Refusal::Unauthenticated(why).into()),
            () = cut_off.cancelled() => {
                self.responses = handed.answers_of_drain().collect();
                Ok(Ok(()))
            }
        };
        read.unwrap_or_else(|_| Err(lost().into()))?;
        Ok(match self.is_batch {
            true => batch(&self.responses),
            false => self.responses.pop().unwrap_or_default(),
        })
    }

    async fn read_all(&mut self, mut stream: EventStream) -> Result<(), RefusedMessage> {
        let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE);
        let mut fruitless = 0;
        loop {
            let from = stream.cursor;
            let (cursor, end) = self.read_connection(&mut stream).await?;
            let pause = match end {
                StreamEnd::Answered => return Ok(()),
                StreamEnd::Closed => backoff.pause(),
                StreamEnd::ComeBack(after) => after,
            };
            fruitless = if cursor == from { fruitless + 1 } else { 0 };
            if fruitless == ATTEMPTS {
                return Err(lost().into());
            }
            drop(stream);
            sleep(pause).await;
            let to = to(self.visit, self.session.clone());
            let gateway = &self.visit.edge.gateway;
            stream = gateway.listen(&to, Some(cursor)).await?;
        }
    }

    async fn read_connection(
        &mut self,
        stream: &mut EventStream,
    ) -> Result<(EventId, StreamEnd), RefusedMessage> {
        let mut cursor = stream.cursor;
        loop {
            match stream.items.recv().await {
                Some(StreamItem::Event { id, data }) => {
                    cursor = id;
                    if self.take(data).await? {
                        return Ok((cursor, StreamEnd::Answered));
                    }
                }
                Some(StreamItem::Prime { id }) => cursor = id,
                Some(StreamItem::Passing { .. }) => {}
                Some(StreamItem::Retry(after)) => return Ok((cursor, StreamEnd::ComeBack(after))),
                None if self.is_batch && !self.responses.is_empty() => {
                    return Ok((cursor, StreamEnd::Answered));
                }
                Some(StreamItem::Moved) | None => return Ok((cursor, StreamEnd::Closed)),
            }
        }
    }

    async fn take(&mut self, data: Bytes) -> Result<bool, RefusedMessage> {
        match Message::parse(&data) {
            Ok(Message::Response(response)) => {
                let kept = match self.is_batch {
                    true => self.held(&response, data),
                    false => data,
                };
                self.responses.push(kept);
                Ok(!self.is_batch)
            }
            Ok(Message::Request(question)) => {
                let refused = RpcError::method_not_found(question.method.as_str());
                let answer = Message::Response(Response {
                    id: question.id,
                    outcome: Outcome::Error(refused),
                });
                let session = self.session.clone();
                Box::pin(pass(self.visit, session, Body::Single(answer), None)).await?;
                Ok(false)
            }
            Ok(Message::Notification(_)) | Err(_) => Ok(false),
        }
    }

    fn held(&mut self, response: &Response, data: Bytes) -> Bytes {
        match self.visit.reader().hold(data.len()) {
            Ok(held) => {
                self.held.push(held);
                data
            }
            Err(full) => error_response(&response.id, &full.after_effect()),
        }
    }
}

enum StreamEnd {
    Answered,
    Closed,
    ComeBack(Duration),
}

fn lost() -> GatewayError {
    GatewayError::Unreachable {
        reason: "its answer could not be read".to_owned(),
    }
}
