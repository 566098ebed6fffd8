use bytes::Bytes;
use serde_json::json;
use shoal_ports::{LogError, SessionTransport};
use shoal_protocol::{EventId, LogLevel, Method, RawJson, notification};

use super::SessionStreams;
use super::tail::Tail;

impl SessionStreams {
    pub(crate) async fn oldest(&self, tail: &Tail) -> Result<EventId, LogError> {
        match tail.beginning() {
            Some(beginning) => Ok(beginning),
            None => self.store.log.oldest(&self.session, tail.stream()).await,
        }
    }

    /// `None` if the client learns of the gap when it resumes, as is possible everywhere but on
    /// single streams.
    pub(super) async fn after_gap(&self, tail: &Tail, cursor: EventId) -> Option<EventId> {
        let live = self.live.upgrade()?;
        if live.transport != SessionTransport::SingleStream {
            return None;
        }
        let logged = self.store.log.oldest(&self.session, tail.stream()).await;
        // A store that lost its newest writes may have fewer events than the tail.
        let places = [logged.ok(), tail.before_recent()].into_iter().flatten();
        let later = places.filter(|place| place.sequence > cursor.sequence);
        later.min_by_key(|place| place.sequence)
    }

    pub(super) fn gap_notice(&self, events: u64) -> Option<Bytes> {
        let live = self.live.upgrade()?;
        let told = live.logs(LogLevel::Warning).then(|| {
            let data = format!(
                "{events} earlier messages of this session are no longer kept and cannot be sent. \
                 If an answer is missing, check what its request has done before you repeat it."
            );
            let params = json!({ "level": "warning", "logger": "shoal", "data": data });
            notification(Method::LogMessage.as_str(), Some(&RawJson::of(&params)))
        });
        tracing::debug!(session = %self.session, events, "a client reads a stream that has lost its oldest events");
        told
    }
}
