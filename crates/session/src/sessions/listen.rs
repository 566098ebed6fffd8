use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use shoal_ports::{EventStream, GatewayError, SessionRef};
use shoal_protocol::{EventId, StreamId, TraceContext};
use shoal_telemetry::metrics::ResumeOutcome;
use shoal_telemetry::trace::{self, attributes as key, names};

use super::Node;
use super::deliver::ATTEMPTS;
use crate::live::{Closed, LiveSession};
use crate::measure;
use crate::state::Input;
use crate::store_failure::log_failed;
use crate::streams::Attachment;

impl Node {
    pub(crate) async fn listen(
        self: &Arc<Self>,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError> {
        for _ in 0..ATTEMPTS {
            let live = self.find(to).await?;
            if let Some(events) = self.listen_to(&live, to, cursor).await? {
                return Ok(events);
            }
            Box::pin(self.forget_dead(&live)).await;
        }
        Err(self.being_moved())
    }

    /// `None` if the session is falling asleep.
    async fn listen_to(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<Option<EventStream>, GatewayError> {
        let failed = |error| log_failed(&error, &self.config);
        match cursor {
            Some(cursor) => {
                let attachment = self.resume(live, cursor, to.trace.as_ref()).await?;
                match cursor.stream {
                    StreamId::STANDALONE => Ok(self.attached(live, attachment).await),
                    _ => Ok(Some(attachment.start(()))),
                }
            }
            None => {
                let tail = live.streams.standalone().await.map_err(failed)?;
                let prime = live.primes_streams();
                let (cursor, gone) = if Self::is_single_stream(live) {
                    let oldest = live.streams.oldest(&tail).await.map_err(failed)?;
                    (oldest, oldest.sequence)
                } else {
                    (tail.last(), 0)
                };
                let attachment = live.streams.read_live(tail, cursor, prime).without(gone);
                Ok(self.attached(live, attachment).await)
            }
        }
    }

    async fn resume(
        &self,
        live: &LiveSession,
        cursor: EventId,
        trace: Option<&TraceContext>,
    ) -> Result<Attachment, GatewayError> {
        let mut span = trace::internal(names::STREAM_RESUME)
            .parent(trace)
            .start_with(|set| {
                set.set(key::MCP_SESSION_ID, live.id.as_str())
                    .set(key::STREAM_ID, &cursor.stream.to_string())
                    .set(key::ROLE, "session");
            });
        let resumed = match cursor.stream {
            StreamId::STANDALONE => {
                let resumed = live.streams.resume(cursor, false).await;
                resumed.map_err(|error| log_failed(&error, &self.config))
            }
            _ => self.driver.resume_stream(live, cursor, false).await,
        };
        let outcome = measure::resumed(resumed.as_ref().map(|it| it.outcome));
        let outcome = outcome.map_or("moved", ResumeOutcome::as_str);
        match &resumed {
            Ok(_) => span.set(key::OUTCOME, outcome),
            Err(error) => span.record_error_with(outcome, &error.to_string()),
        }
        resumed
    }

    /// `None` if the session is falling asleep.
    async fn attached(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        attachment: Attachment,
    ) -> Option<EventStream> {
        let reader = attachment.generation();
        // Created before the session is told, so that its drop removes the listener even if the connection closes
        // meanwhile.
        let listener = ListeningConnection {
            node: Arc::downgrade(self),
            live: live.clone(),
            reader,
        };
        let (node, told) = (self.clone(), live.clone());
        let telling = async move { node.tell(&told, Input::Listening(reader)).await };
        match tokio::spawn(telling).await {
            Ok(Err(Closed)) => None,
            _ => Some(attachment.start(listener)),
        }
    }
}

/// Dropping the listener removes its connection from the session.
struct ListeningConnection {
    node: Weak<Node>,
    live: Arc<LiveSession>,
    reader: u64,
}

impl Drop for ListeningConnection {
    fn drop(&mut self) {
        self.live.note(Input::Left(self.reader));
        if let Some(node) = self.node.upgrade() {
            self.live.last_used.store(node.now(), Ordering::Relaxed);
        }
    }
}
