use async_trait::async_trait;
use redis::Cmd;
use shoal_ports::{
    Append, Appended, CallProgress, Epoch, EventLog, LogError, LoggedEvent, Page, SessionId,
    StoreError,
};
use shoal_protocol::{EventId, StreamId};

use crate::keys::field;
use crate::measure::measured;
use crate::reply::{NO_STREAM, number, parts, step, unexpected};
use crate::store::RedisStore;

#[async_trait]
impl EventLog for RedisStore {
    /// Appends events, even above `maxmemory`, because calls must end.
    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError> {
        measured("event_log.append", async {
            let key = self.inner.keys.session(session)?;
            let script = &self.inner.scripts.append;
            let args = |command: &mut Cmd| {
                let EventId {
                    stream, sequence, ..
                } = append.after;
                command.arg(epoch.0).arg(stream.0).arg(sequence);
                match append.progress {
                    Some(CallProgress { call, ended, .. }) if ended => {
                        command.arg(call.to_string()).arg("")
                    }
                    Some(CallProgress { call, seen, .. }) => {
                        command.arg(call.to_string()).arg(seen)
                    }
                    None => command.arg("").arg(""),
                };
                for event in &append.events {
                    command.arg(&**event);
                }
            };
            let settles = settles(&append);
            let appended = self.inner.run_with_room(script, &key, settles, args);
            let mut appended = appended.await?;
            let stands: u64 = appended.number()?;
            let sequence = append.after.sequence + append.events.len() as u64;
            let last = match appended.is_empty() {
                // No node has claimed the session since the stream began, so the nonce is the same.
                true => EventId {
                    sequence,
                    ..append.after
                },
                false => {
                    let nonces = Nonces::read(appended.number()?, appended.optional()?.as_deref())?;
                    nonces.id(append.after.stream, sequence)
                }
            };
            Ok(Appended {
                last,
                finished: stands % 2 == 1,
                kept: stands / 2,
            })
        })
        .await
    }

    async fn last(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError> {
        measured("event_log.last", async {
            let key = self.inner.keys.session(session)?;
            let (stands, nonces) = (field::stream(stream.0), field::nonces(stream.0));
            let asked = [field::EPOCH, field::LOG, &stands, &nonces];
            let mut found = parts(self.inner.fields(&key, &asked).await?)?;
            found.optional()?.ok_or(StoreError::NotFound)?;
            let log = found.number()?;
            let sequence = match found.optional()? {
                Some(stands) => last_of(&stands)?,
                None if stream == StreamId::STANDALONE => 0,
                None => return Err(LogError::Gone(NO_STREAM)),
            };
            let nonces = Nonces::read(log, found.optional()?.as_deref())?;
            Ok(nonces.id(stream, sequence))
        })
        .await
    }

    async fn oldest(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError> {
        measured("event_log.oldest", async {
            let key = self.inner.keys.session(session)?;
            let oldest = self.inner.run(&self.inner.scripts.oldest, &key, |command| {
                command.arg(stream.0);
            });
            let mut oldest = step(oldest.await?)?;
            let sequence = oldest.number()?;
            let nonces = Nonces::read(oldest.number()?, oldest.optional()?.as_deref())?;
            Ok(nonces.id(stream, sequence))
        })
        .await
    }

    async fn read(
        &self,
        session: &SessionId,
        cursor: EventId,
        limit: usize,
    ) -> Result<Page, LogError> {
        measured("event_log.read", async {
            let key = self.inner.keys.session(session)?;
            let page = self.inner.run(&self.inner.scripts.read, &key, |command| {
                command
                    .arg(cursor.epoch)
                    .arg(cursor.stream.0)
                    .arg(cursor.sequence)
                    .arg(limit);
            });
            let mut page = step(page.await?)?;
            let finished = page.number::<u8>()? == 1;
            let nonces = Nonces::read(page.number()?, page.optional()?.as_deref())?;
            let events = page
                .rest()
                .zip(cursor.sequence + 1..)
                .map(|(data, sequence)| {
                    let id = nonces.id(cursor.stream, sequence);
                    data.map(|data| LoggedEvent { id, data })
                });
            Ok(Page {
                events: events.collect::<Result<_, _>>()?,
                finished,
            })
        })
        .await
    }
}

/// Whether an append also settles the accounts of stored bytes: on the standalone stream, and at the end of one in
/// eight calls.
fn settles(append: &Append) -> bool {
    let ends = append.progress.filter(|progress| progress.ended);
    append.after.stream == StreamId::STANDALONE
        || ends.is_some_and(|progress| progress.call.as_bytes()[15].is_multiple_of(8))
}

/// The log's own nonce, and those of later claims with the positions from which they count (`lua/common.lua`).
pub(crate) struct Nonces {
    log: u32,
    after: Vec<(u64, u32)>,
}

impl Nonces {
    pub(crate) fn read(log: u32, marks: Option<&[u8]>) -> Result<Self, StoreError> {
        let marks = marks.unwrap_or_default().split(|byte| *byte == b',');
        let after = marks.filter(|mark| !mark.is_empty()).map(|mark| {
            let colon = mark.iter().position(|byte| *byte == b':');
            let (place, nonce) = mark.split_at(colon.ok_or_else(unexpected)?);
            Ok((number(place)?, number(&nonce[1..])?))
        });
        let after = after.collect::<Result<_, StoreError>>()?;
        Ok(Self { log, after })
    }

    pub(crate) fn id(&self, stream: StreamId, sequence: u64) -> EventId {
        let before = |(place, _): &&(u64, u32)| *place < sequence;
        let nonce = self.after.iter().rev().find(before);
        EventId {
            epoch: nonce.map_or(self.log, |(_, nonce)| *nonce),
            stream,
            sequence,
        }
    }
}

pub(crate) fn last_of(stream: &[u8]) -> Result<u64, StoreError> {
    number(
        stream
            .split(|byte| *byte == b':')
            .next()
            .ok_or_else(unexpected)?,
    )
}
