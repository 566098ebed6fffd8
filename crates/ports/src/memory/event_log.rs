//! Streams in memory.

use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::{EventId, StreamId};
use tokio::time::Instant;

use super::MemoryStore;
use super::data::{SessionData, StreamData};
use crate::{Appended, Epoch, EventLog, LogError, LoggedEvent, Page, SessionId, StoreError};

const NO_STREAM: &str = "the stream has expired or never existed";
const OTHER_EPOCH: &str = "the log has been restarted since";
const TRIMMED: &str = "the stream has outgrown its limit and lost its oldest events";

impl MemoryStore {
    pub(super) fn new_stream(&self, data: &mut SessionData, stream: StreamData) -> EventId {
        let id = StreamId(data.next_stream);
        data.next_stream += 1;
        data.streams.insert(id, stream);
        self.event_id(id, 0)
    }

    fn event_id(&self, stream: StreamId, sequence: u64) -> EventId {
        EventId {
            epoch: self.data.log_epoch,
            stream,
            sequence,
        }
    }
}

#[async_trait]
impl EventLog for MemoryStore {
    async fn open(&self, session: &SessionId, epoch: Epoch) -> Result<EventId, LogError> {
        let open = |data: &mut SessionData| Ok(self.new_stream(data, StreamData::default()));
        Ok(self.data.with_owner(session, epoch, open)?)
    }

    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        stream: StreamId,
        events: Vec<Bytes>,
        end: bool,
    ) -> Result<Appended, LogError> {
        let limits = &self.data.limits;
        let appended = self.data.with_owner(session, epoch, |data| {
            if !data.streams.contains_key(&stream) {
                return Ok(None);
            }
            self.data
                .reserve(data, events.iter().map(Bytes::len).sum())?;
            let Some(entry) = data.streams.get_mut(&stream) else {
                return Ok(None);
            };
            entry.events.extend(events);
            let oldest = entry.last().saturating_sub(limits.events_per_stream as u64);
            let trimmed = entry.trim(oldest);
            if end {
                entry.finished = Some(Instant::now());
                entry.journal = Vec::new();
            }
            let last = entry.last();
            self.data.free(data, trimmed);
            Ok(Some(last))
        })?;
        let last = appended.ok_or(LogError::Gone(NO_STREAM))?;
        Ok(Appended {
            last: self.event_id(stream, last),
        })
    }

    async fn beginning(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError> {
        let exists = self
            .data
            .with(session, |data| Ok(data.streams.contains_key(&stream)))?;
        if exists {
            Ok(self.event_id(stream, 0))
        } else {
            Err(LogError::Gone(NO_STREAM))
        }
    }

    async fn read(
        &self,
        session: &SessionId,
        cursor: EventId,
        limit: usize,
    ) -> Result<Page, LogError> {
        if cursor.epoch != self.data.log_epoch {
            return Err(LogError::Gone(OTHER_EPOCH));
        }
        self.data.with(session, |data| {
            let Some(stream) = data.streams.get(&cursor.stream) else {
                return Ok(Err(LogError::Gone(NO_STREAM)));
            };
            if cursor.sequence < stream.trimmed {
                return Ok(Err(LogError::Gone(TRIMMED)));
            }
            if cursor.sequence > stream.last() {
                return Ok(Err(LogError::Gone(NO_STREAM)));
            }
            let skip = usize::try_from(cursor.sequence - stream.trimmed)
                .map_err(|_| StoreError::NotFound)?;
            let events: Vec<_> = stream
                .events
                .iter()
                .skip(skip)
                .take(limit)
                .zip(cursor.sequence + 1..)
                .map(|(data, sequence)| LoggedEvent {
                    id: self.event_id(cursor.stream, sequence),
                    data: data.clone(),
                })
                .collect();
            let reached = cursor.sequence + events.len() as u64 == stream.last();
            Ok(Ok(Page {
                events,
                finished: stream.finished.is_some() && reached,
            }))
        })?
    }
}
