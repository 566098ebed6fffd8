use futures::StreamExt as _;
use futures::stream::{BoxStream, SelectAll, Stream};

/// Combines rare events, so that a loop over frames does not poll each source every time.
pub(crate) struct LinkEvents<T>(SelectAll<BoxStream<'static, T>>);

impl<T: 'static> LinkEvents<T> {
    pub(crate) fn new() -> Self {
        Self(SelectAll::new())
    }

    pub(crate) fn or(mut self, source: impl Stream<Item = T> + Send + 'static) -> Self {
        self.0.push(Box::pin(source));
        self
    }

    pub(crate) async fn next(&mut self) -> T {
        match self.0.next().await {
            Some(happened) => happened,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::sync::watch;
    use tokio_stream::wrappers::WatchStream;

    use super::LinkEvents;

    #[tokio::test]
    async fn each_source_is_heard_until_it_ends() {
        let (number, numbers) = watch::channel(0);
        let mut events = LinkEvents::new()
            .or(WatchStream::from_changes(numbers))
            .or(futures::stream::once(async { 7 }));
        assert_eq!(events.next().await, 7);
        assert_eq!(events.next().now_or_never(), None);
        number.send_replace(1);
        assert_eq!(events.next().await, 1);
        drop(number);
        assert_eq!(events.next().now_or_never(), None);
        assert_eq!(events.next().now_or_never(), None);
    }
}
