//! What calls keep in their session: answered by its owner, stored before it is answered.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use shoal_ports::{
    AskId, CallControl, CallEvent, CallEventKind, CallEvents, CallOutcome, Delivered, DeliveryId,
    GatewayError, RunningCall, StateRequest, StoreError, not_kept, perhaps_kept,
};
use shoal_protocol::Outcome;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use super::journaled::{AGAIN, died};
use super::{CallDriver, InFlight, lost_worker};
use crate::live::{LiveSession, Unapplied};
use crate::state::{Effect, Input, kept};

/// What a call that is safe to repeat does first.
pub(super) enum First {
    /// It ends.
    End(CallOutcome),
    /// It asks for what its session keeps.
    State(AskId, StateRequest),
    /// It speaks to its client.
    Speaks(CallEvent),
    /// Nothing in time.
    Silence,
}

impl First {
    /// Waits for the next thing that a call does.
    pub(super) async fn of(events: &mut CallEvents, until: Instant) -> Self {
        let Ok(event) = timeout_at(until, events.next()).await else {
            return Self::Silence;
        };
        let Some(CallEvent { sequence, kind }) = event else {
            return Self::End(CallOutcome::Failed(lost_worker()));
        };
        match kind {
            CallEventKind::Finished(outcome) => Self::End(outcome),
            CallEventKind::State { ask, request } => Self::State(ask, request),
            kind => Self::Speaks(CallEvent { sequence, kind }),
        }
    }
}

impl CallDriver {
    /// Answers a call that reads or writes what its session keeps; `false` when that is left to the session's
    /// next owner, who will read the request again.
    pub(super) async fn answer_state(
        &self,
        in_flight: &InFlight,
        control: &Arc<dyn CallControl>,
        ask: AskId,
        asked: StateRequest,
    ) -> bool {
        let Some(outcome) = self.keep_or_read(in_flight, asked).await else {
            return false;
        };
        let mut arriving = control.answer(ask, outcome);
        // Mostly known at once. Where it is not, somebody has to wait for it, or it is kept to be sent again.
        if (&mut arriving).now_or_never().is_none() {
            tokio::spawn(arriving);
        }
        true
    }

    async fn keep_or_read(&self, in_flight: &InFlight, asked: StateRequest) -> Option<Outcome> {
        let live = &in_flight.live;
        // From the decision until it is stored and counts, no other record may be stored.
        let _turn = match asked {
            StateRequest::Set { .. } => Some(live.saving.lock().await),
            StateRequest::Get { .. } | StateRequest::Keys => None,
        };
        if live.is_lost() {
            return None;
        }
        let input = Input::StateAsked {
            request: in_flight.request().clone(),
            asked,
        };
        let (record, change) = match live.apply(input, &self.config).await {
            Ok(Effect::StateAnswer(outcome)) => return Some(outcome),
            Ok(Effect::Keep { record, change }) => (record, change),
            Err(Unapplied::Full) => {
                let full = not_kept("too many messages wait for the session");
                return Some(Outcome::Error(full));
            }
            // It is being handed over, or has ended, and its calls with it.
            Ok(_) | Err(Unapplied::Closed) => return None,
        };
        let bytes = record.len();
        match self.save_surely(live, record).await {
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

    /// Stores a record, with some patience for a store that is away. Once a step was not confirmed, only a
    /// confirmed one tells what is stored.
    async fn save_surely(&self, live: &LiveSession, record: Bytes) -> Result<(), StoreError> {
        let until = Instant::now() + self.config.begin_patience;
        let mut doubt = None;
        loop {
            let saved = live.streams.save(record.clone());
            let error = match saved.await {
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

    /// Goes on with a call that is safe to repeat and asks for what its session keeps. In a task of its own:
    /// the call waits for an answer, whatever becomes of the connection.
    pub(super) async fn carry_keeping(
        self: &Arc<Self>,
        running: RunningCall,
        asked: (AskId, StateRequest),
        in_flight: InFlight,
        delivery: DeliveryId,
        until: Instant,
    ) -> Result<Delivered, GatewayError> {
        let (delivered, delivering) = oneshot::channel();
        let driver = self.clone();
        tokio::spawn(async move {
            let carried = driver.keep_on(running, asked, in_flight, delivery, until);
            // Nobody is left to tell when the connection is gone.
            let _ = delivered.send(carried.await);
        });
        delivering.await.unwrap_or_else(|_| Err(died()))
    }

    async fn keep_on(
        self: &Arc<Self>,
        mut running: RunningCall,
        mut asked: (AskId, StateRequest),
        in_flight: InFlight,
        delivery: DeliveryId,
        until: Instant,
    ) -> Result<Delivered, GatewayError> {
        loop {
            let (ask, request) = asked;
            let control = running.control.clone();
            if !self.answer_state(&in_flight, &control, ask, request).await {
                // No journal leads the next owner to the call; the request is delivered there again.
                control.cancel("its session has moved");
                return Err(GatewayError::Moved { owner: None });
            }
            let first = match First::of(&mut running.events, until).await {
                First::State(ask, request) => {
                    asked = (ask, request);
                    continue;
                }
                First::End(outcome) => return Ok(in_flight.json(outcome)),
                First::Speaks(event) => Some(event),
                First::Silence => None,
            };
            return self
                .become_stream(running, first, in_flight, delivery)
                .await;
        }
    }
}
