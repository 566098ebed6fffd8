//! Turns calls that outlast the hold into journaled streams, in one step of the store. If a call ends before the
//! store confirms the step, its result is still sent as JSON.

use std::collections::VecDeque;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::Either;
use shoal_ports::{
    CallEvent, CallEventKind, CallEvents, CallFailure, CallOutcome, Delivered, DeliveryId,
    GatewayError, RunningCall, not_kept,
};
use shoal_protocol::{Outcome, RpcError};
use shoal_telemetry::metrics::HoldOutcome;
use tokio::sync::oneshot;

use super::hold::{HeldCall, Stage, again, may_be_in_log, moved};
use super::journaled::{WaitingCaller, died};
use super::pump::session_ended;
use super::{CallDriver, InFlight, lost_worker};
use crate::measure;

const KEPT_AHEAD: usize = 64;

/// How long events wait for the store before the result is sent without them, as a multiple of the store timeout.
const WORTH: u32 = 20;

#[derive(Default)]
struct Ahead {
    events: VecDeque<CallEvent>,
    /// The result that the caller got as JSON, and its event's number.
    answered: Option<(CallOutcome, u64)>,
}

impl CallDriver {
    /// `first` is the event that ended the hold, if an event did.
    pub(super) async fn become_stream(
        self: &Arc<Self>,
        call: HeldCall,
        first: Option<CallEvent>,
    ) -> Result<Delivered, GatewayError> {
        let (opened, opening) = oneshot::channel();
        // In its own task, because a stream that was opened must be ended even if the caller leaves.
        let waiting = WaitingCaller::to_go_on(opened);
        tokio::spawn(self.clone().stream(call, first, waiting));
        opening.await.unwrap_or_else(|_| Err(died()))
    }

    pub(super) async fn stream(
        self: Arc<Self>,
        call: HeldCall,
        first: Option<CallEvent>,
        waiting: WaitingCaller,
    ) {
        let HeldCall {
            mut in_flight,
            delivery,
            mut stage,
            ..
        } = call;
        measure::held(in_flight.runs_once(), HoldOutcome::Outlasted);
        let live = in_flight.live.clone();
        let mut ahead = Ahead {
            events: first.into_iter().collect(),
            answered: None,
        };
        let begun = {
            let calls = std::slice::from_ref(&*in_flight);
            let mut begin = pin!(self.begin(&live, calls, delivery, &waiting));
            tokio::select! {
                biased;
                begun = &mut begin => begun,
                () = self.read_ahead(&mut stage, &in_flight, &mut ahead, &waiting) => begin.await,
            }
        };
        if let Some((outcome, seen)) = ahead.answered {
            if let Ok(tail) = begun {
                self.finish(Vec::new(), outcome, seen, &in_flight, &tail)
                    .await;
            }
            return;
        }
        if let Stage::Running(running) = &stage {
            in_flight.started(running);
        }
        let stage = stage.after(ahead.events);
        let tail = match begun {
            Ok(tail) => tail,
            Err(instead) => {
                let held = (in_flight, delivery);
                return self.hold_on(stage, held, instead, &waiting).await;
            }
        };
        if let Some(opened) = waiting.take() {
            let _ = opened.send(Ok(self.read_from(&live, &tail, tail.last())));
        }
        match stage {
            Stage::Running(running) => self.pump(running, &mut in_flight, &tail).await,
            Stage::Starting(starting) => {
                let starting = Some(Either::Right(starting));
                self.run(*in_flight, &tail, starting).await;
            }
        }
    }

    /// If the call ends with a short result before the stream is open, answers the call. If there are earlier events,
    /// the answer waits for the stream, but at most [`WORTH`] store timeouts.
    async fn read_ahead(
        &self,
        stage: &mut Stage,
        in_flight: &InFlight,
        ahead: &mut Ahead,
        waiting: &WaitingCaller,
    ) {
        if let Stage::Starting(starting) = stage {
            *stage = match starting.await {
                Ok(running) => {
                    in_flight.slot.started(running.control.clone());
                    Stage::Running(running)
                }
                Err(failure) => Stage::Starting(Box::pin(ready(Err(failure)))),
            };
        }
        let Stage::Running(running) = stage else {
            return;
        };
        let ends = |event: &CallEvent| matches!(event.kind, CallEventKind::Finished(_));
        let mut waited = false;
        while ahead.events.len() < KEPT_AHEAD && !ahead.events.iter().any(ends) {
            if !ahead.events.is_empty() && !std::mem::replace(&mut waited, true) {
                tokio::time::sleep(self.config.begin_patience * WORTH).await;
            }
            let Some(event) = running.events.next().await else {
                return;
            };
            if let CallEventKind::Finished(outcome) = &event.kind
                && self.is_short(in_flight, outcome)
                && !is_unknown(outcome)
            {
                // Free the id before the client can see the answer.
                in_flight.end();
                waiting.tell(Ok(in_flight.json(outcome.clone())));
                ahead.answered = Some((outcome.clone(), event.sequence));
                return;
            }
            ahead.events.push_back(event);
        }
    }

    /// Without a stream, waits for the result of a run-once call, however long it takes.
    async fn hold_on(
        &self,
        stage: Stage,
        (mut in_flight, delivery): (Box<InFlight>, DeliveryId),
        instead: Result<Delivered, GatewayError>,
        waiting: &WaitingCaller,
    ) {
        let (live, slot) = (in_flight.live.clone(), in_flight.slot.clone());
        if live.streams.is_ending() && !live.is_lost() {
            in_flight.end();
            waiting.tell(Ok(in_flight.json(session_ended())));
            return stage.cancel(live.streams.why_ending()).await;
        }
        if !in_flight.runs_once() || instead.is_ok() {
            if let (Stage::Running(running), Err(_)) = (&stage, &instead) {
                let reason = "no stream could be opened for its events";
                running.control.cancel(reason);
            }
            waiting.tell(instead.map_err(again));
            return;
        }
        let ended = end_of(stage, &mut in_flight);
        let outcome = tokio::select! {
            biased;
            () = live.until_over(), if live.is_lost() => None,
            () = slot.until_wanted() => None,
            outcome = ended => Some(outcome),
        };
        let outcome = match outcome {
            None | Some(CallOutcome::Failed(CallFailure::Superseded { .. })) => {
                waiting.tell(Err(moved()));
                return;
            }
            Some(outcome) => outcome,
        };
        let found = match &outcome {
            CallOutcome::Failed(failure)
                if in_flight.refused.is_some() || may_be_in_log(failure) =>
            {
                self.find_in_log(&live, delivery).await
            }
            _ => Ok(None),
        };
        let denied = match &outcome {
            CallOutcome::Failed(failure) => in_flight.refusal_after(failure),
            _ => None,
        };
        let outcome = denied.unwrap_or(outcome);
        in_flight.end();
        waiting.tell(match found {
            Ok(None) => Ok(in_flight.json(outcome)),
            Ok(Some(beginning)) => self.read_again(&live, beginning).await.map_err(again),
            Err(_) => Err(moved()),
        });
    }
}

fn is_unknown(outcome: &CallOutcome) -> bool {
    matches!(
        outcome,
        CallOutcome::Failed(CallFailure::OutcomeUnknown { .. })
    )
}

impl Stage {
    async fn cancel(self, reason: &str) {
        let running = match self {
            Self::Running(running) => Ok(running),
            Self::Starting(starting) => starting.await,
        };
        if let Ok(running) = running {
            running.control.cancel(reason);
        }
    }

    fn after(self, ahead: VecDeque<CallEvent>) -> Self {
        match self {
            Self::Running(running) if !ahead.is_empty() => {
                let events = futures::stream::iter(ahead).chain(running.events);
                Self::Running(RunningCall {
                    events: CallEvents::from_stream(events),
                    ..running
                })
            }
            stage => stage,
        }
    }
}

async fn end_of(stage: Stage, in_flight: &mut InFlight) -> CallOutcome {
    let mut running = match stage {
        Stage::Running(running) => running,
        Stage::Starting(starting) => match starting.await {
            Ok(running) => running,
            Err(failure) => return CallOutcome::Failed(failure),
        },
    };
    in_flight.started(&running);
    let mut dropped = false;
    loop {
        let Some(event) = running.events.next().await else {
            return CallOutcome::Failed(lost_worker());
        };
        let (ask, refused) = match event.kind {
            CallEventKind::Finished(outcome) => return outcome,
            CallEventKind::State { ask, .. } => (ask, not_kept("the call could not be journaled")),
            CallEventKind::Ask { ask, .. } => {
                let refused = "no stream could be opened for the request";
                (ask, RpcError::internal(refused))
            }
            CallEventKind::Notification { .. } => {
                if !std::mem::replace(&mut dropped, true) {
                    tracing::warn!(session = %in_flight.live.id, call = %in_flight.plan.call.id,
                        "dropped events of a call that could not be journaled");
                }
                continue;
            }
            CallEventKind::CloseStream { .. } | CallEventKind::Withdrawn { .. } => continue,
        };
        drop(running.control.answer(ask, Outcome::Error(refused)));
    }
}
