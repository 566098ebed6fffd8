//! Opening, putting to sleep and ending a session.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{
    Epoch, GatewayError, NewSession, OpenSession, Opened, SessionId, SessionRef, StoreError,
};
use shoal_protocol::{RpcError, StreamId};
use shoal_telemetry::metrics::{ClaimReason, EndReason, metrics};
use tokio::time::{Instant, sleep};

use super::Node;
use super::node::Passive;
use crate::actor::SessionCore;
use crate::cell::SessionCell;
use crate::clock::unix_millis;
use crate::here::in_task;
use crate::live::{LiveSession, store_failed};
use crate::measure;
use crate::record::Record;
use crate::state::{Effect, Input, SessionState, handshake_of};
use crate::stored::Share;
use crate::streams::{Streams, Tail};

/// How long the end of a session waits for the answers to its calls to be written and read.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(2);

impl Node {
    pub(crate) async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        if self.handing_over.load(Ordering::Acquire) {
            return Err(GatewayError::Moved { owner: None });
        }
        if let Some(initialize) = &open.initialize {
            handshake_of(initialize).map_err(GatewayError::Rejected)?;
        }
        self.stored.check(&open.principal)?;
        let reserved = self.reserve(&open.principal)?;
        let opened = self.open_reserved(open).await?;
        reserved.keep();
        Ok(opened)
    }

    async fn open_reserved(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        let session = SessionId::opened_by(&self.id);
        let principal = open.principal.clone();
        let mut record = Record::new(open.principal, open.transport);
        record.opened_at = Some(unix_millis());
        let mut state = SessionState::new(session.clone(), record, self.limits());
        let facts = self.driver.dispatcher.facts().borrow().clone();
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
        let record = state.record().to_bytes();
        let share = self.stored.share(&principal, record.len());
        let new = NewSession {
            session: session.clone(),
            principal,
            owner: self.id.clone(),
            record,
            idle: self.config.record_life(),
        };
        let directory = &self.driver.store.directory;
        let epoch = directory.create(new).await;
        measure::claimed(ClaimReason::Created, &epoch);
        let epoch = epoch.map_err(|error| store_failed(&error, &self.config))?;
        let revision = state.revision();
        self.make_live(session.clone(), state, epoch, share);
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
        share: Arc<Share>,
    ) -> Arc<LiveSession> {
        let (principal, transport) = (state.principal().clone(), state.transport());
        let opened_at = state.record().opened_at;
        let core = SessionCore::new(state, self.driver.dispatcher.facts());
        let shared = core.shared().clone();
        let streams = |live: &Weak<LiveSession>| {
            Arc::new(Streams::new(
                self,
                (id.clone(), epoch),
                live.clone(),
                share.clone(),
            ))
        };
        let live = Arc::new_cyclic(|live| LiveSession {
            streams: streams(live),
            id: id.clone(),
            principal,
            transport,
            opened_at,
            epoch,
            share: share.clone(),
            shared,
            actor: SessionCell::new(core, self.up.clone()),
            waiting: Arc::default(),
            last_used: AtomicU64::new(self.now()),
            last_saved: AtomicU64::new(self.now()),
            changing: Arc::default(),
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
            share: live.share.clone(),
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
        live.share.set_record(record.len());
        let saved = live.streams.save(record).await;
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
        // Somebody who changes it is something that goes on.
        let Ok(_turn) = live.changing.try_lock() else {
            return false;
        };
        let Some(record) = live.passivate().await else {
            return false;
        };
        let kept = Record::from_bytes(&record).ok();
        live.share.set_record(record.len());
        let saved = live.streams.save(record).await;
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
        let released = live.streams.release(record).await;
        if let Err(error) = released {
            tracing::warn!(session = %live.id, %error, "could not store a session's record");
            return false;
        }
        true
    }

    pub(crate) async fn close(self: &Arc<Self>, to: &SessionRef) -> Result<(), GatewayError> {
        let live = self.find(to).await?;
        let alone = self.wake_lock(&live.id).clone().lock_owned().await;
        let node = self.clone();
        // A session that is half ended would take no messages, and its calls would run on.
        in_task(async move {
            let _alone = alone;
            if node.live(&live.id).is_none() {
                return Err(GatewayError::NotFound);
            }
            let told = "the session was ended by its client";
            node.end(&live, EndReason::Deleted, told).await;
            Ok(())
        })
        .await
    }

    /// Ends a live session for good; its calls are told why.
    pub(super) async fn end(&self, live: &Arc<LiveSession>, why: EndReason, told: &'static str) {
        let written = live.streams.open();
        // Before the calls are told: their answers say that the session has ended.
        live.streams.begin_end(told);
        for slot in live.end().await {
            slot.cancel(told);
        }
        answered(live, &written).await;
        live.streams.end();
        self.remove_live(live);
        measure::ended(&live.about(), why);
        let removed = self
            .driver
            .store
            .directory
            .remove(&live.id, live.epoch)
            .await;
        if let Err(error) = removed {
            tracing::warn!(session = %live.id, %error, "could not remove a session's record");
        }
        self.unreserve(&live.principal);
        self.unsubscribe_all(live).await;
        live.actor.stop();
        self.driver.dispatcher.end_session(&live.id).await;
    }
}

/// Waits until the calls of a session that ends have been answered, and whoever reads their streams has the answers; not for
/// long.
async fn answered(live: &LiveSession, written: &[Arc<Tail>]) {
    let until = Instant::now() + ANSWERED_WITHIN;
    let read = |tail: &Arc<Tail>| tail.stream() != StreamId::STANDALONE && tail.is_read();
    while (live.shared.held() > 0 || written.iter().any(read)) && Instant::now() < until {
        sleep(LOOK_EVERY).await;
    }
}
