use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use bytes::Bytes;
use redis::Cmd;
use shoal_ports::{
    Begin, Begun, Binding, CallId, DeliveryId, Epoch, Journal, JournalEntry, JournaledCall,
    LogError, OpenStream, RunningStream, SessionId, StoreError, WorkerId,
};
use shoal_protocol::{EventId, StreamId};

use crate::event_log::{Nonces, last_of};
use crate::keys::field;
use crate::measure::measured;
use crate::reply::{fields, number, parts, plain_step, unexpected};
use crate::store::{RedisStore, RedisStoreInner};

#[async_trait]
impl Journal for RedisStore {
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        begin: Begin,
    ) -> Result<Begun, LogError> {
        measured("journal.begin", async {
            let key = self.inner.keys.session(session)?;
            let first = begin.entries.first().map(|entry| entry.call);
            let opens = begin.stream.is_none();
            // A new stream's number comes from the call's random ID, so that a Redis that lost writes does not assign
            // it again.
            let stream = begin.stream.or(first.map(CallId::stream));
            let mut stream = stream.unwrap_or(StreamId(1));
            let entries = begin.entries.iter().map(written);
            let entries = entries.collect::<Result<Vec<_>, _>>()?;
            let script = match begin.running {
                true => &self.inner.scripts.begin_running,
                false => &self.inner.scripts.begin,
            };
            let mut begun = loop {
                let args = |command: &mut Cmd| {
                    command.arg(epoch.0).arg(stream.0);
                    command.arg(field::stream(stream.0));
                    if opens {
                        command
                            .arg(format!("0:0:0:{}:0:{}", entries.len(), begin.delivery))
                            .arg(field::delivery(begin.delivery));
                    } else {
                        command.arg("").arg("");
                    }
                    for (call, entry) in &entries {
                        let entry = [stream.0.to_string().as_bytes(), b":", entry].concat();
                        command.arg(field::entry(*call)).arg(entry);
                    }
                };
                let begun = self.inner.run_with_room(script, &key, false, args);
                let begun = match (begun.await, first) {
                    // A full Redis refuses the script, even if an earlier attempt succeeded.
                    (Err(LogError::Store(StoreError::Full(why))), Some(first)) => {
                        let before = self.inner.begun(&key, epoch, first).await?;
                        let before = before.map(Begun::Now);
                        return before.ok_or(StoreError::Full(why).into());
                    }
                    (begun, _) => begun?,
                };
                if !begun.is_empty() {
                    break begun;
                }
                stream = StreamId(stream.0 % u32::MAX + 1);
            };
            let epoch = begun.number()?;
            if begun.is_empty() {
                return Ok(Begun::Now(EventId {
                    epoch,
                    stream,
                    sequence: 0,
                }));
            }
            let at = EventId {
                epoch,
                stream: StreamId(begun.number()?),
                sequence: begun.number()?,
            };
            let before: u64 = begun.number()?;
            Ok(match before {
                0 => Begun::Now(at),
                _ => Begun::Before(at),
            })
        })
        .await
    }

    async fn rebind(
        &self,
        session: &SessionId,
        epoch: Epoch,
        call: CallId,
        binding: &Binding,
    ) -> Result<(), StoreError> {
        measured("journal.rebind", async {
            let key = self.inner.keys.session(session)?;
            let ledger = serde_json::to_vec(&binding.ledger).map_err(|_| unexpected())?;
            let rebound = self.inner.run(&self.inner.scripts.rebind, &key, |command| {
                command
                    .arg(epoch.0)
                    .arg(call.to_string())
                    .arg(binding.worker.as_str())
                    .arg(ledger);
            });
            plain_step(rebound.await?).map(drop)
        })
        .await
    }

    async fn restore(
        &self,
        session: &SessionId,
        epoch: Epoch,
        stream: OpenStream,
    ) -> Result<(), StoreError> {
        measured("journal.restore", async {
            let key = self.inner.keys.session(session)?;
            let calls = stream.calls.iter().map(|JournaledCall { entry, seen }| {
                let (call, entry) = written(entry)?;
                Ok((call, entry, seen))
            });
            let calls = calls.collect::<Result<Vec<_>, StoreError>>()?;
            let restored = self
                .inner
                .run(&self.inner.scripts.restore_stream, &key, |command| {
                    let delivery = stream.delivery.map(|delivery| delivery.to_string());
                    command
                        .arg(epoch.0)
                        .arg(stream.last.stream.0)
                        .arg(stream.last.sequence)
                        .arg(stream.last.epoch)
                        .arg(delivery.unwrap_or_default())
                        .arg(calls.len())
                        .arg(stream.ended.len());
                    for (call, entry, seen) in &calls {
                        command.arg(call.to_string()).arg(&**entry).arg(seen);
                    }
                    for call in &stream.ended {
                        command.arg(call.to_string());
                    }
                    for event in &stream.newest {
                        command.arg(&**event);
                    }
                });
            plain_step(restored.await?).map(drop)
        })
        .await
    }

    async fn running(
        &self,
        session: &SessionId,
        epoch: Epoch,
    ) -> Result<Vec<RunningStream>, LogError> {
        measured("journal.running", async {
            let key = self.inner.keys.session(session)?;
            let mut command = redis::cmd("HGETALL");
            command.arg(&key);
            let known = fields(self.inner.connections.ask(&key, command).await?)?;
            if known.is_empty() {
                return Err(StoreError::NotFound.into());
            }
            let newest = known.get(field::EPOCH.as_bytes()).ok_or_else(unexpected)?;
            match number::<u64>(newest)?.cmp(&epoch.0) {
                Ordering::Greater => return Err(StoreError::Stale.into()),
                Ordering::Less => return Err(StoreError::Forgotten.into()),
                Ordering::Equal => {}
            }
            Ok(open_calls(&known)?)
        })
        .await
    }

    async fn delivered(
        &self,
        session: &SessionId,
        delivery: DeliveryId,
    ) -> Result<Option<EventId>, LogError> {
        measured("journal.delivered", async {
            let key = self.inner.keys.session(session)?;
            let asked = [field::EPOCH, field::LOG, &field::delivery(delivery)];
            let mut found = parts(self.inner.fields(&key, &asked).await?)?;
            found.optional()?.ok_or(StoreError::NotFound)?;
            let epoch = found.number()?;
            let Some(stream) = found.optional()? else {
                return Ok(None);
            };
            Ok(Some(EventId {
                epoch,
                stream: StreamId(number(&stream)?),
                sequence: 0,
            }))
        })
        .await
    }
}

impl RedisStoreInner {
    async fn begun(
        &self,
        key: &str,
        epoch: Epoch,
        call: CallId,
    ) -> Result<Option<EventId>, StoreError> {
        let asked = [field::EPOCH, field::LOG, &field::entry(call)];
        let mut found = parts(self.fields(key, &asked).await?)?;
        let (owner, log, entry) = (found.optional()?, found.optional()?, found.optional()?);
        let (Some(owner), Some(log), Some(entry)) = (owner, log, entry) else {
            return Ok(None);
        };
        if number::<u64>(&owner)? != epoch.0 {
            return Err(StoreError::Stale);
        }
        let stream = number(split_entry(&entry)?.0)?;
        let stands = self.fields(key, &[&field::stream(stream)]).await?;
        Ok(Some(EventId {
            epoch: number(&log)?,
            stream: StreamId(stream),
            sequence: last_of(&parts(stands)?.bytes()?)?,
        }))
    }
}

fn written(entry: &JournalEntry) -> Result<(CallId, Vec<u8>), StoreError> {
    let text = serde_json::to_vec(entry).map_err(|_| unexpected())?;
    Ok((entry.call, text))
}

fn split_entry(field: &[u8]) -> Result<(&[u8], &[u8]), StoreError> {
    let colon = field.iter().position(|byte| *byte == b':');
    let colon = colon.ok_or_else(unexpected)?;
    Ok((&field[..colon], &field[colon + 1..]))
}

pub(crate) fn open_calls(known: &HashMap<Bytes, Bytes>) -> Result<Vec<RunningStream>, StoreError> {
    let find = |name: String| known.get(name.as_bytes());
    let log = known.get(field::LOG.as_bytes()).ok_or_else(unexpected)?;
    let log = number(log)?;
    let mut streams: BTreeMap<u32, Vec<JournaledCall>> = BTreeMap::new();
    for (name, value) in known {
        if name.first() != Some(&b'j') {
            continue;
        }
        let (stream, entry) = split_entry(value)?;
        let mut entry: JournalEntry = serde_json::from_slice(entry).map_err(|_| unexpected())?;
        // Older releases of Shoal always store the worker in this field.
        if let Some(worker) = find(format!("w{}", entry.call)) {
            let worker = std::str::from_utf8(worker).map_err(|_| unexpected())?;
            entry.worker = Some(WorkerId::new(worker));
        }
        if let Some(ledger) = find(format!("g{}", entry.call)) {
            entry.ledger = serde_json::from_slice(ledger).map_err(|_| unexpected())?;
        }
        let seen = find(format!("q{}", entry.call)).map_or(Ok(0), |seen| number(seen))?;
        let calls = streams.entry(number(stream)?).or_default();
        calls.push(JournaledCall { entry, seen });
    }
    let running = streams.into_iter().map(|(stream, mut calls)| {
        calls.sort_by_key(|call| call.entry.call);
        let stands = find(field::stream(stream)).ok_or_else(unexpected)?;
        let marks = find(field::nonces(stream)).map(|marks| &**marks);
        let last = Nonces::read(log, marks)?.id(StreamId(stream), last_of(stands)?);
        Ok(RunningStream { last, calls })
    });
    let mut running = running.collect::<Result<Vec<_>, StoreError>>()?;
    running.sort_by_key(|stream| stream.calls.first().map(|call| call.entry.call));
    Ok(running)
}
