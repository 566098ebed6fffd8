use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::StreamExt as _;
use shoal_ports::{
    Epoch, GatewayError, NewSession, OpenSession, Opened, SessionId, SessionRef, SessionTransport,
    StoreError, TaskClient,
};
use shoal_protocol::RpcError;
use shoal_telemetry::metrics::{ClaimReason, EndReason, metrics};

use super::leave_kind::LeaveKind;
use super::ownership::AT_ONCE;
use super::patience::Patience;
use super::places::SessionPlace;
use super::{Node, Passive};
use crate::clock::unix_millis;
use crate::live::LiveSession;
use crate::record::{Handshake, Record};
use crate::state::{Came, Effect, Input, SessionMachine, handshake_of};
use crate::store_failure::store_failed;
use crate::stored::Share;
use crate::{measure, task_adoption};

impl Node {
    pub(crate) async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        if self.handing_over.load(Ordering::Acquire) {
            return Err(GatewayError::Moved { owner: None });
        }
        if open.transport == SessionTransport::Task {
            let error = RpcError::invalid_request("a task's session begins with its call");
            return Err(GatewayError::Rejected(error));
        }
        if let Some(initialize) = &open.initialize {
            handshake_of(initialize).map_err(GatewayError::Rejected)?;
        }
        self.stored.check(&open.principal)?;
        if let Some(initialize) = &open.initialize {
            let known = self.knows_enough(&initialize.method).await;
            known.map_err(|why| self.not_ready(why))?;
        }
        let place = self.places.take(&open.principal)?;
        self.open_in(place, open).await
    }

    async fn open_in(
        &self,
        place: SessionPlace,
        open: OpenSession,
    ) -> Result<Opened, GatewayError> {
        let session = SessionId::opened_by(&self.id);
        let mut record = Record::new(open.principal, open.transport);
        record.opened_at = Some(unix_millis());
        let mut state = SessionMachine::new(session.clone(), record, self.limits());
        let facts = self.driver.dispatcher.facts().borrow().clone();
        let response = match open
            .initialize
            .map(|request| state.apply(Input::Request(request, Came::anew()), &facts))
        {
            Some(Effect::RespondAndSave(response)) => Some(response),
            None => None,
            Some(_) => {
                let error = RpcError::invalid_request("the first request must be initialize");
                return Err(GatewayError::Rejected(error));
            }
        };
        let revision = state.revision();
        let created = self.create(session.clone(), state, place).await;
        created.map_err(|error| store_failed(&error, &self.config))?;
        Ok(Opened {
            session,
            revision,
            response,
        })
    }

    /// `Held` if the session exists.
    pub(super) async fn create_task(
        &self,
        to: &SessionRef,
        client: &TaskClient,
        place: SessionPlace,
    ) -> Result<Arc<LiveSession>, StoreError> {
        let mut record = Record::new(to.principal.clone(), SessionTransport::Task);
        record.opened_at = Some(unix_millis());
        let mut state = SessionMachine::new(to.session.clone(), record, self.limits());
        let facts = self.driver.dispatcher.facts().borrow().clone();
        state.settle(Handshake::of_task(client), &facts);
        self.create(to.session.clone(), state, place).await
    }

    async fn create(
        &self,
        session: SessionId,
        state: SessionMachine,
        place: SessionPlace,
    ) -> Result<Arc<LiveSession>, StoreError> {
        let principal = state.principal().clone();
        let record = state.record().to_bytes();
        let share = self.stored.share(&principal, record.len());
        let new = NewSession {
            session: session.clone(),
            principal,
            owner: self.id.clone(),
            record,
            idle: self.config.record_life(state.transport()),
        };
        let epoch = self.driver.store.directory.create(new).await;
        measure::claimed(ClaimReason::Created, &epoch);
        let live = self.make_live(session, state, (epoch?, share), BTreeSet::new());
        self.table.enter(live.clone(), place);
        metrics().sessions.created();
        Ok(live)
    }

    pub(super) fn make_live(
        &self,
        id: SessionId,
        state: SessionMachine,
        owned: (Epoch, Arc<Share>),
        missing: BTreeSet<String>,
    ) -> Arc<LiveSession> {
        let live = LiveSession::new(self, id, state, owned);
        if task_adoption::runs(&live) {
            self.task_lists.begin(&live.id, &live.principal);
        }
        // Queued before any request, because requests may change the session's subscriptions.
        self.subscribe_again(&live, missing);
        live
    }

    pub(super) fn rebuild_later(&self, live: &LiveSession, subscriptions: BTreeSet<String>) {
        let passive = Passive {
            principal: live.principal.clone(),
            epoch: live.epoch,
            subscriptions,
            last_used: live.last_used.load(Ordering::Relaxed),
            updated: BTreeSet::new(),
            has_ended: task_adoption::has_ended(live),
            about: live.about(),
            share: live.share.clone(),
        };
        self.table.put_to_sleep(live, passive);
        live.streams.end();
    }

    pub(crate) async fn release_all(&self) {
        let patience = Arc::new(Patience::new(self.config.begin_patience));
        let leaving = futures::stream::iter(self.all_live()).for_each_concurrent(AT_ONCE, |live| {
            let leave = LeaveKind::ShutDown(patience.clone());
            async move {
                self.leave(&live, leave, None).await;
            }
        });
        leaving.await;
    }

    pub(crate) async fn close(self: &Arc<Self>, to: &SessionRef) -> Result<(), GatewayError> {
        let live = self.find(to).await?;
        // If another node owned the session, the record would stay in the store and bring the session back.
        self.driver.check_ownership(&live).await?;
        let told = "the session was ended by its client";
        let ended = self.end_if_here(to, EndReason::Deleted, told).await;
        ended.then_some(()).ok_or(GatewayError::NotFound)
    }
}
