//! Running calls in Redis.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use bytes::Bytes;
use shoal_ports::{
    Begin, Begun, Binding, CallId, DeliveryId, Epoch, Journal, JournalEntry, JournaledCall,
    LogError, OpenStream, RunningStream, SessionId, StoreError, WorkerId,
};
use shoal_protocol::{EventId, StreamId};

use crate::event_log::{Nonces, last_of};
use crate::keys::field;
use crate::reply::{fields, number, parts, plain_step, step, unexpected};
use crate::scripts::SCRIPTS;
use crate::store::{Inner, RedisStore};

#[async_trait]
impl Journal for RedisStore {
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        begin: Begin,
    ) -> Result<Begun, LogError> {
        let key = self.inner.keys.session(session)?;
        let first = begin.entries.first().map(|entry| entry.call);
        // A number of chance: a Redis that lost its newest writes does not give one out again.
        let (stream, opens) = match begin.stream {
            Some(stream) => (stream, false),
            None => (first.map_or(StreamId(1), CallId::stream), true),
        };
        let entries = begin.entries.into_iter().map(taken_apart);
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        let begun = self.inner.run(&SCRIPTS.begin, &key, |command| {
            command
                .arg(epoch.0)
                .arg(stream.0)
                .arg(u8::from(opens))
                .arg(begin.delivery.to_string())
                .arg(self.inner.limits.bytes_per_session);
            for (call, entry, worker) in &entries {
                let worker = worker.as_ref().map_or("", WorkerId::as_str);
                command.arg(call.to_string()).arg(entry).arg(worker);
            }
        });
        let mut begun = match (begun.await, first) {
            // Redis has looked at its memory only: the step may have been done before it was full.
            (Err(StoreError::Full(why)), Some(first)) => {
                let before = self.inner.begun(&key, epoch, first).await?;
                let before = before.map(Begun::Now);
                return before.ok_or(StoreError::Full(why).into());
            }
            (begun, _) => step(begun?)?,
        };
        let at = EventId {
            epoch: begun.number()?,
            stream: StreamId(begun.number()?),
            sequence: begun.number()?,
        };
        let before: u64 = begun.number()?;
        Ok(match before {
            0 => Begun::Now(at),
            _ => Begun::Before(at),
        })
    }

    async fn rebind(
        &self,
        session: &SessionId,
        epoch: Epoch,
        call: CallId,
        binding: &Binding,
    ) -> Result<(), StoreError> {
        let key = self.inner.keys.session(session)?;
        let ledger = serde_json::to_vec(&binding.ledger).map_err(|_| unexpected())?;
        let rebound = self.inner.run(&SCRIPTS.rebind, &key, |command| {
            command
                .arg(epoch.0)
                .arg(call.to_string())
                .arg(binding.worker.as_str())
                .arg(ledger);
        });
        plain_step(rebound.await?).map(drop)
    }

    async fn restore(
        &self,
        session: &SessionId,
        epoch: Epoch,
        stream: OpenStream,
    ) -> Result<(), StoreError> {
        let key = self.inner.keys.session(session)?;
        let calls = stream
            .calls
            .into_iter()
            .map(|JournaledCall { entry, seen }| {
                let (call, entry, worker) = taken_apart(entry)?;
                Ok((call, entry, worker, seen))
            });
        let calls = calls.collect::<Result<Vec<_>, StoreError>>()?;
        let restored = self.inner.run(&SCRIPTS.restore_stream, &key, |command| {
            let delivery = stream.delivery.map(|delivery| delivery.to_string());
            command
                .arg(epoch.0)
                .arg(stream.last.stream.0)
                .arg(stream.last.sequence)
                .arg(stream.last.epoch)
                .arg(delivery.unwrap_or_default())
                .arg(calls.len());
            for (call, entry, worker, seen) in &calls {
                let worker = worker.as_ref().map_or("", WorkerId::as_str);
                let call = call.to_string();
                command.arg(call).arg(entry).arg(worker).arg(seen);
            }
            for event in &stream.newest {
                command.arg(&**event);
            }
        });
        plain_step(restored.await?).map(drop)
    }

    async fn running(
        &self,
        session: &SessionId,
        epoch: Epoch,
    ) -> Result<Vec<RunningStream>, LogError> {
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
    }

    async fn delivered(
        &self,
        session: &SessionId,
        delivery: DeliveryId,
    ) -> Result<Option<EventId>, LogError> {
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
    }
}

impl Inner {
    /// Where the stream stands on which a call is open under this epoch, if it is.
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

/// What is written of a call: its worker apart from the rest, since it changes.
fn taken_apart(mut entry: JournalEntry) -> Result<(CallId, Vec<u8>, Option<WorkerId>), StoreError> {
    let worker = entry.worker.take();
    let text = serde_json::to_vec(&entry).map_err(|_| unexpected())?;
    Ok((entry.call, text, worker))
}

/// The stream of an open call, and what was journaled.
fn split_entry(field: &[u8]) -> Result<(&[u8], &[u8]), StoreError> {
    let colon = field.iter().position(|byte| *byte == b':');
    let colon = colon.ok_or_else(unexpected)?;
    Ok((&field[..colon], &field[colon + 1..]))
}

/// The open calls in a session's hash, by their streams.
fn open_calls(known: &HashMap<Bytes, Bytes>) -> Result<Vec<RunningStream>, StoreError> {
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
        if let Some(worker) = find(format!("w{}", entry.call)) {
            let worker = std::str::from_utf8(worker).map_err(|_| unexpected())?;
            entry.worker = Some(WorkerId::new(worker));
        }
        // Of the worker that it was bound to since.
        if let Some(ledger) = find(format!("g{}", entry.call)) {
            entry.ledger = serde_json::from_slice(ledger).map_err(|_| unexpected())?;
        }
        let seen = find(format!("q{}", entry.call)).map_or(Ok(0), |seen| number(seen))?;
        let calls = streams.entry(number(stream)?).or_default();
        calls.push(JournaledCall { entry, seen });
    }
    let running = streams.into_iter().map(|(stream, mut calls)| {
        // Ids sort by the time at which they were made.
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
