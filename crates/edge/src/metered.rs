//! A connection's large messages take room in the budget of bodies (`body_budget.rs`).
//!
//! After more than [`SMALL`] bytes, a message takes room for the maximum, because a fragmented
//! message does not announce its length. Until there is room, TCP slows the sender down.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use shoal_ports::Principal;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::body_budget::{BodyBudget, BodyPermit, SMALL};
use crate::refusal::Refusal;
use crate::upgrade::Duplex;

pub(crate) struct MessageBounds {
    pub(crate) bytes: usize,
    pub(crate) within: Duration,
    pub(crate) budget: Arc<BodyBudget>,
    pub(crate) principal: Principal,
}

pub(crate) struct MeteredConnection {
    connection: Box<dyn Duplex>,
    bounds: MessageBounds,
    read: usize,
    heard: bool,
    room: Room,
    refusal: Option<Refusal>,
}

enum Room {
    None,
    Taking(BoxFuture<'static, Result<BodyPermit, Refusal>>),
    Held(BodyPermit, Pin<Box<Sleep>>),
}

impl MeteredConnection {
    pub(crate) fn new(connection: Box<dyn Duplex>, bounds: MessageBounds) -> Self {
        Self {
            connection,
            bounds,
            read: 0,
            heard: false,
            room: Room::None,
            refusal: None,
        }
    }

    /// Returns the room of a large message.
    pub(crate) fn took(&mut self, bytes: usize) -> Option<BodyPermit> {
        self.read = 0;
        match std::mem::replace(&mut self.room, Room::None) {
            Room::Held(mut room, _) => {
                room.shrink(bytes);
                Some(room)
            }
            Room::Taking(_) | Room::None => None,
        }
    }

    pub(crate) fn passed(&mut self, bytes: usize) {
        self.read = self.read.saturating_sub(bytes);
    }

    pub(crate) fn heard(&mut self) -> bool {
        std::mem::take(&mut self.heard)
    }

    pub(crate) fn refusal(&mut self) -> Option<Refusal> {
        self.refusal.take()
    }

    pub(crate) fn into_inner(self) -> Box<dyn Duplex> {
        self.connection
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        loop {
            match &mut self.room {
                Room::None if self.read <= SMALL => return Poll::Ready(Ok(())),
                Room::None => {
                    let (budget, bytes) = (Arc::clone(&self.bounds.budget), self.bounds.bytes);
                    let principal = self.bounds.principal.clone();
                    let taking = async move { budget.take(&principal, bytes).await };
                    self.room = Room::Taking(taking.boxed());
                }
                Room::Taking(taking) => {
                    let room = ready!(taking.poll_unpin(cx))?;
                    self.room = Room::Held(room, Box::pin(sleep(self.bounds.within)));
                }
                Room::Held(_, late) => {
                    let within = self.bounds.within;
                    return match late.poll_unpin(cx) {
                        Poll::Ready(()) => Poll::Ready(Err(Refusal::BodyTooSlow { within })),
                        Poll::Pending => Poll::Ready(Ok(())),
                    };
                }
            }
        }
    }
}

impl AsyncRead for MeteredConnection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Err(refusal) = ready!(this.poll_room(cx)) {
            this.room = Room::None;
            this.refusal = Some(refusal);
            return Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()));
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut this.connection).poll_read(cx, into))?;
        this.read += into.filled().len() - before;
        this.heard = true;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MeteredConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}
