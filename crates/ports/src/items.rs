//! What an event stream brings, however it comes.

use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};

use futures::Stream;
use futures::stream::{BoxStream, StreamExt as _};

use crate::{LazyReceiver, StreamItem};

/// The items of an [`EventStream`](crate::EventStream): from a channel that another task feeds, or from a stream that does its
/// work when it is asked, and needs neither a task nor a channel of its own for that.
pub struct StreamItems(Source);

enum Source {
    Channel(LazyReceiver<StreamItem>),
    Polled(BoxStream<'static, StreamItem>),
}

impl StreamItems {
    /// The items of `stream`, which must go on saying `None` once it has said so.
    pub fn polled(stream: impl Stream<Item = StreamItem> + Send + 'static) -> Self {
        Self(Source::Polled(Box::pin(stream)))
    }

    /// The next item; `None` when there are no more, then and ever after. Cancellation safe.
    pub async fn recv(&mut self) -> Option<StreamItem> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Like [`recv`](Self::recv), for who polls.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        match &mut self.0 {
            Source::Channel(items) => items.poll_recv(cx),
            Source::Polled(stream) => stream.poll_next_unpin(cx),
        }
    }
}

impl From<LazyReceiver<StreamItem>> for StreamItems {
    fn from(items: LazyReceiver<StreamItem>) -> Self {
        Self(Source::Channel(items))
    }
}

impl fmt::Debug for StreamItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Source::Channel(_) => "StreamItems(channel)",
            Source::Polled(_) => "StreamItems(polled)",
        })
    }
}
