use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use shoal_ports::{CallId, StateRequest, StoreError, not_kept, perhaps_kept};
use shoal_protocol::Outcome;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::ActorWork;
use crate::live::LiveSession;
use crate::state::{Effect, Input, kept};
use crate::store_failure::AGAIN;

pub(crate) enum Write {
    Record(RecordStep, oneshot::Sender<Result<(), StoreError>>),
    Keep {
        call: CallId,
        asked: StateRequest,
        reply: oneshot::Sender<Option<Outcome>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordStep {
    Save,
    /// Writes claim and record again, because the store has lost them.
    Restore,
    Release,
    Remove,
}

impl LiveSession {
    /// Has the actor write the record. `Stale` if the session has a newer owner.
    pub(crate) async fn write_record(self: &Arc<Self>, step: RecordStep) -> Result<(), StoreError> {
        let written = self.write(|reply| Write::Record(step, reply)).await;
        written.unwrap_or(Err(StoreError::NotFound))
    }

    /// Stores a change of the tools' state and returns the answer. `None` leaves the request to the
    /// next owner.
    pub(crate) async fn keep(
        self: &Arc<Self>,
        call: CallId,
        asked: StateRequest,
    ) -> Option<Outcome> {
        let keep = |reply| Write::Keep { call, asked, reply };
        self.write(keep).await.ok().flatten()
    }
}

impl ActorWork {
    pub(super) async fn write(&mut self, write: Write) {
        match write {
            Write::Record(step, reply) => {
                let _ = reply.send(self.step(step).await);
            }
            Write::Keep { call, asked, reply } => {
                let _ = reply.send(self.keep(call, asked).await);
            }
        }
    }

    async fn step(&mut self, step: RecordStep) -> Result<(), StoreError> {
        let live = &self.live;
        let Some(record) = live.snapshot().filter(|_| !self.released) else {
            return match step {
                RecordStep::Save => Ok(()),
                _ => Err(StoreError::NotFound),
            };
        };
        match step {
            RecordStep::Save => {
                live.share.set_record(record.len());
                let saved = live.streams.save(record).await;
                if saved == Err(StoreError::Stale) {
                    live.lose();
                }
                saved?;
                live.last_saved.store(self.node.now(), Ordering::Relaxed);
                Ok(())
            }
            RecordStep::Restore => live.streams.enter_claim(record).await,
            RecordStep::Release => {
                let released = live.streams.release(record).await;
                self.released = !released.as_ref().is_err_and(StoreError::is_outage);
                released
            }
            RecordStep::Remove => {
                self.released = true;
                self.remove_surely().await
            }
        }
    }

    async fn keep(&self, call: CallId, asked: StateRequest) -> Option<Outcome> {
        let live = &self.live;
        if self.released || live.is_lost() {
            return None;
        }
        let (record, change) = match live.apply(Input::StateAsked { call, asked }) {
            Ok(Effect::StateAnswer(outcome)) => return Some(outcome),
            Ok(Effect::Keep { record, change }) => (record, change),
            _ => return None,
        };
        let bytes = record.len();
        match self.save_surely(record).await {
            Ok(()) => {
                live.share.set_record(bytes);
                live.note(Input::Kept(change));
                Some(kept())
            }
            Err(StoreError::Stale) => {
                live.lose();
                None
            }
            Err(error @ StoreError::Unavailable(_)) => Some(Outcome::Error(perhaps_kept(error))),
            Err(error) => Some(Outcome::Error(not_kept(error))),
        }
    }

    /// Retries, because a record that stays would bring the session back.
    async fn remove_surely(&self) -> Result<(), StoreError> {
        let live = &self.live;
        let until = Instant::now() + self.node.config.begin_patience;
        loop {
            let directory = &self.node.driver.store.directory;
            match directory.remove(&live.id, live.epoch).await {
                Err(error) if error.is_outage() && Instant::now() < until => sleep(AGAIN).await,
                removed => return removed,
            }
        }
    }

    /// Retries, because after an unconfirmed write only a confirmed one shows what the store has.
    async fn save_surely(&self, record: Bytes) -> Result<(), StoreError> {
        let live = &self.live;
        let until = Instant::now() + self.node.config.begin_patience;
        let mut doubt = None;
        loop {
            let error = match live.streams.save(record.clone()).await {
                Err(error) if error.is_outage() => error,
                settled => return settled,
            };
            if matches!(error, StoreError::Unavailable(_)) {
                doubt = Some(error.clone());
            }
            if Instant::now() >= until || live.is_lost() {
                return Err(doubt.unwrap_or(error));
            }
            sleep(AGAIN).await;
        }
    }
}
