use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use futures::stream::{BoxStream, StreamExt as _};

use bytes::Bytes;
use shoal_protocol::EventId;

use crate::LazyReceiver;

/// Yields the items of an [`EventStream`](crate::EventStream).
pub struct StreamItems(ItemSource);

enum ItemSource {
    Channel(LazyReceiver<StreamItem>),
    Polled(BoxStream<'static, StreamItem>),
}

impl StreamItems {
    /// Wraps a fused stream.
    pub fn polled(stream: impl Stream<Item = StreamItem> + Send + 'static) -> Self {
        Self(ItemSource::Polled(Box::pin(stream)))
    }

    /// Returns the next item; `None` after the last. Cancellation safe.
    pub async fn recv(&mut self) -> Option<StreamItem> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for [`recv`](Self::recv).
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        match &mut self.0 {
            ItemSource::Channel(items) => items.poll_recv(cx),
            ItemSource::Polled(stream) => stream.poll_next_unpin(cx),
        }
    }
}

impl From<LazyReceiver<StreamItem>> for StreamItems {
    fn from(items: LazyReceiver<StreamItem>) -> Self {
        Self(ItemSource::Channel(items))
    }
}

impl fmt::Debug for StreamItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            ItemSource::Channel(_) => "StreamItems(channel)",
            ItemSource::Polled(_) => "StreamItems(polled)",
        })
    }
}

/// Something to write to an SSE connection.
#[derive(Clone, Debug)]
pub enum StreamItem {
    /// A message that is in the log.
    Event {
        /// The event's id, from which the client can resume.
        id: EventId,
        /// The JSON-RPC message.
        data: Bytes,
    },
    /// A message without an id, which is not in the log. Shoal sends it again when the client listens again.
    Passing {
        /// The JSON-RPC message.
        data: Bytes,
    },
    /// An event without data that gives the client an id (SEP-1699).
    Prime {
        /// The id from which the client can resume.
        id: EventId,
    },
    /// Tells the client when to reconnect, and closes the connection.
    Retry(Duration),
    /// The session is moving: the edge must listen again after the last id that it got.
    Moved,
}
