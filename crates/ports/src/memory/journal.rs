use async_trait::async_trait;
use shoal_protocol::EventId;

use super::MemoryStore;
use super::data::{SessionData, StreamData};
use super::event_log::NO_STREAM;
use crate::{
    Begin, Begun, Binding, CallId, DeliveryId, Epoch, Journal, JournaledCall, LogError,
    RunningStream, SessionId, StoreError,
};

#[async_trait]
impl Journal for MemoryStore {
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        begin: Begin,
    ) -> Result<Begun, LogError> {
        let begun = self.data.with_owner(session, epoch, |data| {
            let first = begin.entries.first().map(|entry| entry.call);
            let repeated = data.streams.iter().find(|(_, stream)| {
                let mut calls = stream.journal.iter();
                calls.any(|known| Some(known.entry.call) == first)
            });
            if let Some((id, stream)) = repeated {
                return Ok(Some(Begun::Now(data.event_id(*id, stream.last()))));
            }
            let before = data.deliveries.get(&begin.delivery);
            if let (None, Some(id)) = (begin.stream, before) {
                return Ok(Some(Begun::Before(data.event_id(*id, 0))));
            }
            self.data.check_room()?;
            let calls = begin
                .entries
                .into_iter()
                .map(|entry| JournaledCall { entry, seen: 0 });
            let Some(id) = begin.stream else {
                let stream = StreamData {
                    journal: calls.collect(),
                    delivery: Some(begin.delivery),
                    ..StreamData::default()
                };
                return Ok(Some(Begun::Now(self.new_stream(data, stream))));
            };
            let open = data.streams.get_mut(&id);
            let Some(stream) = open.filter(|stream| stream.finished.is_none()) else {
                return Ok(None);
            };
            stream.journal.extend(calls);
            let last = stream.last();
            Ok(Some(Begun::Now(data.event_id(id, last))))
        })?;
        begun.ok_or(LogError::Gone(NO_STREAM))
    }

    async fn rebind(
        &self,
        session: &SessionId,
        epoch: Epoch,
        call: CallId,
        binding: &Binding,
    ) -> Result<(), StoreError> {
        self.data.with_owner(session, epoch, |data| {
            if let Some(journaled) = calls(data).find(|known| known.entry.call == call) {
                journaled.entry.worker = Some(binding.worker.clone());
                journaled.entry.ledger = binding.ledger;
            }
            Ok(())
        })
    }

    async fn running(
        &self,
        session: &SessionId,
        epoch: Epoch,
    ) -> Result<Vec<RunningStream>, LogError> {
        Ok(self.data.with_owner(session, epoch, |data| {
            let running = data
                .streams
                .iter()
                .filter(|(_, stream)| !stream.journal.is_empty())
                .map(|(id, stream)| RunningStream {
                    last: data.event_id(*id, stream.last()),
                    calls: stream.journal.clone(),
                });
            Ok(running.collect())
        })?)
    }

    async fn delivered(
        &self,
        session: &SessionId,
        delivery: DeliveryId,
    ) -> Result<Option<EventId>, LogError> {
        Ok(self.data.with(session, |data| {
            let found = data.deliveries.get(&delivery);
            Ok(found.map(|id| data.event_id(*id, 0)))
        })?)
    }
}

fn calls(data: &mut SessionData) -> impl Iterator<Item = &mut JournaledCall> {
    data.streams
        .values_mut()
        .flat_map(|stream| stream.journal.iter_mut())
}
