//! The stream that belongs to no request (up to 2025-11-25): what the server says by itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method as HttpMethod, StatusCode};
use shoal_ports::Backoff;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::channel::Channel;
use super::exchange::may_pass;
use super::stream::{Cursor, Events, is_event_stream};
use crate::upstream::{Line, Origin, STABLE};

/// How long the handshake waits for the stream: what is read after it is then not read too early.
const SOON: Duration = Duration::from_millis(200);

impl Channel {
    /// Opens the stream in the background where there is a session, and waits a moment for it.
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
        // It ends without a word where the server has no such stream.
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
                        // What was said meanwhile did not arrive.
                        None if cursor.id.is_none() => self.link.lists_may_have_changed(),
                        None => {}
                    }
                    let events = Events::of(answer, config.message_bytes, Duration::ZERO);
                    let began = Instant::now();
                    // A server that has no such stream may end it instead of refusing it.
                    if self.hear(events, &mut cursor).await || began.elapsed() >= STABLE {
                        backoff.reset();
                    }
                    sleep(cursor.retry.max(backoff.pause())).await;
                    continue;
                }
                Ok(answer) if may_pass(answer.status()) => {}
                // Some servers have nothing at all for this method, and the session has just been opened.
                Ok(answer)
                    if opened.is_some()
                        && [StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST]
                            .contains(&answer.status()) =>
                {
                    return;
                }
                Ok(answer) => {
                    // The session may be over; or there is no such stream (405), or none after this event.
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

    /// Takes what comes until the stream ends. Returns whether anything came.
    async fn hear(&self, mut events: Events, cursor: &mut Cursor) -> bool {
        let mut heard = false;
        while let Some(Ok(mut event)) = events.next().await {
            heard = true;
            cursor.pass(&mut event);
            if let Some(text) = event.data {
                self.link.receive(Line::Whole(text), Origin::Unrelated);
            }
        }
        heard
    }
}
