//! Opening, putting to sleep and ending a session.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use shoal_ports::{
    Epoch, GatewayError, NewSession, OpenSession, Opened, SessionId, SessionRef, StoreError,
};
use shoal_protocol::RpcError;
use shoal_telemetry::metrics::{ClaimReason, EndReason, metrics};

use super::Node;
use super::node::Passive;
use crate::actor::{Mind, Shared};
use crate::clock::unix_millis;
use crate::doze::Bed;
use crate::live::{LiveSession, store_failed};
use crate::measure;
use crate::record::Record;
use crate::state::{Effect, Input, SessionState, handshake_of};
use crate::streams::Streams;

impl Node {
    pub(crate) async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        if self.handing_over.load(Ordering::Acquire) {
            return Err(GatewayError::Moved { owner: None });
        }
        if let Some(initialize) = &open.initialize {
            handshake_of(initialize).map_err(GatewayError::Rejected)?;
        }
        self.reserve(&open.principal)?;
        let principal = open.principal.clone();
        let opened = self.open_reserved(open).await;
        if opened.is_err() {
            self.unreserve(&principal);
        }
        opened
    }

    async fn open_reserved(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        let session = SessionId::random();
        let principal = open.principal.clone();
        let mut record = Record::new(open.principal, open.transport);
        record.opened_at = Some(unix_millis());
        let mut state = SessionState::new(session.clone(), record, self.limits());
        let facts = self.carrier.dispatcher.facts().borrow().clone();
        let response = match open
            .initialize
            .map(|request| state.apply(Input::Request(request), &facts))
        {
            Some(Effect::RespondAndSave(response)) => Some(response),
            None => None,
            Some(_) => {
                let error = RpcError::invalid_request("the first request must be initialize");
                return Err(GatewayError::Rejected(error));
            }
        };
        let new = NewSession {
            session: session.clone(),
            principal,
            owner: self.id.clone(),
            record: state.record().to_bytes(),
            idle: self.config.record_life(),
        };
        let directory = &self.carrier.store.directory;
        let epoch = directory.create(new).await;
        measure::claimed(ClaimReason::Created, &epoch);
        let epoch = epoch.map_err(|error| store_failed(&error, &self.config))?;
        let revision = state.revision();
        self.make_live(session.clone(), state, epoch);
        metrics().sessions.created();
        Ok(Opened {
            session,
            revision,
            response,
        })
    }

    /// Takes a session that this node owns into memory. It has no actor before its first request.
    pub(super) fn make_live(
        &self,
        id: SessionId,
        state: SessionState,
        epoch: Epoch,
    ) -> Arc<LiveSession> {
        let shared = Arc::new(Shared::default());
        let (principal, transport) = (state.principal().clone(), state.transport());
        let opened_at = state.record().opened_at;
        let mind = Mind::new(state, self.carrier.dispatcher.facts(), shared.clone());
        let streams = Arc::new(Streams::new(
            id.clone(),
            epoch,
            self.carrier.store.log.clone(),
            self.config.clone(),
            self.counters.clone(),
            self.draining.clone(),
        ));
        let live = Arc::new(LiveSession {
            id,
            principal,
            transport,
            opened_at,
            epoch,
            streams,
            shared,
            actor: Bed::new(mind, self.up.clone()),
            waiting: AtomicUsize::new(0),
            last_used: AtomicU64::new(self.now()),
            last_saved: AtomicU64::new(self.now()),
            saving: tokio::sync::Mutex::new(()),
        });
        self.insert_live(live.clone());
        live
    }

    /// Turns a session whose actor is gone into a passive one: the next message wakes it from its record.
    pub(super) fn rebuild_later(&self, live: &LiveSession, record: Option<Record>) {
        let passive = Passive {
            principal: live.principal.clone(),
            epoch: live.epoch,
            subscriptions: record
                .map(|record| record.subscriptions)
                .unwrap_or_default(),
            last_used: live.last_used.load(Ordering::Relaxed),
            updated: BTreeSet::new(),
            about: live.about(),
        };
        self.passive.insert(live.id.clone(), passive);
        live.streams.end();
        self.remove_live(live);
    }

    /// Stores the session's record as it is now.
    pub(super) async fn save(&self, live: &LiveSession) -> Result<(), StoreError> {
        let _turn = live.saving.lock().await;
        let Some(record) = live.snapshot().await else {
            return Ok(());
        };
        let directory = &self.carrier.store.directory;
        let saved = directory
            .save(&live.id, live.epoch, record, self.config.record_life())
            .await;
        if saved == Err(StoreError::Stale) {
            live.lose();
        }
        saved?;
        live.last_saved.store(self.now(), Ordering::Relaxed);
        Ok(())
    }

    /// Lets go of an idle session; its record stays in the store, and the node its owner.
    pub(super) async fn passivate(&self, live: &Arc<LiveSession>) -> bool {
        let _alone = self.wake_lock(&live.id).lock().await;
        let Some(record) = live.passivate().await else {
            return false;
        };
        let kept = Record::from_bytes(&record).ok();
        let directory = &self.carrier.store.directory;
        let saved = directory
            .save(&live.id, live.epoch, record, self.config.record_life())
            .await;
        if let Err(error) = saved {
            tracing::warn!(session = %live.id, %error, "could not store a session's record");
        }
        self.rebuild_later(live, kept);
        live.actor.stop();
        metrics().sessions.passivated();
        true
    }

    /// Gives every session up, with what it knows stored; calls that still run are told to stop.
    pub(crate) async fn passivate_all(&self) {
        for live in self.all_live() {
            // What a call is having kept goes into the record, or is not answered.
            let _turn = live.saving.lock().await;
            if let Some(record) = live.snapshot().await {
                for slot in live.end().await {
                    slot.cancel("the server is shutting down");
                }
                live.streams.end();
                self.release(&live, record).await;
                self.remove_live(&live);
                live.actor.stop();
            }
        }
    }

    /// Lets any node claim the session, with this record; whether the store has it.
    pub(super) async fn release(&self, live: &LiveSession, record: Bytes) -> bool {
        let directory = &self.carrier.store.directory;
        let released = directory
            .release(&live.id, live.epoch, record, self.config.record_life())
            .await;
        if let Err(error) = released {
            tracing::warn!(session = %live.id, %error, "could not store a session's record");
            return false;
        }
        true
    }

    pub(crate) async fn close(&self, to: &SessionRef) -> Result<(), GatewayError> {
        let live = self.find(to).await?;
        let _alone = self.wake_lock(&live.id).lock().await;
        if self.live(&live.id).is_none() {
            return Err(GatewayError::NotFound);
        }
        let told = "the session was ended by its client";
        self.end(&live, EndReason::Deleted, told).await;
        Ok(())
    }

    /// Ends a live session for good; its calls are told why.
    pub(super) async fn end(&self, live: &Arc<LiveSession>, why: EndReason, told: &str) {
        let subscriptions = self.subscriptions(live).await;
        for slot in live.end().await {
            slot.cancel(told);
        }
        live.streams.end();
        self.remove_live(live);
        measure::ended(&live.about(), why);
        let removed = self
            .carrier
            .store
            .directory
            .remove(&live.id, live.epoch)
            .await;
        if let Err(error) = removed {
            tracing::warn!(session = %live.id, %error, "could not remove a session's record");
        }
        live.actor.stop();
        self.unreserve(&live.principal);
        self.unsubscribe_all(&live.id, subscriptions).await;
        self.carrier.dispatcher.end_session(&live.id).await;
    }

    /// Takes back the subscriptions of a session that is no longer this node's.
    pub(super) async fn unsubscribe_all(&self, session: &SessionId, uris: BTreeSet<String>) {
        for uri in uris {
            self.subscribers.remove(&uri, session);
            self.carrier.dispatcher.unsubscribe(&uri).await;
        }
    }

    pub(super) async fn subscriptions(&self, live: &LiveSession) -> BTreeSet<String> {
        let record = live.snapshot().await;
        record
            .and_then(|record| Record::from_bytes(&record).ok())
            .map(|record| record.subscriptions)
            .unwrap_or_default()
    }
}
