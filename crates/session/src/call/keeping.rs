//! What calls keep in their session: answered by its owner, stored before it is answered.

use std::sync::Arc;

use futures::FutureExt as _;
use shoal_ports::{
    AskId, CallControl, CallEvent, CallEventKind, CallEvents, CallOutcome, Delivered, DeliveryId,
    GatewayError, RunningCall, StateRequest,
};
use shoal_protocol::Outcome;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::journaled::died;
use super::{CallDriver, InFlight, lost_worker};
use crate::state::{Effect, Input};

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
        let Some(outcome) = keep_or_read(in_flight, asked).await else {
            return false;
        };
        let mut arriving = control.answer(ask, outcome);
        // Mostly known at once. Where it is not, somebody has to wait for it, or it is kept to be sent again.
        if (&mut arriving).now_or_never().is_none() {
            tokio::spawn(arriving);
        }
        true
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

/// What is kept is read at once; a change of it is stored first.
async fn keep_or_read(in_flight: &InFlight, asked: StateRequest) -> Option<Outcome> {
    let (live, request) = (&in_flight.live, in_flight.request().clone());
    if live.is_lost() {
        return None;
    }
    if matches!(asked, StateRequest::Set { .. }) {
        return live.keep(request, asked).await;
    }
    match live.apply(Input::StateAsked { request, asked }) {
        Ok(Effect::StateAnswer(outcome)) => Some(outcome),
        // It is being handed over, or has ended, and its calls with it.
        _ => None,
    }
}
