//! Streams that outlive the owner of their session.
//!
//! One task a stream forwards its items and remembers how far its client is. When the owner changes, or
//! the way to it breaks, the task reads on at the new owner from there: events are kept in the log, and a
//! reader gets exactly those after its cursor.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{EventStream, QuietReceiver, QuietSender, SessionRef, StreamItem, quiet_channel};
use shoal_protocol::EventId;
use tokio::time::Instant;

use super::Routes;
use super::errand::Listen;
use crate::backoff::Backoff;

/// A client's stream.
struct Outliving {
    routes: Arc<Routes>,
    to: SessionRef,
    /// The last id that the client has, or where it began.
    cursor: EventId,
    /// Whether the client has an id to come back with.
    primed: bool,
}

/// Why forwarding from one owner ended.
enum End {
    /// The stream or its client is done.
    Finished,
    /// It goes on at the owner.
    Moved,
}

impl Routes {
    /// A stream like `stream` that goes on through changes of owner.
    pub(super) fn outlive(self: &Arc<Self>, to: &SessionRef, stream: EventStream) -> EventStream {
        let EventStream { items, cursor } = stream;
        let (client, outer) = quiet_channel(self.config.stream_buffer);
        let outliving = Outliving {
            routes: Arc::clone(self),
            to: to.clone(),
            cursor,
            primed: false,
        };
        tokio::spawn(outliving.run(items, client));
        EventStream {
            items: outer,
            cursor,
        }
    }
}

impl Outliving {
    async fn run(mut self, mut items: QuietReceiver<StreamItem>, client: QuietSender<StreamItem>) {
        let config = &self.routes.config;
        let mut backoff = Backoff::new(config.resolve_every, config.resolve_at_most);
        let brief = config.resolve_at_most;
        let mut futile = 0;
        loop {
            let (begun, before) = (Instant::now(), self.cursor);
            match self.forward(&mut items, &client).await {
                End::Finished => return,
                End::Moved => {}
            }
            // The old reader is let go before there is a new one.
            drop(items);
            if before == self.cursor && begun.elapsed() < brief {
                futile += 1;
            } else {
                futile = 0;
                backoff.reset();
            }
            let pause = (futile > 1).then(|| backoff.pause());
            let next = tokio::select! {
                // Boxed: it is rare, and large, and the task of each stream would have room for it all the time.
                next = Box::pin(self.reattach(pause)) => next,
                () = client.closed() => return,
            };
            let Some(next) = next else { return };
            items = next;
        }
    }

    /// Forwards until the stream ends or moves, or the client has gone.
    async fn forward(
        &mut self,
        items: &mut QuietReceiver<StreamItem>,
        client: &QuietSender<StreamItem>,
    ) -> End {
        loop {
            let item = tokio::select! {
                item = items.recv() => item,
                () = client.closed() => return End::Finished,
            };
            let Some(item) = item else {
                return End::Finished;
            };
            let (id, is_last) = match &item {
                StreamItem::Moved => return End::Moved,
                // The client knows an id already, and a later one.
                StreamItem::Prime { .. } if self.primed => continue,
                StreamItem::Event { id, .. } | StreamItem::Prime { id, .. } => (Some(*id), false),
                StreamItem::Passing { .. } => (None, false),
                // The client is told to come back by itself.
                StreamItem::Retry(_) => (None, true),
            };
            if client.send(item).await.is_err() || is_last {
                return End::Finished;
            }
            if let Some(id) = id {
                self.cursor = id;
                self.primed = true;
            }
        }
    }

    /// Reads on at whoever is the owner now. None when that is impossible: the client's connection ends,
    /// and when it comes back it is told why.
    /// Pauses first if the last attempts led nowhere: an owner may say `Moved` before others can see that
    /// it has let go.
    async fn reattach(&self, pause: Option<Duration>) -> Option<QuietReceiver<StreamItem>> {
        let begun = Instant::now();
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
        let tally = &self.routes.tally;
        match self
            .routes
            .carry(&self.to, &Listen(Some(self.cursor)), true)
            .await
        {
            Ok(stream) => {
                tally.reattached.add();
                tally.takeovers.record(begun.elapsed());
                Some(stream.items)
            }
            Err(error) => {
                tally.lost_streams.add();
                tracing::debug!(session = %self.to.session, %error, "a stream could not go on");
                None
            }
        }
    }
}
