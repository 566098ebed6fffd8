//! Resumes calls that an earlier owner of the session began.

use std::sync::Arc;

use shoal_ports::{
    Binding, Call, CallFailure, CallOutcome, Caller, JournaledCall, LoggedEvent, MayStart, Repeat,
};
use shoal_protocol::{EventId, Method, PROGRESS_TOKEN, RawJson};
use shoal_telemetry::trace::names;

use super::{CallDriver, InFlight, start};
use crate::live::LiveSession;
use crate::measure;
use crate::sessions::TakingOver;
use crate::state::{Admission, CallSlot};
use crate::streams::Tail;

const LOOKED_BACK: usize = 64;

pub(crate) struct TakenOver {
    pub(crate) journaled: JournaledCall,
    pub(crate) admission: Admission,
    pub(crate) caller: Arc<Caller>,
    pub(crate) slot: Arc<CallSlot>,
}

impl CallDriver {
    pub(crate) async fn resume(
        &self,
        live: Arc<LiveSession>,
        taken_over: TakenOver,
        tail: Arc<Tail>,
        taking_over: Arc<TakingOver>,
    ) {
        let TakenOver {
            journaled,
            admission,
            caller,
            slot,
        } = taken_over;
        let (entry, seen) = (journaled.entry, journaled.seen);
        let longest = self.config.calls.timeout.get();
        let call = match start::read(&entry.start, entry.call, caller, longest) {
            Ok(call) => Call {
                binding: entry.worker.map(|worker| Binding {
                    worker,
                    ledger: entry.ledger,
                }),
                epoch: Some(live.rank()),
                ..call
            },
            Err(error) => {
                tracing::error!(session = %live.id, call = %entry.call, %error,
                    "a journaled call cannot be read");
                return;
            }
        };
        let mut in_flight = InFlight::new(live, admission, call, slot, names::SESSION_RESUME_CALL);
        in_flight.journaled(&self.running);
        in_flight.seen = seen;
        if in_flight.plan.call.repeat == Repeat::Safe && seen > 0 {
            in_flight.reached = self.progress_so_far(&in_flight, &tail).await;
        }
        tail.enter([in_flight.open_call(seen)]);
        let mut resuming = self.dispatcher.resume(in_flight.plan.call.clone(), seen);
        let resumed = tokio::select! {
            resumed = &mut resuming => resumed,
            () = in_flight.live.until_over() => {
                drop(taking_over);
                self.end_with_session(seen, &in_flight, &tail).await;
                if let Ok(running) = resuming.await
                    && !in_flight.live.is_lost()
                {
                    running.control.cancel(in_flight.live.streams.why_ending());
                }
                return;
            }
        };
        let resumed = match resumed {
            Err(CallFailure::Superseded { epoch }) => {
                match self.reclaim(&mut in_flight, seen, Some(epoch)).await {
                    Some(resumed) => resumed,
                    None => return self.end_with_session(seen, &in_flight, &tail).await,
                }
            }
            resumed => resumed,
        };
        measure::attached(&resumed);
        drop(taking_over);
        match resumed {
            Ok(running) => {
                in_flight.started(&running);
                self.pump(running, &mut in_flight, &tail).await;
            }
            Err(failure) => {
                tracing::warn!(session = %in_flight.live.id, call = %in_flight.plan.call.id, %failure,
                    "could not resume a call");
                let is_denied =
                    in_flight.plan.call.may_start == MayStart::No && !in_flight.slot.is_cancelled();
                let failure = match failure {
                    CallFailure::Cancelled if is_denied => {
                        CallFailure::not_executed("an earlier owner of the session refused it")
                    }
                    failure => failure,
                };
                let outcome = CallOutcome::Failed(failure);
                self.finish(Vec::new(), outcome, seen, &in_flight, &tail)
                    .await;
            }
        }
    }

    /// A call that runs again begins at zero, but progress must increase.
    async fn progress_so_far(&self, in_flight: &InFlight, tail: &Tail) -> Option<f64> {
        let token = in_flight.plan.call.progress_token.as_ref()?;
        let last = tail.last();
        let cursor = EventId {
            sequence: last.sequence.saturating_sub(LOOKED_BACK as u64),
            ..last
        };
        let live = &in_flight.live;
        let page = self.store.log.read(&live.id, cursor, LOOKED_BACK).await;
        let page = page
            .inspect_err(|error| {
                tracing::debug!(session = %live.id, %error, "the progress of a call cannot be read");
            })
            .ok()?;
        let said = page.events.iter().rev();
        said.filter_map(|event| progress_under(token, event))
            .reduce(f64::max)
    }
}

fn progress_under(token: &RawJson, event: &LoggedEvent) -> Option<f64> {
    let message = RawJson::parse_text(event.data.clone()).ok()?;
    let named = message.member("method")?.string()?;
    if Method::from_name(&named) != Method::Progress {
        return None;
    }
    let params = message.member("params")?;
    let own = params.member(PROGRESS_TOKEN)? == *token;
    own.then(|| params.member("progress")?.read().ok())
        .flatten()
}
