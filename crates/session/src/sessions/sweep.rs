//! Passivates or ends unused sessions, after checking each again under its lock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use shoal_ports::{Epoch, SessionId, StoreError};
use shoal_telemetry::metrics::EndReason;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::leave_kind::LeaveKind;
use super::ownership::AT_ONCE;
use super::{Alone, Node, Passive};
use crate::actor::record::RecordStep;
use crate::here::in_task;
use crate::live::LiveSession;

pub(super) async fn sweep(node: Arc<Node>, stop: CancellationToken) {
    let mut every = tokio::time::interval(node.config.session.sweep_every.get());
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = every.tick() => node.sweep().await,
        }
    }
}

impl Node {
    async fn sweep(self: &Arc<Self>) {
        self.clear_all_lost().await;
        let looking = futures::stream::iter(self.all_live());
        looking
            .for_each_concurrent(AT_ONCE, |live| self.look_after(live))
            .await;
        let expired = self.table.of_passive(|session, passive| {
            if self.unused_for(passive.last_used) >= self.config.streams.retention.get() {
                passive.share.set_log(0);
            }
            self.has_expired(passive).then(|| session.clone())
        });
        futures::stream::iter(expired)
            .for_each_concurrent(AT_ONCE, |session| self.expire(session))
            .await;
        if let Err(error) = self.driver.store.directory.sweep().await {
            tracing::warn!(%error, "cannot remove expired sessions from the store");
        }
    }

    fn unused_for(&self, last_used: u64) -> Duration {
        Duration::from_millis(self.now().saturating_sub(last_used))
    }

    fn is_unused(&self, live: &LiveSession) -> bool {
        let unused = self.unused_for(live.last_used.load(Ordering::Relaxed));
        unused >= self.config.session.passivate_after.get() && live.is_idle()
    }

    fn has_expired(&self, passive: &Passive) -> bool {
        self.unused_for(passive.last_used) >= self.config.idle_of(passive.about.transport)
    }

    /// Stores the record of a used session again before the record expires.
    async fn look_after(&self, live: Arc<LiveSession>) {
        if live.held() > 0 {
            live.last_used.fetch_max(self.now(), Ordering::Relaxed);
        } else if self.is_unused(&live) {
            let alone = self.locks.lock(&live.id).await;
            if self.is_unused(&live) && self.leave(&live, LeaveKind::Passivate, Some(alone)).await {
                return;
            }
        }
        let unused = self.unused_for(live.last_used.load(Ordering::Relaxed));
        if unused >= self.config.streams.retention.get() && live.streams.is_quiet() {
            live.share.set_log(0);
        }
        // Without requests, a stream or a long call may use the session and store nothing.
        let unsaved = self.unused_for(live.last_saved.load(Ordering::Relaxed));
        if unsaved >= self.config.idle_of(live.transport) / 2
            && let Err(error) = live.write_record(RecordStep::Save).await
        {
            tracing::warn!(session = %live.id, %error, "cannot extend the expiry of a session's record");
        }
    }

    async fn expire(self: &Arc<Self>, session: SessionId) {
        let alone = self.locks.lock(&session).await;
        let node = self.clone();
        let _ = in_task(async move {
            let expired = |it: &mut Passive| node.has_expired(it).then_some(it.epoch);
            if let Some(epoch) = node.table.passive(&session, expired).flatten() {
                node.end_passive(&alone, &session, epoch).await;
            }
            Ok(())
        })
        .await;
    }

    async fn end_passive(&self, alone: &Alone, session: &SessionId, epoch: Epoch) {
        let removed = self.driver.store.directory.remove(session, epoch).await;
        let why = match removed {
            Ok(()) | Err(StoreError::NotFound) => EndReason::Expired,
            Err(StoreError::Stale | StoreError::Held) => EndReason::Lost,
            Err(error) => {
                tracing::debug!(%session, %error, "cannot remove the record of a session");
                return;
            }
        };
        self.forget_passive(alone, session, why).await;
        if why == EndReason::Expired {
            if session.is_task() {
                self.task_lists.end(session);
            }
            self.driver.dispatcher.end_session(session).await;
        }
    }
}
