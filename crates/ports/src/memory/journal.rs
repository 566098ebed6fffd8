//! Running calls in memory.

use async_trait::async_trait;
use shoal_protocol::{EventId, StreamId};

use super::MemoryStore;
use super::data::StreamData;
use crate::{Epoch, Journal, JournalEntry, LogError, SessionId};

#[async_trait]
impl Journal for MemoryStore {
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        entries: Vec<JournalEntry>,
    ) -> Result<EventId, LogError> {
        Ok(self.data.with_owner(session, epoch, |data| {
            let stream = StreamData {
                journal: entries,
                ..StreamData::default()
            };
            Ok(self.new_stream(data, stream))
        })?)
    }

    async fn running(
        &self,
        session: &SessionId,
    ) -> Result<Vec<(StreamId, JournalEntry)>, LogError> {
        Ok(self.data.with(session, |data| {
            let running = data
                .streams
                .iter()
                .flat_map(|(id, stream)| stream.journal.iter().map(|entry| (*id, entry.clone())));
            Ok(running.collect())
        })?)
    }
}
