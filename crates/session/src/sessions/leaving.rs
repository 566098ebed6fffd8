use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shoal_ports::SessionRef;
use shoal_protocol::StreamId;
use shoal_telemetry::metrics::{EndReason, HandOverOutcome, metrics};
use tokio::time::{Instant, sleep};

use super::leave_kind::LeaveKind;
use super::patience::Patience;
use super::{Alone, Node};
use crate::actor::SessionMsg;
use crate::actor::record::RecordStep;
use crate::live::LiveSession;
use crate::measure;
use crate::store_failure::AGAIN;
use crate::streams::Tail;

const ANSWERED_WITHIN: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(2);

const SHUTTING_DOWN: &str = "the server is shutting down";

impl Node {
    /// Completes even if the future is dropped. Returns whether the session has left.
    pub(super) async fn leave(
        &self,
        live: &Arc<LiveSession>,
        how: LeaveKind,
        alone: Option<Alone>,
    ) -> bool {
        match &how {
            LeaveKind::Passivate | LeaveKind::Lost => {}
            // Stopped at once: events that are not appended yet wait at the workers for the next owner.
            LeaveKind::HandOver(_) => live.streams.stop_writing(),
            LeaveKind::ShutDown(_) => live.streams.begin_end(SHUTTING_DOWN),
            // Set before the calls stop, because their answers contain the reason.
            LeaveKind::End { told, .. } => live.streams.begin_end(told),
        }
        let most = match how {
            // A session with a waiting message is in use, so it stays.
            LeaveKind::Passivate => 0,
            _ => usize::MAX,
        };
        let leave = |reply| SessionMsg::Leave { how, alone, reply };
        live.ask(most, leave).await.unwrap_or_default()
    }

    pub(crate) async fn carry_out_leave(&self, live: &Arc<LiveSession>, how: LeaveKind) -> bool {
        match how {
            LeaveKind::Passivate => self.passivate(live).await,
            LeaveKind::HandOver(patience) => self.hand_over_one(live, &patience).await,
            LeaveKind::ShutDown(patience) => self.shut_down(live, &patience).await,
            LeaveKind::Lost => self.clear_lost(live).await,
            LeaveKind::End { why, told, written } => self.end(live, why, told, &written).await,
        }
    }

    async fn passivate(&self, live: &Arc<LiveSession>) -> bool {
        if !live.passivate() {
            return false;
        }
        match live.write_record(RecordStep::Save).await {
            // The store may have lost writes, which only this node can restore.
            Err(error) if error.is_outage() => {
                tracing::debug!(session = %live.id, %error, "a session stays in memory while the store is unreachable");
                live.stay();
                return false;
            }
            Err(error) => {
                tracing::warn!(session = %live.id, %error, "cannot store a session's record");
            }
            Ok(()) => {}
        }
        self.rebuild_later(live, live.subscriptions());
        live.forget();
        metrics().sessions.passivated();
        true
    }

    async fn hand_over_one(&self, live: &Arc<LiveSession>, patience: &Patience) -> bool {
        live.end();
        let subscriptions = live.subscriptions();
        let released = match self.release(live, patience).await {
            true => HandOverOutcome::Released,
            false => HandOverOutcome::Failed,
        };
        metrics().sessions.handed_over(released);
        // The release comes first, because readers now search for the next owner.
        live.lose();
        self.table.remove_live(live);
        self.unsubscribe_from(&live.id, subscriptions).await;
        live.forget();
        self.moves.handed_over.fetch_add(1, Ordering::Relaxed);
        true
    }

    async fn shut_down(&self, live: &Arc<LiveSession>, patience: &Patience) -> bool {
        for slot in live.end() {
            slot.cancel(SHUTTING_DOWN);
        }
        live.streams.end();
        self.release(live, patience).await;
        self.table.remove_live(live);
        live.forget();
        true
    }

    /// Releases the session once the store has its streams and record. Waits during an outage, because the next owner
    /// knows only what the store has.
    async fn release(&self, live: &Arc<LiveSession>, patience: &Patience) -> bool {
        let release = async || {
            live.streams.confirm().await?;
            live.write_record(RecordStep::Release).await
        };
        let released = loop {
            match release().await {
                Err(error) if error.is_outage() => match patience.lasts() {
                    true => sleep(AGAIN).await,
                    false => break Err(error),
                },
                settled => {
                    patience.answered();
                    break settled;
                }
            }
        };
        if let Err(error) = &released {
            tracing::warn!(session = %live.id, %error, "cannot store a session's record");
        }
        released.is_ok()
    }

    async fn clear_lost(&self, live: &Arc<LiveSession>) -> bool {
        if !self.table.remove_live(live) {
            return false;
        }
        self.moves.lost.fetch_add(1, Ordering::Relaxed);
        measure::ended(&live.about(), EndReason::Lost);
        live.end();
        live.unlist();
        self.unsubscribe_from(&live.id, live.subscriptions()).await;
        live.forget();
        true
    }

    async fn end(
        &self,
        live: &Arc<LiveSession>,
        why: EndReason,
        told: &'static str,
        written: &[Arc<Tail>],
    ) -> bool {
        for slot in live.end() {
            slot.cancel(told);
        }
        answered(live, written).await;
        live.streams.end();
        self.table.remove_live(live);
        measure::ended(&live.about(), why);
        let subscriptions = live.subscriptions();
        if let Err(error) = live.write_record(RecordStep::Remove).await {
            tracing::warn!(session = %live.id, %error, "cannot remove a session's record");
        }
        live.unlist();
        self.unsubscribe_from(&live.id, subscriptions).await;
        live.forget();
        self.driver.dispatcher.end_session(&live.id).await;
        true
    }

    pub(super) async fn end_if_here(
        &self,
        to: &SessionRef,
        why: EndReason,
        told: &'static str,
    ) -> bool {
        let alone = self.locks.lock(&to.session).await;
        match self.live(&to.session) {
            Some(live) => {
                let written = live.streams.open();
                let end = LeaveKind::End { why, told, written };
                self.leave(&live, end, Some(alone)).await
            }
            None => false,
        }
    }
}

async fn answered(live: &LiveSession, written: &[Arc<Tail>]) {
    let until = Instant::now() + ANSWERED_WITHIN;
    let read = |tail: &Arc<Tail>| tail.stream() != StreamId::STANDALONE && tail.is_read();
    while (live.held() > 0 || written.iter().any(read)) && Instant::now() < until {
        sleep(LOOK_EVERY).await;
    }
}
