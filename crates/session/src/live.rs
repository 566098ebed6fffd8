//! A session that this node has in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use shoal_ports::{
    Epoch, GatewayError, LogError, Principal, SessionId, SessionTransport, StoreError,
};
use shoal_protocol::Revision;

use crate::actor::{Reply, SessionMsg, Shared};
use crate::cell::SessionCell;
use crate::config::SessionConfig;
use crate::sessions::About;
use crate::state::{CallSlot, Effect, Input};
use crate::stored::Share;
use crate::streams::Streams;

/// A session that this node has in memory; it has an actor while requests come.
pub(crate) struct LiveSession {
    pub(crate) id: SessionId,
    pub(crate) principal: Principal,
    pub(crate) transport: SessionTransport,
    /// When it was opened, in milliseconds since 1970, if that is known.
    pub(crate) opened_at: Option<u64>,
    pub(crate) epoch: Epoch,
    pub(crate) streams: Arc<Streams>,
    /// What it has stored.
    pub(crate) share: Arc<Share>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) actor: Arc<SessionCell>,
    /// Inputs that wait to be applied.
    pub(crate) waiting: Arc<AtomicUsize>,
    /// When the session was last used, in milliseconds of the node's clock.
    pub(crate) last_used: AtomicU64,
    /// When its record was last stored, likewise.
    pub(crate) last_saved: AtomicU64,
    /// Held by who changes more than calls (the record, subscriptions), from the message to the end of what follows from
    /// it: in a task that ends, so that no half of it is left when nobody waits, and in one order.
    pub(crate) changing: Arc<tokio::sync::Mutex<()>>,
    /// One save at a time, so that the newest record is the last one stored.
    pub(crate) saving: tokio::sync::Mutex<()>,
}

/// Why an input was not applied.
pub(crate) enum Unapplied {
    /// The session is gone from here, and must be found anew.
    Closed,
    /// Too many inputs wait.
    Full,
}

impl LiveSession {
    /// Applies an input to the session.
    ///
    /// If the future is dropped, the input may or may not be applied. A call that was admitted has ended then; for
    /// whatever else changes the session, see [`changing`](Self::changing).
    pub(crate) async fn apply(
        &self,
        input: Input,
        config: &SessionConfig,
    ) -> Result<Effect, Unapplied> {
        let place = MailboxPlace::take(&self.waiting, config.mailbox).ok_or(Unapplied::Full)?;
        self.ask_for(input, Some(place)).await
    }

    /// Applies an input of the node's own, however much waits: the node has one at a time, and what it has
    /// to tell must not be lost to a client that sends too much.
    pub(crate) async fn apply_own(&self, input: Input) -> Result<Effect, Unapplied> {
        self.ask_for(input, None).await
    }

    async fn ask_for(
        &self,
        input: Input,
        place: Option<MailboxPlace>,
    ) -> Result<Effect, Unapplied> {
        match self
            .ask(|reply| SessionMsg::Apply(input, place, reply))
            .await
        {
            Some(Reply::Effect(effect)) => Ok(effect),
            Some(Reply::Closed) | None => Err(Unapplied::Closed),
        }
    }

    /// Applies an input whose effect is nothing to act on. Not bounded by the mailbox limit: what is
    /// noted only ever lightens the session.
    pub(crate) fn note(&self, input: Input) {
        // A session that is gone needs no notes.
        self.actor.send(SessionMsg::Note(input));
    }

    /// Much has ended that the state machine does not know of: it learns of it with whatever it is told next, rather
    /// than being woken for every call's end.
    pub(crate) fn tidy(&self) {
        // A session that is gone needs no notes.
        self.actor.send(SessionMsg::Tidy);
    }

    /// Another node owns the session, or nobody knows: nothing is written here any more.
    pub(crate) fn lose(&self) {
        self.streams.lose();
    }

    /// Whether this node has lost the session.
    pub(crate) fn is_lost(&self) -> bool {
        self.streams.is_lost()
    }

    /// Returns when the session ends, or this node loses it. Cancellation safe.
    pub(crate) async fn until_over(&self) {
        self.streams.until_over().await;
    }

    pub(crate) async fn snapshot(&self) -> Option<Bytes> {
        self.ask(SessionMsg::Snapshot).await
    }

    pub(crate) async fn passivate(&self) -> Option<Bytes> {
        self.ask(SessionMsg::Passivate).await.flatten()
    }

    pub(crate) async fn end(&self) -> Vec<Arc<CallSlot>> {
        self.ask(SessionMsg::End).await.unwrap_or_default()
    }

    async fn ask<T: Send + 'static>(
        &self,
        message: impl FnOnce(ractor::RpcReplyPort<T>) -> SessionMsg,
    ) -> Option<T> {
        let (reply, replied) = ractor::concurrency::oneshot();
        match self.actor.send(message(reply.into())) {
            true => replied.await.ok(),
            false => None,
        }
    }

    /// What operators see of it.
    pub(crate) fn about(&self) -> About {
        About {
            client: self.shared.client.get().cloned(),
            revision: self.revision(),
            transport: self.transport,
            opened_at: self.opened_at,
        }
    }

    /// The negotiated revision.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.shared.revision.get().copied()
    }

    /// Whether its streams open with a priming event.
    pub(crate) fn primes_streams(&self) -> bool {
        self.revision().is_some_and(Revision::primes_streams)
    }
}

/// A place in a bounded mailbox, for as long as an input lies there: also when nobody waits for it any more.
pub(crate) struct MailboxPlace(Arc<AtomicUsize>);

impl MailboxPlace {
    fn take(waiting: &Arc<AtomicUsize>, limit: usize) -> Option<Self> {
        let place = Self(waiting.clone());
        // On refusal `place` is dropped, which takes the count back.
        (waiting.fetch_add(1, Ordering::Relaxed) < limit).then_some(place)
    }
}

impl Drop for MailboxPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a client is told when the store fails.
pub(crate) fn store_failed(error: &StoreError, config: &SessionConfig) -> GatewayError {
    let retry_after = config.retry_after;
    match error {
        StoreError::NotFound => GatewayError::NotFound,
        StoreError::Full(limit) => GatewayError::Overloaded {
            reason: (*limit).to_owned(),
            retry_after,
        },
        StoreError::Stale | StoreError::Held => GatewayError::Moved { owner: None },
        StoreError::Forgotten | StoreError::Unavailable(_) | StoreError::Away(_) => {
            GatewayError::Unavailable {
                reason: error.to_string(),
                retry_after,
            }
        }
    }
}

/// What a client is told when the log fails.
pub(crate) fn log_failed(error: &LogError, config: &SessionConfig) -> GatewayError {
    match error {
        LogError::Gone(reason) => GatewayError::HistoryGone((*reason).into()),
        LogError::Store(error) => store_failed(error, config),
    }
}
