//! GET: the standalone stream, and the resumption of any stream.

use std::sync::Arc;

use shoal_ports::{EventStream, GatewayError, SessionRef};
use shoal_protocol::{EventId, StreamId};
use shoal_telemetry::metrics::ResumeOutcome;
use shoal_telemetry::trace::{self, TraceContext, attributes as key, names};

use super::Node;
use crate::live::{LiveSession, log_failed};
use crate::measure;
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
            Some(cursor) => {
                let attachment = self.resume(&live, cursor, to.trace.as_ref()).await?;
                match cursor.stream {
                    StreamId::STANDALONE => Ok(self.attached(&live, attachment).await),
                    _ => Ok(attachment.stream),
                }
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
            _ => self.carrier.resume_stream(live, cursor, false).await,
        };
        let outcome = measure::resumed(resumed.as_ref().map(|it| it.outcome));
        let outcome = outcome.map_or("moved", ResumeOutcome::as_str);
        match &resumed {
            Ok(_) => span.set(key::OUTCOME, outcome),
            Err(error) => span.record_error_with(outcome, &error.to_string()),
        }
        resumed
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
            ..
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
