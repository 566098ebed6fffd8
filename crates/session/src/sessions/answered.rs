use shoal_ports::{GatewayError, LogError};
use shoal_protocol::{EventId, RawJson, RequestId, StreamId};

use super::Node;
use crate::live::LiveSession;
use crate::store_failure::log_failed;

const PAGE: usize = 64;
/// How many events to look back if the log lacks its oldest events or was renumbered, the most first.
const LOOKED_BACK: [u64; 3] = [1024, 128, 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnsweredRequests {
    All,
    /// The log is complete and has no answer.
    Nothing,
    /// The log has only some answers, or is incomplete.
    Unknown,
}

impl Node {
    /// Looks in the standalone stream's log for answers. Request ids are unique within a session
    /// (basic, Requests).
    pub(super) async fn answered(
        &self,
        live: &LiveSession,
        requests: &[RequestId],
    ) -> Result<AnsweredRequests, GatewayError> {
        let failed = |error| log_failed(&error, &self.config);
        let log = &self.driver.store.log;
        let last = log.last(&live.id, StreamId::STANDALONE).await;
        let last = last.map_err(failed)?;
        for back in [last.sequence].into_iter().chain(LOOKED_BACK) {
            let sequence = last.sequence.saturating_sub(back);
            let start = EventId { sequence, ..last };
            let missing = match self.missing(live, start, requests).await {
                Err(LogError::Gone(_)) => continue,
                missing => missing.map_err(failed)?,
            };
            return Ok(match missing {
                0 => AnsweredRequests::All,
                none if none == requests.len() && sequence == 0 => AnsweredRequests::Nothing,
                _ => AnsweredRequests::Unknown,
            });
        }
        Ok(AnsweredRequests::Unknown)
    }

    async fn missing(
        &self,
        live: &LiveSession,
        mut cursor: EventId,
        requests: &[RequestId],
    ) -> Result<usize, LogError> {
        let mut missing: Vec<RawJson> = requests.iter().map(RequestId::to_json).collect();
        loop {
            let page = self.driver.store.log.read(&live.id, cursor, PAGE).await?;
            let Some(newest) = page.events.last() else {
                return Ok(missing.len());
            };
            cursor = newest.id;
            for event in page.events {
                let message = RawJson::from_valid(event.data);
                if let (Some(id), None) = (message.member("id"), message.member("method")) {
                    missing.retain(|missing| *missing != id);
                }
            }
            if missing.is_empty() {
                return Ok(0);
            }
        }
    }
}
