//! Looking for sessions that nobody uses.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shoal_ports::SessionRef;
use shoal_telemetry::metrics::EndReason;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::Node;
use super::leaving::Leave;
use crate::actor::record::Step;

/// Puts idle sessions to sleep and ends those idle for too long, until `stop` fires.
pub(super) async fn sweep(node: Arc<Node>, stop: CancellationToken) {
    let mut every = tokio::time::interval(node.config.sweep_every);
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
        let now = self.now();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let idle = |transport| millis(self.config.idle_of(transport));
        let (passivate, retention) = (
            millis(self.config.passivate_after),
            millis(self.config.retention),
        );
        for live in self.all_live() {
            let unused = now.saturating_sub(live.last_used.load(Ordering::Relaxed));
            if unused >= passivate && live.is_idle() {
                let alone = self.wake_lock(&live.id).clone().lock_owned().await;
                if self.leave(&live, Leave::Passivate, Some(alone)).await {
                    continue;
                }
            }
            if unused >= retention && live.streams.is_quiet() {
                live.share.set_log(0);
            }
            // In use without requests (a stream, a long call): the record must not expire meanwhile.
            let unsaved = now.saturating_sub(live.last_saved.load(Ordering::Relaxed));
            if unsaved >= idle(live.transport) / 2
                && let Err(error) = live.write_record(Step::Save).await
            {
                tracing::warn!(session = %live.id, %error, "could not touch a session's record");
            }
        }
        for passive in &self.passive {
            if now.saturating_sub(passive.last_used) >= retention {
                passive.share.set_log(0);
            }
        }
        let expired: Vec<_> = self
            .passive
            .iter()
            .filter(|passive| {
                now.saturating_sub(passive.last_used) >= idle(passive.about.transport)
            })
            .map(|passive| SessionRef::new(passive.key().clone(), passive.principal.clone()))
            .collect();
        for session in expired {
            self.expire(&session).await;
        }
        if let Err(error) = self.driver.store.directory.sweep().await {
            tracing::warn!(%error, "could not sweep the store");
        }
    }

    async fn expire(self: &Arc<Self>, session: &SessionRef) {
        match self.wake(session).await {
            Ok(_) => {
                let told = "the session was idle for too long";
                self.end_if_here(session, EndReason::Expired, told).await;
            }
            // The store has let go of it, or another node has it, or nobody can tell: it is not kept here.
            Err(_) => {
                self.forget_passive(&session.session, EndReason::Expired)
                    .await;
            }
        }
    }
}
