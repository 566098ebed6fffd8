//! GET: the standalone stream, and the resumption of any stream.

use std::sync::Arc;

use shoal_ports::{EventStream, GatewayError, SessionRef};
use shoal_protocol::{EventId, StreamId};

use super::Node;
use crate::live::{LiveSession, log_failed};
use crate::state::Input;
use crate::streams::Attachment;

impl Node {
    pub(crate) async fn listen(
        self: &Arc<Self>,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError> {
        let live = self.find(to).await?;
        let failed = |error| log_failed(&error, &self.config);
        match cursor {
            Some(cursor) if cursor.stream != StreamId::STANDALONE => {
                let attachment = self.carrier.resume_stream(&live, cursor, false);
                Ok(attachment.await?.stream)
            }
            Some(cursor) => {
                let attachment = live.streams.resume(cursor, false).await.map_err(failed)?;
                Ok(self.attached(&live, attachment).await)
            }
            None => {
                let tail = live.streams.standalone().await.map_err(failed)?;
                let prime = live.primes_streams();
                // A session of one stream reads all of it; any other begins with what comes next.
                let cursor = if Self::is_single_stream(&live) {
                    EventId {
                        sequence: 0,
                        ..tail.last()
                    }
                } else {
                    tail.last()
                };
                let attachment = live.streams.read_live(tail, cursor, prime);
                Ok(self.attached(&live, attachment).await)
            }
        }
    }

    /// The session knows that somebody listens, for as long as that is so.
    async fn attached(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        attachment: Attachment,
    ) -> EventStream {
        let Attachment {
            stream,
            generation,
            reading,
            orphaned: _,
        } = attachment;
        self.tell(live, Input::Listening(generation)).await;
        let (node, live) = (Arc::downgrade(self), live.clone());
        tokio::spawn(async move {
            // A panic of the reader ends its connection like any other end.
            let _ = reading.await;
            live.note(Input::Left(generation));
            if let Some(node) = node.upgrade() {
                live.last_used
                    .store(node.now(), std::sync::atomic::Ordering::Relaxed);
            }
        });
        stream
    }
}
