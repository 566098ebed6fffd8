//! Runs the call of a task: takes it over, drops its messages, and stores its end in the record of the task's session.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{
    AdoptCall, CallFailure, CallOutcome, CallProgress, GatewayError, SessionRef, StoreError,
};
use shoal_protocol::task::TaskEnd;
use shoal_protocol::{Outcome, RawJson, RpcError, code, response};
use tokio::time::{Instant, sleep};

use super::{CallDriver, InFlight};
use crate::actor::record::RecordStep;
use crate::clock::unix_millis;
use crate::live::LiveSession;
use crate::measure;
use crate::state::{AdmittedCall, Input};
use crate::store_failure::{AGAIN, store_failed};
use crate::streams::Tail;

const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl CallDriver {
    /// Journals the call of a task that a worker runs already, and attaches to it.
    pub(crate) async fn adopt(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        admitted: AdmittedCall,
        adopted: AdoptCall,
        to: &SessionRef,
    ) -> Result<(), GatewayError> {
        let mut in_flight = self.prepare(live, admitted, to);
        let plan = &mut in_flight.plan;
        plan.call.repeat = adopted.repeat;
        plan.route = Some(adopted.route);
        if plan.runs_once() {
            in_flight.slot.run_once();
            // The worker has the call already.
            in_flight.came_bound_to(adopted.binding, true);
        } else if self.dispatcher.takes(&adopted.binding.worker, plan) {
            plan.worker = Some(adopted.binding);
        }
        let carried = self.carry_journaled(vec![in_flight], Vec::new(), adopted.call.into());
        carried.await.map(drop)
    }

    /// Stores the task's end, then closes the call's journal entry. If this node is lost in between, the next owner
    /// finds the end at the worker.
    pub(super) async fn finish_task(
        &self,
        outcome: CallOutcome,
        seen: u64,
        in_flight: &InFlight,
        tail: &Tail,
    ) {
        let live = &in_flight.live;
        // Left first, so that a late answer to the call does not wait until the end is stored.
        in_flight.leave();
        if !live.streams.is_ending() && !self.keep_end(outcome, in_flight).await {
            return;
        }
        let end = CallProgress {
            call: in_flight.plan.call.id,
            seen,
            ended: true,
        };
        let closing = response(in_flight.request(), &RawJson::from_static("{}"));
        match live.streams.append(tail, vec![closing], Some(end)).await {
            Ok(()) => {
                if let (true, Some(binding)) = (in_flight.runs_once(), &in_flight.plan.call.binding)
                {
                    self.dispatcher.acknowledge(&binding.worker, end.call);
                }
            }
            Err(error) => {
                tracing::debug!(session = %live.id, %error, "cannot close a task's journal entry");
                live.streams.abandon(tail);
            }
        }
        in_flight.end();
    }

    /// Returns `false` if the next owner must store the end.
    async fn keep_end(&self, outcome: CallOutcome, in_flight: &InFlight) -> bool {
        let live = &in_flight.live;
        let mut end = end_of(outcome);
        if let TaskEnd::Completed(result) = &end {
            if result.len() > self.config.tasks.result_bytes {
                end = not_kept("it exceeds the limit on a task's result");
            } else if let Err(full) = live.share.check() {
                end = not_kept(&full.to_string());
            }
        }
        live.note(Input::TaskEnded(end, unix_millis()));
        let until = Instant::now() + self.config.streams.store_patience.get();
        let mut pause = AGAIN;
        loop {
            match live.write_record(RecordStep::Save).await {
                Ok(()) => {
                    live.note(Input::TaskStored);
                    live.tell_of_task();
                    live.unlist();
                    measure::task_ended(live);
                    return true;
                }
                Err(StoreError::Stale) => return false,
                Err(StoreError::Full(_)) if !is_small(live) => {
                    live.note(Input::TaskNotKept(not_kept("the store is full")));
                }
                Err(error) => {
                    let over = live.is_lost() || live.streams.is_ending();
                    if over || Instant::now() >= until || error == StoreError::NotFound {
                        let error = store_failed(&error, &self.config);
                        tracing::warn!(session = %live.id, %error, "cannot store the outcome of a task");
                        return !live.is_lost();
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

fn is_small(live: &LiveSession) -> bool {
    let small = live.read(|record| {
        let end = record.task.as_ref().and_then(|task| task.end.as_ref());
        !matches!(end, Some(TaskEnd::Completed(_)))
    });
    small.unwrap_or(true)
}

fn end_of(outcome: CallOutcome) -> TaskEnd {
    if matches!(outcome, CallOutcome::Failed(CallFailure::Cancelled)) {
        return TaskEnd::Cancelled;
    }
    match outcome.into_outcome() {
        Outcome::Result(result) => TaskEnd::Completed(result.detached()),
        Outcome::Error(error) => TaskEnd::Failed(error.to_json()),
    }
}

fn not_kept(why: &str) -> TaskEnd {
    let message = format!("the call has ended, but Shoal could not store its result: {why}");
    TaskEnd::Failed(RpcError::new(code::OVERLOADED, message).to_json())
}
