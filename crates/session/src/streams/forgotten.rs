//! Restores data in a store that has lost its newest writes.
//!
//! The owner notices the loss when an append finds fewer events than before, or a write finds an
//! older claim. Streams that finished meanwhile stay lost.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{Append, Claim, LogError, SessionTransport, StoreError};

use super::SessionStreams;
use super::lifecycle::Turn;
use super::tail::Tail;
use crate::actor::record::RecordStep;

impl SessionStreams {
    /// Restores claim, record and open streams. The caller holds the turn of `tail`.
    pub(super) async fn restore(&self, tail: &Tail) -> Result<(), StoreError> {
        let live = self.live.upgrade().ok_or(StoreError::NotFound)?;
        live.write_record(RecordStep::Restore).await?;
        self.restore_stream(tail).await?;
        let others = self.open().into_iter();
        let others: Vec<_> = others
            .filter(|other| other.stream() != tail.stream())
            .collect();
        if !others.is_empty() {
            let streams = live.streams.clone();
            tokio::spawn(async move { streams.restore_all(others).await });
        }
        Ok(())
    }

    /// Restores open streams that the store lacks, because the next owner knows only what the store has. Runs in the
    /// session's actor. Fails only in an outage of the store.
    pub(crate) async fn confirm(&self) -> Result<(), StoreError> {
        for tail in self.open() {
            // Without recent events, this node has not written to the stream.
            if tail.before_recent().is_none() {
                continue;
            }
            let _turn = tail.turn().await;
            let nothing = Append {
                after: tail.last(),
                events: Vec::new(),
                progress: None,
            };
            let found = self.store.log.append(&self.session, self.epoch, nothing);
            let confirmed = match found.await {
                Err(LogError::Store(StoreError::Forgotten)) => self.restore(&tail).await,
                Err(LogError::Store(outage)) if outage.is_outage() => Err(outage),
                _ => Ok(()),
            };
            match confirmed {
                Err(outage) if outage.is_outage() => return Err(outage),
                Err(error) => {
                    tracing::warn!(session = %self.session, %error, "cannot restore a stream's entry in the store");
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Stores the record. Runs in the session's actor, like the next two methods.
    pub(crate) async fn save(&self, record: Bytes) -> Result<(), StoreError> {
        let (directory, life) = (&self.store.directory, self.life());
        let saved = directory.save(&self.session, self.epoch, record.clone(), life);
        match saved.await {
            Err(StoreError::Forgotten) => self.enter_claim(record).await,
            saved => saved,
        }
    }

    pub(crate) async fn release(&self, record: Bytes) -> Result<(), StoreError> {
        let (directory, life) = (&self.store.directory, self.life());
        let release = || directory.release(&self.session, self.epoch, record.clone(), life);
        match release().await {
            Err(StoreError::Forgotten) => {
                self.enter_claim(record.clone()).await?;
                release().await
            }
            released => released,
        }
    }

    /// `Stale` if the session has a newer owner.
    pub(crate) async fn enter_claim(&self, record: Bytes) -> Result<(), StoreError> {
        let claim = Claim {
            epoch: self.epoch,
            record,
        };
        let (directory, life) = (&self.store.directory, self.life());
        let restored = directory.restore(&self.session, claim, &self.owner, life);
        let restored = restored.await;
        match &restored {
            Ok(()) => {
                tracing::warn!(session = %self.session, "the store has lost its newest writes; restored a session's entry");
            }
            Err(StoreError::Stale) => self.lose(),
            Err(_) => {}
        }
        restored
    }

    fn life(&self) -> Duration {
        let live = self.live.upgrade();
        let transport = live.map_or(SessionTransport::Streamable, |live| live.transport);
        self.config.record_life(transport)
    }

    async fn restore_stream(&self, tail: &Tail) -> Result<(), StoreError> {
        let stream = tail.to_open_stream();
        let journal = &self.store.journal;
        journal.restore(&self.session, self.epoch, stream).await
    }

    /// If a stream cannot be restored, its next append restores it.
    async fn restore_all(&self, tails: Vec<Arc<Tail>>) {
        for tail in tails {
            let _turn = tail.turn().await;
            if self.lifecycle.is(Turn::LOST.or(Turn::ENDED)) {
                return;
            }
            let ended = tail.is_finished();
            if !ended && let Err(error) = self.restore_stream(&tail).await {
                tracing::debug!(session = %self.session, %error, "cannot restore a stream's entry in the store");
            }
        }
    }
}
