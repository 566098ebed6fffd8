use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dashmap::mapref::entry::Entry;
use parking_lot::Mutex;
use shoal_protocol::StreamId;
use tokio::time::Instant;

use super::MemoryStore;
use super::data::{Lease, MemoryData, SessionData, StreamData};
use crate::{
    Claim, Directory, Epoch, Evidence, NewSession, NodeId, Placement, Renewal, SessionId,
    StoreError,
};

#[async_trait]
impl Directory for MemoryStore {
    async fn renew_lease(&self, node: &NodeId, lease: Duration) -> Result<Renewal, StoreError> {
        let now = Instant::now();
        let renewed = Lease {
            until: now + lease,
            contested: false,
        };
        let before = self.data.leases.insert(node.clone(), renewed);
        Ok(match before {
            Some(before) if before.until <= now => Renewal::Begun,
            Some(before) if before.contested => Renewal::Contested,
            Some(_) => Renewal::Kept,
            None => Renewal::Begun,
        })
    }

    async fn end_lease(&self, node: &NodeId) -> Result<(), StoreError> {
        self.data.leases.remove(node);
        Ok(())
    }

    async fn create(&self, new: NewSession) -> Result<Epoch, StoreError> {
        let epoch = Epoch(1);
        let data = SessionData {
            log: SessionData::new_log(),
            principal: new.principal,
            owner: Some(new.owner),
            epoch,
            came: None,
            record: new.record,
            expires: Instant::now() + new.idle,
            next_stream: StreamId::STANDALONE.0 + 1,
            streams: BTreeMap::from([(StreamId::STANDALONE, StreamData::default())]),
            deliveries: HashMap::new(),
            bytes: 0,
        };
        let data = Arc::new(Mutex::new(data));
        match self.data.sessions.entry(new.session) {
            Entry::Vacant(free) => drop(free.insert(data)),
            Entry::Occupied(mut known) => {
                let (is_there, is_same) = {
                    let (known, new) = (known.get().lock(), data.lock());
                    let is_same = known.epoch == epoch && known.owner == new.owner;
                    (known.expires > Instant::now(), is_same)
                };
                match (is_there, is_same) {
                    (true, true) => {}
                    (true, false) => return Err(StoreError::Held),
                    (false, _) => drop(known.insert(data)),
                }
            }
        }
        Ok(epoch)
    }

    async fn lookup(&self, session: &SessionId) -> Result<Option<Placement>, StoreError> {
        let placement = self.data.with(session, |data| {
            let owner = data
                .owner
                .clone()
                .filter(|owner| self.data.lease_lives(owner));
            Ok(Placement {
                principal: data.principal.clone(),
                owner,
                epoch: data.epoch,
            })
        });
        match placement {
            Err(StoreError::NotFound) => Ok(None),
            other => other.map(Some),
        }
    }

    async fn claim(&self, session: &SessionId, node: &NodeId) -> Result<Claim, StoreError> {
        self.data.claim(session, node, None)
    }

    async fn claim_on_evidence(
        &self,
        session: &SessionId,
        node: &NodeId,
        evidence: &Evidence,
    ) -> Result<Claim, StoreError> {
        self.data.claim(session, node, Some(evidence))
    }

    async fn held(&self, sessions: &[(SessionId, Epoch)]) -> Result<Vec<bool>, StoreError> {
        let held = |(session, epoch): &(SessionId, Epoch)| {
            self.data.with_owner(session, *epoch, |_| Ok(())).is_ok()
        };
        Ok(sessions.iter().map(held).collect())
    }

    async fn save(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        self.data.with_owner(session, epoch, |data| {
            data.record = record;
            data.expires = Instant::now() + idle;
            Ok(())
        })
    }

    async fn release(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        self.data.with_owner(session, epoch, |data| {
            data.record = record;
            data.expires = Instant::now() + idle;
            data.owner = None;
            Ok(())
        })
    }

    async fn remove(&self, session: &SessionId, epoch: Epoch) -> Result<(), StoreError> {
        self.data.with_owner(session, epoch, |data| {
            self.data.drop_streams(data, |_| true);
            // Code that still holds this entry sees an expired session.
            data.expires = Instant::now();
            Ok(())
        })?;
        self.data.sessions.remove(session);
        Ok(())
    }

    async fn sweep(&self) -> Result<usize, StoreError> {
        let now = Instant::now();
        let mut removed = 0;
        self.data.sessions.retain(|_, data| {
            let mut data = data.lock();
            let expired = data.expires <= now;
            if expired {
                self.data.drop_streams(&mut data, |_| true);
                removed += 1;
            } else {
                self.data.drop_expired_streams(&mut data, now);
            }
            !expired
        });
        Ok(removed)
    }
}

impl MemoryData {
    fn claim(
        &self,
        session: &SessionId,
        node: &NodeId,
        evidence: Option<&Evidence>,
    ) -> Result<Claim, StoreError> {
        self.with(session, |data| {
            let owner = data.owner.as_ref().filter(|owner| *owner != node);
            if let Some(owner) = owner.filter(|owner| self.lease_lives(owner)) {
                let gone = evidence.filter(|evidence| evidence.against == *owner);
                let since = data.came.map(|came| came.elapsed());
                let mut lease = self.leases.get_mut(owner);
                let left = lease
                    .as_ref()
                    .map(|lease| lease.until.saturating_duration_since(Instant::now()));
                let too_soon = |gone: &Evidence| {
                    since.is_some_and(|since| since < gone.lease)
                        && left.is_some_and(|left| !gone.has_missed_a_renewal(left))
                };
                if gone.is_none_or(too_soon) {
                    return Err(StoreError::Held);
                }
                if let Some(lease) = &mut lease {
                    lease.contested = true;
                }
            }
            if data.owner.as_ref() != Some(node) {
                data.came = Some(Instant::now());
            }
            data.owner = Some(node.clone());
            data.epoch = Epoch(data.epoch.0 + 1);
            Ok(Claim {
                epoch: data.epoch,
                record: data.record.clone(),
            })
        })
    }
}
