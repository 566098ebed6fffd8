//! The stream for the server's messages outside of requests (up to 2025-11-25).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method as HttpMethod, StatusCode};
use shoal_ports::Backoff;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::channel::HttpChannel;
use super::exchange::may_pass;
use super::stream::{Cursor, Events, is_event_stream};
use crate::upstream::{Line, RequestOrigin, STABLE};

/// How long the handshake waits for this stream, so that later reads of lists miss no change.
const SOON: Duration = Duration::from_millis(200);

impl HttpChannel {
    pub(super) async fn listen_soon(self: &Arc<Self>) {
        if !self.in_session() {
            return;
        }
        let (opened, is_open) = oneshot::channel();
        let channel = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = channel.listen(opened) => {}
                () = channel.stopping.cancelled() => {}
            }
        });
        // A refusal drops the sender, which ends the wait.
        let _ = timeout(SOON, is_open).await;
    }

    async fn listen(&self, opened: oneshot::Sender<()>) {
        let config = self.endpoint.config();
        let mut opened = Some(opened);
        let mut cursor = Cursor::default();
        let (first, longest) = (config.restart_delay.get(), config.max_restart_delay.get());
        let mut backoff = Backoff::new(first, longest.max(first));
        loop {
            let headers = self.get_headers(cursor.id.as_deref());
            match self.send_own(HttpMethod::GET, headers, Bytes::new()).await {
                Ok(answer) if answer.status().is_success() && is_event_stream(&answer) => {
                    match opened.take() {
                        Some(opened) => drop(opened.send(())),
                        None if cursor.id.is_none() => self.link.lists_may_have_changed(),
                        None => {}
                    }
                    let events = Events::of(answer, config.message_bytes, Duration::ZERO);
                    let began = Instant::now();
                    // A server that does not support the stream may end it instead of refusing it.
                    if self.hear(events, &mut cursor).await || began.elapsed() >= STABLE {
                        backoff.reset();
                    }
                    sleep(cursor.retry.max(backoff.pause())).await;
                    continue;
                }
                Ok(answer) if may_pass(answer.status()) => {}
                // Some servers implement no GET and answer 404 or 400; the session is too new to
                // have ended.
                Ok(answer)
                    if opened.is_some()
                        && [StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST]
                            .contains(&answer.status()) =>
                {
                    return;
                }
                Ok(answer) => {
                    // The session may be over, the stream missing (405), or the event too old to
                    // resume from.
                    let resumes = cursor.id.take().is_some();
                    drop(self.refused(answer, None, None).await);
                    if !resumes || self.link.lost().is_some() {
                        return;
                    }
                    self.link.lists_may_have_changed();
                }
                Err(_) => {}
            }
            sleep(backoff.pause()).await;
        }
    }

    async fn hear(&self, mut events: Events, cursor: &mut Cursor) -> bool {
        let mut heard = false;
        while let Some(Ok(mut event)) = events.next().await {
            heard = true;
            cursor.pass(&mut event);
            if let Some(text) = event.data {
                self.link
                    .receive(Line::Whole(text), RequestOrigin::Unrelated);
            }
        }
        heard
    }
}
