//! The hold: if a call ends within this time, Shoal answers it as JSON, without journal or log.
//!
//! A call that takes longer or sends an event first becomes a [stream](super::journaled). So does a run-once call that
//! writes session state or has a large result. If this node is lost, the edge repeats the delivery, and the next owner
//! finds a run-once call at its worker.

use std::sync::Arc;

use futures::future::{BoxFuture, Either};
use shoal_ports::{
    CallEvent, CallEventKind, CallFailure, CallOutcome, Delivered, DeliveryId, GatewayError, Retry,
    RunningCall, Started, StateRequest,
};
use shoal_protocol::{EventId, RawJson};
use shoal_telemetry::metrics::HoldOutcome;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::journaled::WaitingCaller;
use super::keeping::answer_state;
use super::{CallDriver, InFlight, lost_worker};
use crate::live::LiveSession;
use crate::measure;
use crate::store_failure::log_failed;

pub(super) enum Stage {
    Starting(BoxFuture<'static, Started>),
    Running(RunningCall),
}

pub(super) struct HeldCall {
    pub(super) in_flight: Box<InFlight>,
    pub(super) delivery: DeliveryId,
    pub(super) stage: Stage,
    /// The task returns `false` to leave the request to the next owner.
    keeping: Option<JoinHandle<bool>>,
}

enum First {
    Refused(CallFailure),
    End(CallOutcome),
    Speaks(CallEvent),
    /// The hold is over, or another reader attached to the call.
    Silence,
    Moved,
}

/// A held call whose caller waits.
///
/// If the caller leaves, the call continues and keeps its request id.
struct Held {
    driver: Arc<CallDriver>,
    call: Option<HeldCall>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let (Some(call), Ok(runtime)) = (self.call.take(), Handle::try_current()) {
            measure::held(call.in_flight.runs_once(), HoldOutcome::Left);
            runtime.spawn(call.go_on(self.driver.clone()));
        }
    }
}

impl CallDriver {
    pub(super) async fn hold(
        self: &Arc<Self>,
        mut in_flight: Box<InFlight>,
        delivery: DeliveryId,
    ) -> Result<Delivered, GatewayError> {
        if in_flight.runs_once() {
            in_flight.plan.bind();
        }
        let (stage, ended) = match self.start(&in_flight) {
            Either::Left(started) => match started.into_inner() {
                Ok(mut running) => match running.events.take_ended() {
                    Some(outcome) if self.is_short(&in_flight, &outcome) => {
                        measure::held(in_flight.runs_once(), HoldOutcome::Answered);
                        return Ok(in_flight.json(outcome));
                    }
                    ended => {
                        in_flight.started(&running);
                        (Stage::Running(running), ended)
                    }
                },
                Err(failure) => {
                    return Box::pin(self.not_started(in_flight, failure, delivery)).await;
                }
            },
            Either::Right(starting) => (Stage::Starting(starting), None),
        };
        let call = HeldCall {
            in_flight,
            delivery,
            stage,
            keeping: None,
        };
        if let Some(outcome) = ended {
            return Box::pin(self.become_stream(call, Some(end(outcome)))).await;
        }
        let driver = self.clone();
        let call = Some(call);
        Box::pin(Held { driver, call }.answer()).await
    }

    pub(super) fn is_short(&self, in_flight: &InFlight, outcome: &CallOutcome) -> bool {
        let bytes = match outcome {
            CallOutcome::Result(result) => result.len(),
            CallOutcome::Error(error) | CallOutcome::Refused(error) => {
                error.message.len() + error.data.as_ref().map_or(0, RawJson::len)
            }
            CallOutcome::Failed(_) => 0,
        };
        !in_flight.runs_once() || bytes <= self.config.streams.hold_bytes
    }

    /// Handles a worker's failure to start the call. For a run-once call it checks the log first, because another
    /// delivery may have begun the call.
    ///
    /// If the worker refused, the call is journaled before the next worker gets it, because a repeated delivery would
    /// ask only the first worker.
    async fn not_started(
        self: &Arc<Self>,
        mut in_flight: Box<InFlight>,
        failure: CallFailure,
        delivery: DeliveryId,
    ) -> Result<Delivered, GatewayError> {
        if let CallFailure::Superseded { epoch } = failure {
            // An earlier delivery may have begun the call. The edge must not get `Moved`.
            self.stands(&mut in_flight, epoch).await.map_err(again)?;
            return Box::pin(self.hold(in_flight, delivery)).await;
        }
        if !in_flight.runs_once() {
            let refused = in_flight.refuse(CallOutcome::Failed(failure));
            return refused.map(Delivered::Json);
        }
        let failure = match failure {
            CallFailure::WorkerAway { reason } if !in_flight.repeated => {
                return Err(GatewayError::WorkerAway { reason });
            }
            CallFailure::WorkerAway { reason } => CallFailure::OutcomeUnknown { reason },
            failure => failure,
        };
        // A worker that refuses an id knows nothing of a later worker, to which an earlier owner may have bound the call.
        let found = match in_flight.refused.is_some() || may_be_in_log(&failure) {
            true => self.find_in_log(&in_flight.live, delivery).await,
            false => Ok(None),
        };
        match found {
            Ok(None) => {}
            Ok(Some(beginning)) => {
                let live = in_flight.live.clone();
                drop(in_flight);
                return self.read_again(&live, beginning).await.map_err(again);
            }
            Err(error) if failure.retry() == Retry::Always => return Err(error),
            Err(error) => {
                return Err(GatewayError::Unreachable {
                    reason: error.to_string(),
                });
            }
        }
        let failure = match failure.retry() {
            Retry::Always if in_flight.slot.is_cancelled() => CallFailure::Cancelled,
            _ => failure,
        };
        if let Some(refused) = in_flight.refusal_after(&failure) {
            return Ok(in_flight.json(refused));
        }
        if failure.retry() == Retry::Always
            && let Some(next) = self.next_worker(&mut in_flight, &mut Vec::new())
        {
            in_flight.bind(next);
            return self
                .carry_journaled(vec![*in_flight], Vec::new(), delivery)
                .await;
        }
        let outcome = CallOutcome::Failed(failure);
        match in_flight.repeated {
            // The edge must not deliver the request again, so it gets the worker's failure as an answer.
            true => Ok(in_flight.json(outcome)),
            false => in_flight.refuse(outcome).map(Delivered::Json),
        }
    }

    /// Looks in memory first, because the store may have lost its newest writes.
    pub(crate) async fn find_in_log(
        &self,
        live: &LiveSession,
        delivery: DeliveryId,
    ) -> Result<Option<EventId>, GatewayError> {
        if let Some(beginning) = live.streams.delivered(delivery) {
            return Ok(Some(beginning));
        }
        let found = self.store.journal.delivered(&live.id, delivery).await;
        found.map_err(|error| log_failed(&error, &self.config))
    }
}

/// Whether the log may have the call: another worker may have got the call, or the call's worker may have dropped the
/// result.
pub(super) fn may_be_in_log(failure: &CallFailure) -> bool {
    failure.retry() == Retry::Always || matches!(failure, CallFailure::OutcomeUnknown { .. })
}

impl Held {
    async fn answer(mut self) -> Result<Delivered, GatewayError> {
        let driver = self.driver.clone();
        let call = self.call.as_mut().expect("it is held until it is answered");
        let first = call.first().await;
        let call = self.call.take().expect("it is held until it is answered");
        match first {
            First::Refused(failure)
            | First::End(CallOutcome::Failed(failure @ CallFailure::OutcomeUnknown { .. })) => {
                let HeldCall {
                    in_flight,
                    delivery,
                    ..
                } = call;
                Box::pin(driver.not_started(in_flight, failure, delivery)).await
            }
            First::End(outcome) if driver.is_short(&call.in_flight, &outcome) => {
                measure::held(call.in_flight.runs_once(), HoldOutcome::Answered);
                Ok(call.in_flight.json(outcome))
            }
            First::End(outcome) => Box::pin(driver.become_stream(call, Some(end(outcome)))).await,
            First::Speaks(event) => Box::pin(driver.become_stream(call, Some(event))).await,
            First::Silence => Box::pin(driver.become_stream(call, None)).await,
            First::Moved => {
                if !call.in_flight.runs_once() {
                    call.cancel("its session has moved");
                }
                Err(moved())
            }
        }
    }
}

impl HeldCall {
    /// Waits for the first event that ends the hold. Cancellation safe.
    async fn first(&mut self) -> First {
        // A repeatable call must have a worker before it is journaled.
        if !self.in_flight.runs_once()
            && let Err(failure) = self.run().await
        {
            return First::Refused(failure);
        }
        let next = timeout(self.in_flight.hold, self.next()).await;
        next.unwrap_or(First::Silence)
    }

    async fn run(&mut self) -> Result<&mut RunningCall, CallFailure> {
        if let Stage::Starting(starting) = &mut self.stage {
            let running = starting.await?;
            self.in_flight.started(&running);
            self.stage = Stage::Running(running);
        }
        match &mut self.stage {
            Stage::Running(running) => Ok(running),
            Stage::Starting(_) => Err(lost_worker()),
        }
    }

    /// Answers requests for session state itself, except a run-once call's first write. Cancellation safe.
    async fn next(&mut self) -> First {
        loop {
            if let Some(keeping) = &mut self.keeping {
                let answered = keeping.await.unwrap_or(false);
                self.keeping = None;
                if !answered {
                    return First::Moved;
                }
            }
            let running = match self.run().await {
                Ok(running) => running,
                Err(failure) => return First::Refused(failure),
            };
            let control = running.control.clone();
            let Some(CallEvent { sequence, kind }) = running.events.next().await else {
                return match control.is_replaced() {
                    true => First::Silence,
                    false => First::End(CallOutcome::Failed(lost_worker())),
                };
            };
            match kind {
                CallEventKind::Finished(outcome) => return First::End(outcome),
                CallEventKind::State { ask, request } if !self.is_first_write(&request) => {
                    let live = self.in_flight.live.clone();
                    let call = self.in_flight.slot.call();
                    self.keeping = Some(tokio::spawn(async move {
                        answer_state(&live, call, &control, ask, request).await
                    }));
                }
                kind => return First::Speaks(CallEvent { sequence, kind }),
            }
        }
    }

    fn is_first_write(&self, request: &StateRequest) -> bool {
        self.in_flight.runs_once() && matches!(request, StateRequest::Set { .. })
    }

    /// Runs a call whose caller left, until the call ends, its session leaves, or its delivery is repeated.
    async fn go_on(mut self, driver: Arc<CallDriver>) {
        let (live, slot) = (self.in_flight.live.clone(), self.in_flight.slot.clone());
        loop {
            let first = tokio::select! {
                biased;
                () = slot.until_wanted() => return,
                () = live.until_over() => return self.end_with_session().await,
                first = self.next() => first,
            };
            match first {
                First::Speaks(CallEvent {
                    kind: kind @ CallEventKind::State { .. },
                    sequence,
                }) => {
                    let event = CallEvent { sequence, kind };
                    return driver
                        .stream(self, Some(event), WaitingCaller::for_nobody())
                        .await;
                }
                First::Speaks(_) => {}
                First::Refused(_) | First::End(_) | First::Silence | First::Moved => return,
            }
        }
    }

    /// Stops the call, unless its session has only moved to another node.
    pub(super) async fn end_with_session(mut self) {
        let live = self.in_flight.live.clone();
        if !live.is_lost()
            && let Ok(running) = self.run().await
        {
            running.control.cancel(live.streams.why_ending());
        }
    }

    fn cancel(&self, reason: &str) {
        if let Stage::Running(running) = &self.stage {
            running.control.cancel(reason);
        }
    }
}

impl InFlight {
    pub(super) fn runs_once(&self) -> bool {
        self.plan.runs_once()
    }
}

/// Replaces `Moved`, from which the edge would conclude that the call was not sent.
pub(super) fn again(error: GatewayError) -> GatewayError {
    match error {
        GatewayError::Moved { .. } => moved(),
        error => error,
    }
}

pub(super) fn moved() -> GatewayError {
    GatewayError::Unreachable {
        reason: "the session has moved".to_owned(),
    }
}

fn end(outcome: CallOutcome) -> CallEvent {
    CallEvent {
        sequence: 1,
        kind: CallEventKind::Finished(outcome),
    }
}
