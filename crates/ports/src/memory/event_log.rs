use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::{EventId, StreamId};
use tokio::time::Instant;

use super::MemoryStore;
use super::data::{MemoryData, SessionData, StreamData};
use crate::{
    Append, Appended, Epoch, EventLog, LogError, LoggedEvent, Page, SessionId, StoreError,
};

pub(super) const NO_STREAM: &str = "the stream has expired or never existed";
const OTHER_EPOCH: &str = "the log has been restarted since";
const TRIMMED: &str = "the stream has outgrown its limit and lost its oldest events";

impl MemoryData {
    /// Returns the new position and whether the stream has finished; `None` if the stream had
    /// finished before.
    fn append(
        &self,
        data: &mut SessionData,
        append: Append,
    ) -> Result<Option<(u64, bool)>, StoreError> {
        let Append {
            after:
                EventId {
                    stream,
                    sequence: after,
                    ..
                },
            events,
            progress,
        } = append;
        let entry = data.streams.get(&stream).ok_or(StoreError::Forgotten)?;
        let (last, finished) = (entry.last(), entry.finished.is_some());
        if last == after + events.len() as u64 && entry.has_noted(progress) {
            return Ok(Some((last, finished)));
        }
        if last != after {
            return Err(match last < after {
                true => StoreError::Forgotten,
                false => StoreError::Stale,
            });
        }
        if finished && !events.is_empty() {
            return Ok(None);
        }
        let ends = progress.is_some_and(|progress| progress.ended);
        self.reserve(data, events.iter().map(Bytes::len).sum(), ends)?;
        let Some(entry) = data.streams.get_mut(&stream) else {
            return Ok(None);
        };
        entry.events.extend(events);
        let oldest = entry
            .last()
            .saturating_sub(self.streams.events_per_stream as u64);
        let trimmed = entry.trim(oldest);
        if let Some(progress) = progress {
            entry.note(progress);
            if progress.ended && entry.journal.is_empty() && stream != StreamId::STANDALONE {
                entry.finished = Some(Instant::now());
            }
        }
        let stands = (entry.last(), entry.finished.is_some());
        self.free(data, trimmed);
        Ok(Some(stands))
    }
}

impl MemoryStore {
    pub(super) fn new_stream(&self, data: &mut SessionData, stream: StreamData) -> EventId {
        let id = StreamId(data.next_stream);
        data.next_stream += 1;
        if let Some(delivery) = stream.delivery {
            data.deliveries.insert(delivery, id);
        }
        data.streams.insert(id, stream);
        data.event_id(id, 0)
    }
}

#[async_trait]
impl EventLog for MemoryStore {
    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError> {
        let stream = append.after.stream;
        let appended = self.data.with_owner(session, epoch, |data| {
            let appended = self.data.append(data, append)?;
            Ok(appended.map(|(last, finished)| Appended {
                last: data.event_id(stream, last),
                finished,
                kept: data.bytes as u64,
            }))
        })?;
        appended.ok_or(LogError::Gone(NO_STREAM))
    }

    async fn last(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError> {
        let last = self.data.with(session, |data| {
            let last = data.streams.get(&stream).map(StreamData::last);
            Ok(last.map(|last| data.event_id(stream, last)))
        })?;
        last.ok_or(LogError::Gone(NO_STREAM))
    }

    async fn oldest(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError> {
        let oldest = self.data.with(session, |data| {
            let trimmed = data.streams.get(&stream).map(|stream| stream.trimmed);
            Ok(trimmed.map(|trimmed| data.event_id(stream, trimmed)))
        })?;
        oldest.ok_or(LogError::Gone(NO_STREAM))
    }

    async fn read(
        &self,
        session: &SessionId,
        cursor: EventId,
        limit: usize,
    ) -> Result<Page, LogError> {
        self.data.with(session, |data| {
            if cursor.epoch != data.log {
                return Ok(Err(LogError::Gone(OTHER_EPOCH)));
            }
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
                .map(|(event, sequence)| LoggedEvent {
                    id: data.event_id(cursor.stream, sequence),
                    data: event.clone(),
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
