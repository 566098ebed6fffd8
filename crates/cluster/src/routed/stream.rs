//! Streams that outlive the owner of their session.
//!
//! Each passes on its items and remembers how far its client is. When the owner changes, or the way to it
//! breaks, it reads on at the new owner from there: events are kept in the log, and a reader gets exactly
//! those after its cursor. It works in the task that reads it.

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

/// A client's stream.
struct Outliving {
    routes: Arc<Routes>,
    to: SessionRef,
    /// The last id that the client has, or where it began.
    cursor: EventId,
    /// Whether the client has an id to come back with.
    primed: bool,
    from: Source,
    /// When this owner was found, and where the client was then.
    found: (Instant, EventId),
    /// What is known of earlier moves. Apart: most streams never have one, and there are many.
    moves: Option<Box<Moves>>,
}

/// Where the items come from.
enum Source {
    Owner(StreamItems),
    /// It is being found.
    NextOwner(BoxFuture<'static, Option<StreamItems>>),
    /// The stream or its client is done.
    Nobody,
}

/// When to look for the next owner at once.
struct Moves {
    backoff: Backoff,
    /// Owners in a row that had nothing to say and soon let go.
    futile: u32,
}

impl Routes {
    /// A stream like `stream` that goes on through changes of owner.
    pub(super) fn outlive(self: &Arc<Self>, to: &SessionRef, stream: EventStream) -> EventStream {
        let EventStream { items, cursor } = stream;
        let outliving = Outliving {
            routes: Arc::clone(self),
            to: to.clone(),
            cursor,
            primed: false,
            from: Source::Owner(items),
            found: (Instant::now(), cursor),
            moves: None,
        };
        EventStream {
            items: StreamItems::polled(outliving),
            cursor,
        }
    }

    /// Reads on at whoever is the owner now. None when that is impossible: the client's connection ends,
    /// and when it comes back it is told why.
    /// Pauses first if the last attempts led nowhere: an owner may say `Moved` before others can see that
    /// it has let go.
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
                tracing::debug!(session = %to.session, %error, "a stream could not go on");
                None
            }
        }
    }
}

impl Outliving {
    /// What the client gets of an item.
    fn pass(&mut self, item: Option<StreamItem>) -> Option<StreamItem> {
        match &item {
            Some(StreamItem::Event { id, .. } | StreamItem::Prime { id, .. }) => {
                self.cursor = *id;
                self.primed = true;
            }
            Some(StreamItem::Passing { .. }) => {}
            // The client is told to come back by itself.
            Some(StreamItem::Retry(_) | StreamItem::Moved) | None => self.from = Source::Nobody,
        }
        item
    }

    fn look_for_next_owner(&mut self) {
        // The old reader is let go before there is a new one.
        self.from = Source::Nobody;
        let config = &self.routes.config;
        let (found, before) = self.found;
        let futile = before == self.cursor && found.elapsed() < config.resolve_at_most;
        let moves = self.moves.get_or_insert_with(|| {
            Box::new(Moves {
                backoff: Backoff::new(config.resolve_every, config.resolve_at_most),
                futile: 0,
            })
        });
        let pause = moves.pause(futile);
        let routes = Arc::clone(&self.routes);
        let reattaching = routes.reattach(self.to.clone(), self.cursor, pause);
        self.from = Source::NextOwner(reattaching.boxed());
    }

    fn found(&mut self, items: Option<StreamItems>) {
        self.found = (Instant::now(), self.cursor);
        self.from = items.map_or(Source::Nobody, Source::Owner);
    }
}

impl Moves {
    /// How long to wait before the next owner is looked for: not at all, unless several before were `futile`.
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
                Source::Owner(items) => match ready!(items.poll_recv(cx)) {
                    Some(StreamItem::Moved) => self.look_for_next_owner(),
                    // The client knows an id already, and a later one.
                    Some(StreamItem::Prime { .. }) if self.primed => {}
                    item => return Poll::Ready(self.pass(item)),
                },
                Source::NextOwner(finding) => {
                    let items = ready!(finding.poll_unpin(cx));
                    self.found(items);
                }
                Source::Nobody => return Poll::Ready(None),
            }
        }
    }
}
