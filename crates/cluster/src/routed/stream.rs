//! When the owner changes or a connection breaks, a stream continues after the last event that its client has. This
//! runs in the task that reads the stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream};
use shoal_ports::{Backoff, EventStream, SessionRef, StreamItem, StreamItems};
use shoal_protocol::EventId;
use tokio::time::Instant;

use super::Routes;
use super::request::Listen;

struct Outliving {
    routes: Arc<Routes>,
    to: SessionRef,
    cursor: EventId,
    /// Whether the client has an ID to resume from.
    primed: bool,
    from: StreamSource,
    /// When this owner was found, and the client's position at that time.
    found: (Instant, EventId),
    moves: Option<Box<StreamMoves>>,
}

enum StreamSource {
    Owner(StreamItems),
    NextOwner(BoxFuture<'static, Option<StreamItems>>),
    Nobody,
}

struct StreamMoves {
    backoff: Backoff,
    /// Number of successive owners that sent no event and soon ended the stream.
    futile: u32,
}

impl Routes {
    pub(super) fn outlive(self: &Arc<Self>, to: &SessionRef, stream: EventStream) -> EventStream {
        let EventStream { items, cursor } = stream;
        let outliving = Outliving {
            routes: Arc::clone(self),
            to: to.clone(),
            cursor,
            primed: false,
            from: StreamSource::Owner(items),
            found: (Instant::now(), cursor),
            moves: None,
        };
        EventStream {
            items: StreamItems::polled(outliving),
            cursor,
        }
    }

    /// `None` ends the client's connection, and the client learns the reason when it reconnects. After fruitless
    /// attempts, waits `pause` first, because an owner may say `Moved` before other nodes see that it released the
    /// session.
    async fn reattach(
        self: Arc<Self>,
        to: SessionRef,
        cursor: EventId,
        pause: Option<Duration>,
    ) -> Option<StreamItems> {
        let begun = Instant::now();
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
        match self.carry(&to, &Listen(Some(cursor)), true).await {
            Ok(stream) => {
                self.counters.reattached.add();
                self.counters.takeovers.record(begun.elapsed());
                Some(stream.items)
            }
            Err(error) => {
                self.counters.lost_streams.add();
                tracing::debug!(session = %to.session, %error, "a stream cannot continue");
                None
            }
        }
    }
}

impl Outliving {
    fn pass(&mut self, item: Option<StreamItem>) -> Option<StreamItem> {
        match &item {
            Some(StreamItem::Event { id, .. } | StreamItem::Prime { id, .. }) => {
                self.cursor = *id;
                self.primed = true;
            }
            Some(StreamItem::Passing { .. }) => {}
            Some(StreamItem::Retry(_) | StreamItem::Moved) | None => {
                self.from = StreamSource::Nobody
            }
        }
        item
    }

    fn look_for_next_owner(&mut self) {
        // Drop the old reader before there is a new one.
        self.from = StreamSource::Nobody;
        let config = &self.routes.config;
        let (found, before) = self.found;
        let futile = before == self.cursor && found.elapsed() < config.resolve_at_most;
        let moves = self.moves.get_or_insert_with(|| {
            Box::new(StreamMoves {
                backoff: Backoff::new(config.resolve_every, config.resolve_at_most),
                futile: 0,
            })
        });
        let pause = moves.pause(futile);
        let routes = Arc::clone(&self.routes);
        let reattaching = routes.reattach(self.to.clone(), self.cursor, pause);
        self.from = StreamSource::NextOwner(reattaching.boxed());
    }

    fn found(&mut self, items: Option<StreamItems>) {
        self.found = (Instant::now(), self.cursor);
        self.from = items.map_or(StreamSource::Nobody, StreamSource::Owner);
    }
}

impl StreamMoves {
    fn pause(&mut self, futile: bool) -> Option<Duration> {
        if futile {
            self.futile += 1;
        } else {
            self.futile = 0;
            self.backoff.reset();
        }
        (self.futile > 1).then(|| self.backoff.pause())
    }
}

impl Stream for Outliving {
    type Item = StreamItem;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        loop {
            match &mut self.from {
                StreamSource::Owner(items) => match ready!(items.poll_recv(cx)) {
                    Some(StreamItem::Moved) => self.look_for_next_owner(),
                    Some(StreamItem::Prime { .. }) if self.primed => {}
                    item => return Poll::Ready(self.pass(item)),
                },
                StreamSource::NextOwner(finding) => {
                    let items = ready!(finding.poll_unpin(cx));
                    self.found(items);
                }
                StreamSource::Nobody => return Poll::Ready(None),
            }
        }
    }
}
