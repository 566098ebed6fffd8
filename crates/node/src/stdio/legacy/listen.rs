//! The standalone stream carries messages that belong to no request.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::StatusCode;
use shoal_ports::Backoff;
use tokio::time::sleep;

use super::super::exchange::is_event_stream;
use super::super::sse::Events;
use super::follow::{FollowCursor, LONGEST_PAUSE, RETRY, may_pass};
use super::{LegacyHalf, Pending};

impl LegacyHalf {
    /// Ends with the session or the server's refusal. Boxed, because this future can contain itself: reopening a
    /// session listens again.
    pub(super) fn listen(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(self.keep_listening())
    }

    async fn keep_listening(self: Arc<Self>) {
        let key = self.session.key();
        let mut cursor = FollowCursor::default();
        let mut backoff = Backoff::new(RETRY * 2, LONGEST_PAUSE);
        // A newer session has its own listener.
        while self.session.key() == key {
            let opened = self
                .wire
                .exchange
                .send(self.listening(cursor.id.as_deref()));
            let mut failed = false;
            match opened.await {
                Ok(reply) if reply.status().is_success() && is_event_stream(&reply) => {
                    backoff.reset();
                    self.hear(Events::of(reply.into_body()), &mut cursor).await;
                }
                Ok(reply) => match reply.status() {
                    StatusCode::NOT_FOUND => {
                        if key.is_some() {
                            self.reopen(key).await;
                        }
                        return;
                    }
                    status if may_pass(status) => failed = true,
                    // The server has lost the events after this id, so the stream continues from now.
                    _ if cursor.id.take().is_some() => {
                        tracing::warn!("some messages of the server may have been missed");
                    }
                    status => {
                        tracing::debug!(%status, "the server has no standalone stream");
                        return;
                    }
                },
                Err(error) => {
                    tracing::debug!(%error, "could not listen to the server");
                    failed = true;
                }
            }
            sleep(if failed {
                backoff.pause()
            } else {
                cursor.retry
            })
            .await;
        }
    }

    async fn hear(&self, mut events: Events, cursor: &mut FollowCursor) {
        let mut nothing = Pending::default();
        while let Some(Ok(event)) = events.next().await {
            cursor.id = event.id.or(cursor.id.take());
            cursor.retry = event.retry.unwrap_or(cursor.retry);
            if let Some(text) = event.data {
                self.deliver(text, &mut nothing).await;
            }
        }
    }
}
