use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use shoal_ports::{
    Claim, Epoch, Evidence, GatewayError, NodeId, RunningStream, SessionId, SessionRef,
    SessionTransport, StoreError,
};
use shoal_protocol::{EventId, RawJson};
use shoal_telemetry::metrics::{ClaimReason, EndReason, HandOverOutcome, metrics};
use tokio::time::{Instant, timeout};

use super::leave_kind::LeaveKind;
use super::patience::Patience;
use super::places::SessionPlace;
use super::{Alone, HandedOver, Node, Passive, SessionFacts, TakingOver};
use crate::call::{TakenOver, brought_by};
use crate::clock::unix_millis;
use crate::here::in_task;
use crate::live::LiveSession;
use crate::measure;
use crate::record::Record;
use crate::state::{Input, SessionMachine, lost_call};
use crate::store_failure::{log_failed, store_failed};

pub(super) const AT_ONCE: usize = 64;
const ASKED_AT_ONCE: usize = 500;
const ASKED_WITHIN: Duration = Duration::from_millis(250);

impl Node {
    /// Wakes and claims a session that this node passivated or that has no owner.
    ///
    /// # Errors
    /// `Moved` if another node owns the session, this node accepts no sessions, or only the hint in the session's id
    /// points here.
    pub(super) async fn wake(
        self: &Arc<Self>,
        to: &SessionRef,
    ) -> Result<Arc<LiveSession>, GatewayError> {
        let alone = self.locks.lock(&to.session).await;
        if let Some(live) = self.live(&to.session) {
            return Ok(live);
        }
        let (node, to) = (self.clone(), to.clone());
        // A claim must complete even if the caller leaves.
        in_task(async move { node.wake_alone(&alone, &to).await }).await
    }

    async fn wake_alone(
        self: &Arc<Self>,
        alone: &Alone,
        to: &SessionRef,
    ) -> Result<Arc<LiveSession>, GatewayError> {
        if let Some(lost) = self.lost(&to.session) {
            self.leave(&lost, LeaveKind::Lost, None).await;
        }
        if self.handing_over.load(Ordering::Acquire) {
            if self.known(to)? {
                self.hand_over_sleeping(alone, to).await?;
            }
            return Err(GatewayError::Moved { owner: None });
        }
        match self.known(to)? {
            true => self.wake_own(alone, to).await,
            false if to.hinted => Err(GatewayError::Moved { owner: None }),
            false => self.take_over(to).await,
        }
    }

    /// Asking counts as use of the session.
    fn known(&self, to: &SessionRef) -> Result<bool, GatewayError> {
        let now = self.now();
        let used = self.table.passive(&to.session, |passive| {
            let own = passive.principal == to.principal;
            if own {
                passive.last_used = now;
            }
            own
        });
        match used {
            Some(false) => Err(GatewayError::NotFound),
            used => Ok(used.is_some()),
        }
    }

    async fn wake_own(
        self: &Arc<Self>,
        alone: &Alone,
        to: &SessionRef,
    ) -> Result<Arc<LiveSession>, GatewayError> {
        let claim = match self.claim(to, ClaimReason::Woken, None).await {
            Ok(claim) => claim,
            Err(error) => {
                let why = match error {
                    GatewayError::Moved { .. } => Some(EndReason::Lost),
                    GatewayError::NotFound => Some(EndReason::Expired),
                    _ => None,
                };
                if let Some(why) = why {
                    self.forget_passive(alone, &to.session, why).await;
                }
                return Err(error);
            }
        };
        let mut record = read(&claim)?;
        let had_ended = self.table.passive(&to.session, |it| {
            it.epoch = claim.epoch;
            it.has_ended
        });
        if had_ended == Some(true) {
            self.settle_lost(to, &claim, &mut record).await?;
        }
        let share = self.stored.share(&to.principal, claim.record.len());
        let updated = self
            .table
            .passive(&to.session, |it| mem::take(&mut it.updated));
        record.updated.extend(updated.unwrap_or_default());
        let mut missing = record.subscriptions.clone();
        missing.retain(|uri| !self.subscribers.has(uri, &to.session));
        record.updated.extend(missing.iter().cloned());
        let state = SessionMachine::new(to.session.clone(), record, self.limits());
        let live = self.make_live(to.session.clone(), state, (claim.epoch, share), missing);
        let passive = self.table.wake(live.clone());
        let passive = passive.ok_or(GatewayError::Moved { owner: None })?;
        for uri in passive.updated {
            let params = RawJson::of(&serde_json::json!({ "uri": uri }));
            let updated = Input::ResourceUpdated { uri, params };
            // Cannot fail, because the lock `alone` keeps the session from falling asleep.
            let _ = self.tell(&live, updated).await;
        }
        Ok(live)
    }

    /// Fails a task whose record has no end: only ended tasks are passivated, so the store has lost writes. The
    /// failure is stored first, because otherwise the next owner could resume the call.
    async fn settle_lost(
        &self,
        to: &SessionRef,
        claim: &Claim,
        record: &mut Record,
    ) -> Result<(), GatewayError> {
        let Some(task) = record.task.as_mut().filter(|task| task.end.is_none()) else {
            return Ok(());
        };
        (task.end, task.ended_at) = (Some(lost_call()), unix_millis());
        let directory = &self.driver.store.directory;
        let life = self.config.record_life(record.transport);
        let saved = directory.save(&to.session, claim.epoch, record.to_bytes(), life);
        saved
            .await
            .map_err(|error| store_failed(&error, &self.config))
    }

    async fn hand_over_sleeping(&self, alone: &Alone, to: &SessionRef) -> Result<(), GatewayError> {
        let transport = self.table.passive(&to.session, |it| it.about.transport);
        let transport = transport.ok_or(GatewayError::Moved { owner: None })?;
        let claim = self.claim(to, ClaimReason::HandedOver, None).await?;
        let directory = &self.driver.store.directory;
        let released = directory
            .release(
                &to.session,
                claim.epoch,
                claim.record,
                self.config.record_life(transport),
            )
            .await;
        metrics().sessions.handed_over(match released {
            Ok(()) => HandOverOutcome::Released,
            Err(_) => HandOverOutcome::Failed,
        });
        released.map_err(|error| store_failed(&error, &self.config))?;
        self.drop_passive(alone, &to.session).await;
        self.moves.handed_over.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn take_over(
        self: &Arc<Self>,
        to: &SessionRef,
    ) -> Result<Arc<LiveSession>, GatewayError> {
        let directory = &self.driver.store.directory;
        let placed = directory.lookup(&to.session).await;
        let placed = placed.map_err(|error| store_failed(&error, &self.config))?;
        let placed = placed
            .filter(|placed| placed.principal == to.principal)
            .ok_or(GatewayError::NotFound)?;
        let evidence = match placed.owner.filter(|owner| *owner != self.id) {
            Some(owner) => Some(self.evidence_against(owner).await?),
            None => None,
        };
        let mut taking_over = TakingOver::begin(to);
        let failed = |error: &GatewayError| taking_over.failed(error);
        let place = self.places.take_over(&to.principal);
        let place = place.inspect_err(failed)?;
        let entered = self.claim_and_enter(to, place, evidence.as_ref(), &mut taking_over);
        match entered.await {
            Ok((live, calls)) => {
                self.moves.taken_over.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(session = %live.id, epoch = live.epoch.0, "took a session over");
                self.resume_all(&live, calls, taking_over);
                if live.transport == SessionTransport::Task {
                    live.task_changed();
                }
                Ok(live)
            }
            Err(error) => {
                taking_over.failed(&error);
                Err(error)
            }
        }
    }

    /// Fails with `Moved` if no evidence shows that the owner is gone.
    async fn evidence_against(&self, owner: NodeId) -> Result<Evidence, GatewayError> {
        let evidence = match self.liveness.get() {
            Some(liveness) => liveness.evidence_against(&owner).await,
            None => None,
        };
        evidence.ok_or(GatewayError::Moved { owner: Some(owner) })
    }

    /// Asks the store for the owner. Callers do so if this node's lease is uncertain.
    ///
    /// # Errors
    /// `Moved` if another node owns the session; `Unavailable` for a task without the store.
    pub(super) async fn make_certain(&self, live: &LiveSession) -> Result<(), GatewayError> {
        let asked = timeout(ASKED_WITHIN, self.driver.check_ownership(live)).await;
        match asked {
            Ok(Ok(())) => Ok(()),
            Ok(Err(moved @ GatewayError::Moved { .. })) => Err(moved),
            Ok(Err(error)) if live.transport == SessionTransport::Task => Err(error),
            Err(_) if live.transport == SessionTransport::Task => Err(GatewayError::Unavailable {
                reason: "the store does not name the task's owner".to_owned(),
                retry_after: self.config.calls.retry_after.get(),
            }),
            _ => Ok(()),
        }
    }

    async fn claim_and_enter(
        self: &Arc<Self>,
        to: &SessionRef,
        place: SessionPlace,
        evidence: Option<&Evidence>,
        taking_over: &mut TakingOver,
    ) -> Result<(Arc<LiveSession>, TakenOverCalls), GatewayError> {
        let why = match evidence {
            Some(_) => ClaimReason::Evidence,
            None => ClaimReason::TakenOver,
        };
        let claim = self.claim(to, why, evidence).await?;
        let mut record = read(&claim)?;
        record.updated.extend(record.subscriptions.iter().cloned());
        let subscriptions = record.subscriptions.clone();
        let running = self.driver.store.journal.running(&to.session, claim.epoch);
        let running = running.await;
        let running = running.map_err(|error| log_failed(&error, &self.config))?;
        if taking_over.is_traced() {
            let calls = running.iter().flat_map(|stream| &stream.calls);
            let brought = calls.filter_map(|call| brought_by(&call.entry.start));
            brought.for_each(|brought| taking_over.found(&brought));
        }
        let mut state = SessionMachine::new(to.session.clone(), record, self.limits());
        let calls = enter(&mut state, running);
        let share = self.stored.share(&to.principal, claim.record.len());
        let owned = (claim.epoch, share);
        let live = self.make_live(to.session.clone(), state, owned, subscriptions);
        self.table.enter(live.clone(), place);
        Ok((live, calls))
    }

    fn resume_all(
        &self,
        live: &Arc<LiveSession>,
        calls: TakenOverCalls,
        mut taking_over: TakingOver,
    ) {
        let running = calls.iter().map(|(_, calls)| calls.len()).sum();
        taking_over.done(live.epoch.0, running);
        let taking_over = Arc::new(taking_over);
        for (last, calls) in calls {
            let delivery = match &calls[..] {
                [call] => Some(call.journaled.entry.call.into()),
                _ => None,
            };
            let tail = live.streams.begin(last, delivery);
            for call in calls {
                self.moves.resumed_calls.fetch_add(1, Ordering::Relaxed);
                let (driver, live, tail) = (self.driver.clone(), live.clone(), tail.clone());
                let taking_over = taking_over.clone();
                tokio::spawn(async move { driver.resume(live, call, tail, taking_over).await });
            }
        }
    }

    async fn claim(
        &self,
        to: &SessionRef,
        why: ClaimReason,
        evidence: Option<&Evidence>,
    ) -> Result<Claim, GatewayError> {
        let directory = &self.driver.store.directory;
        let claim = match evidence {
            Some(gone) => {
                directory
                    .claim_on_evidence(&to.session, &self.id, gone)
                    .await
            }
            None => directory.claim(&to.session, &self.id).await,
        };
        measure::claimed(why, &claim);
        claim.map_err(|error| store_failed(&error, &self.config))
    }

    pub(super) async fn forget_passive(&self, alone: &Alone, session: &SessionId, why: EndReason) {
        if let Some(about) = self.drop_passive(alone, session).await {
            measure::ended(&about, why);
        }
    }

    async fn drop_passive(&self, _alone: &Alone, session: &SessionId) -> Option<SessionFacts> {
        let passive = self.table.remove_passive(session)?;
        self.unsubscribe_from(session, passive.subscriptions).await;
        Some(passive.about)
    }

    pub(super) async fn clear_all_lost(self: &Arc<Self>) {
        let lost = self.all_live().into_iter().filter(|live| live.is_lost());
        let clearing =
            futures::stream::iter(lost).for_each_concurrent(AT_ONCE, |live| async move {
                let alone = self.locks.lock(&live.id).await;
                self.leave(&live, LeaveKind::Lost, Some(alone)).await;
            });
        clearing.await;
    }

    pub(crate) async fn hand_over(&self) -> HandedOver {
        self.handing_over.store(true, Ordering::Release);
        let patience = &Arc::new(Patience::new(self.config.begin_patience));
        let handing_over = futures::stream::iter(self.all_live())
            .map(|live| async move {
                let began = Instant::now();
                let alone = self.locks.lock(&live.id).await;
                let here = self.live(&live.id).is_some_and(|it| it.epoch == live.epoch);
                let leave = LeaveKind::HandOver(patience.clone());
                let handed_over = here && self.leave(&live, leave, Some(alone)).await;
                handed_over.then(|| began.elapsed())
            })
            .buffer_unordered(AT_ONCE)
            .filter_map(std::future::ready);
        let mut times: Vec<Duration> = handing_over.collect().await;
        times.sort_unstable();
        HandedOver {
            sessions: times.len(),
            median: times.get(times.len() / 2).copied().unwrap_or_default(),
            longest: times.last().copied().unwrap_or_default(),
        }
    }

    pub(crate) async fn revalidate(self: &Arc<Self>) -> Result<(), StoreError> {
        let live = self.all_live();
        for some in live.chunks(ASKED_AT_ONCE) {
            let asked: Vec<_> = some
                .iter()
                .map(|live| (live.id.clone(), live.epoch))
                .collect();
            let held = self.driver.store.directory.held(&asked).await?;
            for (live, held) in some.iter().zip(held) {
                if !held {
                    tracing::info!(session = %live.id, "another node has claimed a session");
                    live.lose();
                }
            }
        }
        let asleep = |id: &SessionId, it: &Passive| Some((id.clone(), it.epoch));
        for some in self.table.of_passive(asleep).chunks(ASKED_AT_ONCE) {
            let held = self.driver.store.directory.held(some).await?;
            let asked = some.iter().cloned().zip(held);
            let lost = asked.filter_map(|(session, held)| (!held).then_some(session));
            let forgetting = futures::stream::iter(lost)
                .for_each_concurrent(AT_ONCE, |lost| self.forget_if_asleep(lost));
            forgetting.await;
        }
        self.clear_all_lost().await;
        Ok(())
    }

    async fn forget_if_asleep(self: &Arc<Self>, (session, epoch): (SessionId, Epoch)) {
        let alone = self.locks.lock(&session).await;
        let node = self.clone();
        let _ = in_task(async move {
            if node.table.passive(&session, |it| it.epoch) == Some(epoch) {
                let lost = EndReason::Lost;
                node.forget_passive(&alone, &session, lost).await;
            }
            Ok(())
        })
        .await;
    }
}

type TakenOverCalls = Vec<(EventId, Vec<TakenOver>)>;

fn enter(state: &mut SessionMachine, running: Vec<RunningStream>) -> TakenOverCalls {
    let enter_one = |state: &mut SessionMachine, journaled: shoal_ports::JournaledCall| {
        let entry = &journaled.entry;
        let (admission, slot) = state.take_over(entry.request.clone(), entry.call);
        TakenOver {
            caller: state.caller().clone(),
            journaled,
            admission,
            slot,
        }
    };
    running
        .into_iter()
        .map(|stream| {
            let calls = stream.calls.into_iter();
            (
                stream.last,
                calls.map(|call| enter_one(state, call)).collect(),
            )
        })
        .collect()
}

fn read(claim: &Claim) -> Result<Record, GatewayError> {
    Record::from_bytes(&claim.record).map_err(|error| {
        GatewayError::Internal(format!("the session's record cannot be read: {error}"))
    })
}
