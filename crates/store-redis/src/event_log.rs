//! Streams in Redis.

use async_trait::async_trait;
use shoal_ports::{
    Append, Appended, Epoch, EventLog, LogError, LoggedEvent, Page, SessionId, StoreError,
};
use shoal_protocol::{EventId, StreamId};

use crate::keys::field;
use crate::reply::{NO_STREAM, number, parts, step, unexpected};
use crate::scripts::SCRIPTS;
use crate::store::RedisStore;

#[async_trait]
impl EventLog for RedisStore {
    /// As the port says. A Redis that has reached its `maxmemory` still takes appends: they serve, or end,
    /// calls that were admitted.
    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError> {
        let key = self.inner.keys.session(session)?;
        let limits = &self.inner.limits;
        let appended = self.inner.run(&SCRIPTS.append, &key, |command| {
            command
                .arg(epoch.0)
                .arg(append.stream.0)
                .arg(append.after)
                .arg(limits.events_per_stream)
                .arg(limits.bytes_per_session)
                .arg(limits.retention);
            match append.progress {
                Some(progress) => command
                    .arg(progress.call.to_string())
                    .arg(progress.seen)
                    .arg(u8::from(progress.ended)),
                None => command.arg("").arg(0).arg(0),
            };
            for event in &append.events {
                command.arg(&**event);
            }
        });
        let mut appended = step(appended.await?)?;
        let last = EventId {
            epoch: appended.number()?,
            stream: append.stream,
            sequence: appended.number()?,
        };
        let finished = appended.number::<u8>()? == 1;
        Ok(Appended {
            last,
            finished,
            kept: appended.number()?,
        })
    }

    async fn last(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError> {
        let key = self.inner.keys.session(session)?;
        let asked = [field::EPOCH, field::LOG, &field::stream(stream.0)];
        let mut found = parts(self.inner.fields(&key, &asked).await?)?;
        found.optional()?.ok_or(StoreError::NotFound)?;
        let epoch = found.number()?;
        let sequence = match found.optional()? {
            Some(stands) => last_of(&stands)?,
            None if stream == StreamId::STANDALONE => 0,
            None => return Err(LogError::Gone(NO_STREAM)),
        };
        Ok(EventId {
            epoch,
            stream,
            sequence,
        })
    }

    async fn read(
        &self,
        session: &SessionId,
        cursor: EventId,
        limit: usize,
    ) -> Result<Page, LogError> {
        let key = self.inner.keys.session(session)?;
        let page = self.inner.run(&SCRIPTS.read, &key, |command| {
            command
                .arg(cursor.epoch)
                .arg(cursor.stream.0)
                .arg(cursor.sequence)
                .arg(limit);
        });
        let mut page = step(page.await?)?;
        let finished = page.number::<u8>()? == 1;
        let events = page
            .rest()
            .zip(cursor.sequence + 1..)
            .map(|(data, sequence)| {
                let id = EventId { sequence, ..cursor };
                data.map(|data| LoggedEvent { id, data })
            });
        Ok(Page {
            events: events.collect::<Result<_, _>>()?,
            finished,
        })
    }
}

/// Where a stream stands, as its field in the session's hash says (`lua/common.lua`).
pub(crate) fn last_of(stream: &[u8]) -> Result<u64, StoreError> {
    number(
        stream
            .split(|byte| *byte == b':')
            .next()
            .ok_or_else(unexpected)?,
    )
}
