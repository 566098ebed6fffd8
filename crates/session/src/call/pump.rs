//! Appends a running call's events to its stream's log. Readers get them from there.

use std::sync::Arc;

use bytes::Bytes;
use shoal_ports::{
    CallControl, CallEvent, CallEventKind, CallOutcome, CallProgress, LogError, RunningCall,
    StoreError,
};
use shoal_protocol::{Outcome, RpcError, code, error_response, notification};
use shoal_telemetry::trace::{self, Span, attributes as key, names};

use super::gathering::Gathering;
use super::keeping::answer_state;
use super::{CallDriver, InFlight, lost_worker};
use crate::state::{Effect, Input, withdrawal};
use crate::streams::Tail;

/// How often in a row another reader may take the call's events from this node, which each time asks the store
/// whether it still owns the session.
const MOST_SUPERSEDED: u32 = 8;

impl CallDriver {
    /// Appends the call's events until the call ends. If the session moves, the call runs on, and the next owner
    /// continues after the log's last event.
    pub(super) async fn pump(&self, running: RunningCall, in_flight: &mut InFlight, tail: &Tail) {
        let RunningCall {
            mut events,
            mut control,
            ..
        } = running;
        let mut seen = in_flight.seen;
        let mut superseded = 0;
        loop {
            let mut event = tokio::select! {
                // Biased: events that came before the session's end are passed on.
                biased;
                event = events.next() => event,
                () = in_flight.live.until_over() => {
                    return self.end_with_session(seen, in_flight, tail).await;
                }
            };
            let mut due = Vec::new();
            let mut gathering = Gathering::begin(self.config.streams.buffer);
            let mut taken = false;
            let outcome = loop {
                let Some(CallEvent { sequence, kind }) = event else {
                    if control.is_replaced() && superseded < MOST_SUPERSEDED {
                        superseded += 1;
                        taken = true;
                        break None;
                    }
                    break Some(CallOutcome::Failed(lost_worker()));
                };
                superseded = 0;
                if let CallEventKind::Finished(outcome) = kind {
                    break Some(outcome);
                }
                seen = sequence;
                gathering.took(&kind);
                self.translate(kind, &control, in_flight, tail, seen, &mut due)
                    .await;
                match gathering.next(&mut events).await {
                    Some(more) => event = more,
                    None => break None,
                }
            };
            if let Some(outcome) = outcome {
                return self.finish(due, outcome, seen, in_flight, tail).await;
            }
            match self.append(due, seen, in_flight, tail).await {
                Ok(()) if taken => match self.reclaim(in_flight, seen, None).await {
                    Some(Ok(running)) => {
                        in_flight.slot.started(running.control.clone());
                        (events, control) = (running.events, running.control);
                    }
                    Some(Err(failure)) => {
                        let outcome = CallOutcome::Failed(failure);
                        return self
                            .finish(Vec::new(), outcome, seen, in_flight, tail)
                            .await;
                    }
                    None => return self.end_with_session(seen, in_flight, tail).await,
                },
                Ok(()) => {}
                Err(LogError::Store(StoreError::Stale)) => return,
                Err(error) => {
                    control.cancel(in_flight.live.streams.why_ending());
                    tracing::debug!(session = %in_flight.live.id, %error, "gave up a call");
                    return;
                }
            }
        }
    }

    async fn translate(
        &self,
        kind: CallEventKind,
        control: &Arc<dyn CallControl>,
        in_flight: &InFlight,
        tail: &Tail,
        seen: u64,
        due: &mut Vec<Bytes>,
    ) {
        match kind {
            // A client polls a task, and does not read the messages of its call.
            CallEventKind::Notification { .. } if in_flight.is_task() => {}
            CallEventKind::Notification { method, params } => {
                if !in_flight.passes(&method, params.as_ref()) {
                    return;
                }
                due.push(notification(method.as_str(), params.as_ref()));
            }
            CallEventKind::Ask {
                ask,
                method,
                params,
            } => {
                let mut asking = in_flight.asking(ask, &method);
                let input = Input::Asked {
                    call: in_flight.slot.call(),
                    ask,
                    method,
                    params,
                };
                match in_flight.live.apply(input) {
                    Ok(Effect::Ask(message)) => {
                        in_flight.slot.asks(ask, asking);
                        match in_flight.is_task() {
                            true => in_flight.live.task_changed(),
                            false => due.push(message),
                        }
                    }
                    // The worker repeats the question to the next owner.
                    _ if in_flight.live.is_lost() => asking.record_error("moved"),
                    _ => {
                        asking.record_error("refused");
                        let refused = RpcError::internal(
                            "the session cannot send requests to its client now",
                        );
                        drop(control.answer(ask, Outcome::Error(refused)));
                    }
                }
            }
            CallEventKind::Withdrawn { ask } => {
                let call = in_flight.slot.call();
                in_flight.slot.withdrawn(ask);
                match in_flight.is_task() {
                    true => in_flight.live.task_withdraws(call, ask),
                    false => due.push(withdrawal(call, ask)),
                }
            }
            CallEventKind::State { ask, request } => {
                // If `answer_state` does not answer, the worker repeats the request to the next owner.
                let (live, call) = (&in_flight.live, in_flight.slot.call());
                let _ = answer_state(live, call, control, ask, request).await;
            }
            CallEventKind::CloseStream { retry } => {
                // Earlier events are appended first, because they must reach the client before the connection closes.
                let due = std::mem::take(due);
                if let Err(error) = self.append(due, seen, in_flight, tail).await {
                    tracing::debug!(session = %in_flight.live.id, %error, "cannot append events to the stream");
                }
                if in_flight.live.primes_streams() {
                    tail.close_reader(retry);
                }
            }
            CallEventKind::Finished(_) => {}
        }
    }

    /// Appends events. If the log is full, drops them, so that the call's answer can still be stored.
    async fn append(
        &self,
        due: Vec<Bytes>,
        seen: u64,
        in_flight: &InFlight,
        tail: &Tail,
    ) -> Result<(), LogError> {
        if due.is_empty() {
            return Ok(());
        }
        let progress = CallProgress {
            call: in_flight.plan.call.id,
            seen,
            ended: false,
        };
        let streams = &in_flight.live.streams;
        let _span = appending(in_flight, due.len());
        match streams.append(tail, due, Some(progress)).await {
            Err(LogError::Store(StoreError::Full(limit))) => {
                tracing::warn!(session = %in_flight.live.id, limit, "dropped events of a call");
                Ok(())
            }
            other => other,
        }
    }

    /// Stops and answers the call, unless its session has only moved to another node.
    pub(super) async fn end_with_session(&self, seen: u64, in_flight: &InFlight, tail: &Tail) {
        if !in_flight.live.is_lost() {
            // Cancelled first, because `finish` makes the slot drop its control of the call.
            in_flight.slot.cancel(in_flight.live.streams.why_ending());
            let outcome = session_ended();
            self.finish(Vec::new(), outcome, seen, in_flight, tail)
                .await;
        }
    }

    pub(super) async fn finish(
        &self,
        mut due: Vec<Bytes>,
        outcome: CallOutcome,
        seen: u64,
        in_flight: &InFlight,
        tail: &Tail,
    ) {
        if in_flight.is_task() {
            return Box::pin(self.finish_task(outcome, seen, in_flight, tail)).await;
        }
        let streams = &in_flight.live.streams;
        let end = CallProgress {
            call: in_flight.plan.call.id,
            seen,
            ended: true,
        };
        // Free the id before the client can see the answer.
        in_flight.end();
        due.push(in_flight.answer(outcome));
        let _span = appending(in_flight, due.len());
        let mut written = streams.append(tail, due, Some(end)).await;
        if let Err(LogError::Store(StoreError::Full(limit))) = written {
            let error = RpcError::new(
                code::OVERLOADED,
                format!("the call has ended, but Shoal could not store its result: {limit}"),
            );
            let answer = error_response(in_flight.request(), &error);
            written = streams.append(tail, vec![answer], Some(end)).await;
        }
        match written {
            Ok(()) => {
                if let (true, Some(binding)) = (in_flight.runs_once(), &in_flight.plan.call.binding)
                {
                    self.dispatcher.acknowledge(&binding.worker, end.call);
                }
            }
            Err(LogError::Store(StoreError::Stale)) => {}
            Err(error) => {
                tracing::warn!(session = %in_flight.live.id, request = %in_flight.request(), %error,
                    "could not append an answer");
                streams.abandon(tail);
            }
        }
    }
}

pub(super) fn session_ended() -> CallOutcome {
    CallOutcome::Error(RpcError::new(
        code::GONE,
        "the session ended while the call ran; Shoal told the call to stop",
    ))
}

fn appending(in_flight: &InFlight, events: usize) -> Span {
    trace::client(names::EVENT_LOG_APPEND)
        .parent(in_flight.span.context())
        .start_with(|set| {
            set.set(key::EVENTS, i64::try_from(events).unwrap_or(i64::MAX));
        })
}
