//! Which requests have their answers on the standalone stream: where all answers go there, that says what became of an earlier
//! delivery.

use shoal_ports::{GatewayError, LogError};
use shoal_protocol::{EventId, RawJson, RequestId, StreamId};

use super::Node;
use crate::live::{LiveSession, log_failed};

/// Events that are read at once.
const PAGE: usize = 64;
/// How far back is looked where the log does not go back to its beginning, or numbers its events anew since.
const LOOKED_BACK: [u64; 3] = [1024, 128, 16];

/// What the standalone stream knows of some requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// It has an answer to each.
    All,
    /// It has none, and all that was ever said is there.
    Nothing,
    /// It has some, or none that is still there.
    Unknown,
}

impl Node {
    /// What the standalone stream knows of these requests. Ids are not used again within a session (basic, Requests).
    pub(super) async fn answered(
        &self,
        live: &LiveSession,
        requests: &[RequestId],
    ) -> Result<Answered, GatewayError> {
        let failed = |error| log_failed(&error, &self.config);
        let log = &self.driver.store.log;
        let last = log.last(&live.id, StreamId::STANDALONE).await;
        let last = last.map_err(failed)?;
        for back in [last.sequence].into_iter().chain(LOOKED_BACK) {
            let sequence = last.sequence.saturating_sub(back);
            let start = EventId { sequence, ..last };
            let missing = match self.missing(live, start, requests).await {
                // What is further back has gone.
                Err(LogError::Gone(_)) => continue,
                missing => missing.map_err(failed)?,
            };
            return Ok(match missing {
                0 => Answered::All,
                none if none == requests.len() && sequence == 0 => Answered::Nothing,
                _ => Answered::Unknown,
            });
        }
        Ok(Answered::Unknown)
    }

    /// How many of the requests have no answer from there on.
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
                // What the client is asked has ids of its own.
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
