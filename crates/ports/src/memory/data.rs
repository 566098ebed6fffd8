use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use dashmap::DashMap;
use parking_lot::Mutex;
use shoal_protocol::{EventId, StreamId};
use tokio::time::Instant;

use crate::{
    CallProgress, DeliveryId, Epoch, JournaledCall, NodeId, NodeInfo, Principal, SessionId,
    StoreError, StreamSettings,
};

/// The data of the embedded store. Each session has a lock, which is held for one step.
pub(super) struct MemoryData {
    pub(super) streams: StreamSettings,
    pub(super) sessions: DashMap<SessionId, Arc<Mutex<SessionData>>>,
    pub(super) leases: DashMap<NodeId, Lease>,
    pub(super) nodes: DashMap<NodeId, (NodeInfo, Instant)>,
    pub(super) pools: Mutex<Option<(Vec<String>, Instant)>>,
    pub(super) catalogs: DashMap<String, (Vec<u8>, Instant)>,
    pub(super) names: Mutex<Option<(BTreeMap<String, String>, Instant)>>,
    bytes: AtomicUsize,
}

pub(super) struct Lease {
    pub(super) until: Instant,
    /// Whether another node claimed one of the holder's sessions since the last renewal.
    pub(super) contested: bool,
}

pub(super) struct SessionData {
    /// The random `epoch` in event ids, unique to this log. Independent of the owner's `epoch`.
    pub(super) log: u32,
    pub(super) principal: Principal,
    pub(super) owner: Option<NodeId>,
    pub(super) epoch: Epoch,
    /// The last change of owner.
    pub(super) came: Option<Instant>,
    pub(super) record: Bytes,
    pub(super) expires: Instant,
    pub(super) next_stream: u32,
    pub(super) streams: BTreeMap<StreamId, StreamData>,
    pub(super) deliveries: HashMap<DeliveryId, StreamId>,
    pub(super) bytes: usize,
}

#[derive(Default)]
pub(super) struct StreamData {
    pub(super) trimmed: u64,
    pub(super) events: VecDeque<Bytes>,
    pub(super) finished: Option<Instant>,
    /// An earlier position and its time, for dropping events by age.
    pub(super) mark: Option<(Instant, u64)>,
    pub(super) journal: Vec<JournaledCall>,
    pub(super) delivery: Option<DeliveryId>,
}

impl SessionData {
    pub(super) fn new_log() -> u32 {
        uuid::Uuid::new_v4().as_fields().0
    }

    pub(super) fn event_id(&self, stream: StreamId, sequence: u64) -> EventId {
        EventId {
            epoch: self.log,
            stream,
            sequence,
        }
    }
}

impl StreamData {
    pub(super) fn last(&self) -> u64 {
        self.trimmed + self.events.len() as u64
    }

    pub(super) fn has_noted(&self, progress: Option<CallProgress>) -> bool {
        let Some(CallProgress { call, seen, ended }) = progress else {
            return true;
        };
        match self.journal.iter().find(|known| known.entry.call == call) {
            Some(known) => !ended && known.seen >= seen,
            None => true,
        }
    }

    pub(super) fn note(&mut self, progress: CallProgress) {
        let CallProgress { call, seen, ended } = progress;
        if ended {
            self.journal.retain(|known| known.entry.call != call);
        } else if let Some(known) = self.journal.iter_mut().find(|c| c.entry.call == call) {
            known.seen = seen;
        }
    }

    /// Drops the oldest events. Returns their bytes.
    pub(super) fn trim(&mut self, up_to: u64) -> usize {
        let mut freed = 0;
        while self.trimmed < up_to
            && let Some(event) = self.events.pop_front()
        {
            freed += event.len();
            self.trimmed += 1;
        }
        if self.events.capacity() > 4 * self.events.len() + 64 {
            self.events.shrink_to_fit();
        }
        freed
    }
}

impl MemoryData {
    pub(super) fn new(streams: StreamSettings) -> Self {
        Self {
            streams,
            sessions: DashMap::new(),
            leases: DashMap::new(),
            nodes: DashMap::new(),
            pools: Mutex::default(),
            catalogs: DashMap::new(),
            names: Mutex::default(),
            bytes: AtomicUsize::new(0),
        }
    }

    pub(super) fn event_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn with<T>(
        &self,
        session: &SessionId,
        step: impl FnOnce(&mut SessionData) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let data = self
            .sessions
            .get(session)
            .map(|entry| entry.value().clone());
        let data = data.ok_or(StoreError::NotFound)?;
        let mut data = data.lock();
        if data.expires <= Instant::now() {
            return Err(StoreError::NotFound);
        }
        step(&mut data)
    }

    /// Serves the newest owner only.
    pub(super) fn with_owner<T>(
        &self,
        session: &SessionId,
        epoch: Epoch,
        step: impl FnOnce(&mut SessionData) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with(session, |data| {
            if data.epoch == epoch {
                step(data)
            } else {
                Err(StoreError::Stale)
            }
        })
    }

    pub(super) fn lease_lives(&self, node: &NodeId) -> bool {
        self.leases
            .get(node)
            .is_some_and(|lease| lease.until > Instant::now())
    }

    /// If the session has too little room, drops its finished streams. An append that ends a call may exceed the
    /// store's limit, but not the session's.
    pub(super) fn reserve(
        &self,
        data: &mut SessionData,
        more: usize,
        ends: bool,
    ) -> Result<(), StoreError> {
        if data.bytes + more > self.streams.bytes_per_session {
            self.drop_finished(data);
        }
        if data.bytes + more > self.streams.bytes_per_session {
            return Err(StoreError::Full(
                "the session's streams hold as many bytes as they may",
            ));
        }
        if !ends && self.event_bytes() + more > self.streams.bytes {
            return Err(StoreError::Full(
                "the event log holds as many bytes as it may",
            ));
        }
        data.bytes += more;
        self.bytes.fetch_add(more, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn free(&self, data: &mut SessionData, bytes: usize) {
        data.bytes -= bytes;
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn check_room(&self) -> Result<(), StoreError> {
        if self.event_bytes() >= self.streams.bytes {
            return Err(StoreError::Full(
                "the event log holds as many bytes as it may",
            ));
        }
        Ok(())
    }

    fn drop_finished(&self, data: &mut SessionData) {
        self.drop_streams(data, |stream| stream.finished.is_some());
    }

    pub(super) fn drop_expired_streams(&self, data: &mut SessionData, now: Instant) {
        let retention = self.streams.retention.get();
        self.drop_streams(data, |stream| {
            stream
                .finished
                .is_some_and(|finished| finished + retention <= now)
        });
        let mut freed = 0;
        if let Some(stream) = data.streams.get_mut(&StreamId::STANDALONE) {
            match stream.mark {
                Some((at, _)) if now < at + retention => {}
                mark => {
                    freed = stream.trim(mark.map_or(0, |(_, sequence)| sequence));
                    stream.mark = Some((now, stream.last()));
                }
            }
        }
        self.free(data, freed);
    }

    pub(super) fn drop_streams(&self, data: &mut SessionData, which: impl Fn(&StreamData) -> bool) {
        let mut freed = 0;
        let SessionData {
            streams,
            deliveries,
            ..
        } = data;
        streams.retain(|_, stream| {
            let drop = which(stream);
            if drop {
                freed += stream.events.iter().map(Bytes::len).sum::<usize>();
                if let Some(delivery) = &stream.delivery {
                    deliveries.remove(delivery);
                }
            }
            !drop
        });
        self.free(data, freed);
    }
}
