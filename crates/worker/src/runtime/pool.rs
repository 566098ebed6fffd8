//! The actor pool: one actor for each concurrent call, and a queue.
//!
//! A new call goes to an idle actor in one message, or has its [first turn](turn) in the caller's
//! task and needs an actor only if it waits. A free actor takes its next call from the queue
//! without a message. (ractor's factory needs three messages, a tenth of a small echo call.)

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use ractor::{Actor, ActorRef};
use shoal_ports::{Call, CallFailure, Principal};
use shoal_telemetry::metrics::{self, QueueOutcome, metrics};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::admission::PoolAdmission;
use super::config::PoolConfig;
use super::record::CallRecord;
use crate::backend::Backend;

mod actor;
mod lease;
mod long_turns;
mod pace;
mod queue;
mod shares;
mod turn;
mod work;

pub(super) use lease::ActorLease;
pub(super) use work::{CallTask, PooledCall};

use super::overload::{RETRY_AFTER, waited};
use actor::{Job, PoolActor};
use long_turns::LongTurns;
use queue::{Queue, QueuedCall};
use shares::Shares;
use turn::TurnResult;
use work::BoxedCall;

/// The part of the queue's time limit that an estimated wait may fill. The rest allows for slower
/// calls.
const SURE: f64 = 0.75;

#[derive(Clone)]
pub(super) struct Pool(Arc<PoolInner>);

pub(super) struct PoolInner {
    pub(super) admission: Arc<PoolAdmission>,
    name: Arc<str>,
    backend: Arc<dyn Backend>,
    grace: Duration,
    pub(super) queue_age: Duration,
    long_turns: LongTurns,
    asked: TaskTracker,
    killed: CancellationToken,
    state: Mutex<PoolState>,
}

struct PoolState {
    /// Reuses recent actors first.
    idle: Vec<ActorRef<Job>>,
    /// Calls that waited for a client or backend and need an actor again. They precede calls that have not begun.
    returning: VecDeque<Weak<CallRecord>>,
    /// Calls that have not begun. While actors are idle, these are only calls of principals at their limit.
    queue: Queue,
    shares: Shares,
    all: Vec<ActorRef<Job>>,
    closing: Closing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstTurn {
    Here,
    InActor,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    Draining,
    Stopped,
}

impl Pool {
    /// The returned task ends when all actors have ended.
    pub(super) async fn start(
        config: &PoolConfig,
        backend: Arc<dyn Backend>,
        admission: Arc<PoolAdmission>,
    ) -> (Self, JoinHandle<()>) {
        let shared = Arc::new(PoolInner {
            admission,
            name: Arc::clone(&config.pool),
            backend,
            grace: config.cancel_grace.get(),
            long_turns: LongTurns::default(),
            queue_age: config.queue_age.get(),
            asked: TaskTracker::new(),
            killed: CancellationToken::new(),
            state: Mutex::new(PoolState {
                idle: Vec::new(),
                returning: VecDeque::new(),
                queue: Queue::new(config.concurrency),
                shares: Shares::new(config.concurrency_per_principal),
                all: Vec::new(),
                closing: Closing::No,
            }),
        });
        let mut ends = Vec::new();
        for _ in 0..config.concurrency.max(1) {
            let actor = PoolActor {
                shared: Arc::clone(&shared),
            };
            let (actor, end) = Actor::spawn(None, actor, ())
                .await
                .expect("an actor without a name, whose start cannot fail, starts");
            ends.push(end);
            let mut state = shared.state.lock();
            state.idle.push(actor.clone());
            state.all.push(actor);
        }
        let asked = shared.asked.clone();
        let ended = tokio::spawn(async move {
            join_all(ends).await;
            // Only actors spawn tasks in `asked`, so none can come after the actors' end.
            asked.close();
            asked.wait().await;
        });
        (Self(shared), ended)
    }

    /// The call may have ended on return.
    pub(super) fn dispatch(&self, work: PooledCall, first_turn: FirstTurn) {
        let mut state = self.0.state.lock();
        if state.closing != Closing::No {
            drop(state);
            work.shut_out(&self.0.name);
            return;
        }
        let may_run = state.shares.may_run(work.principal());
        let Some(actor) = may_run.then(|| state.idle.pop()).flatten() else {
            let waiting = QueuedCall::new(Box::new(work), self.0.queue_age);
            if state.queue.push(waiting) {
                tokio::spawn(sweep(Arc::clone(&self.0)));
            }
            return;
        };
        state.shares.take(work.principal());
        drop(state);
        let job = match first_turn {
            FirstTurn::Here => match turn::first(work, &self.0) {
                TurnResult::Ended(call) => {
                    let next = self.0.next(&actor, &call.caller.principal);
                    next.map(Job::Waits)
                }
                TurnResult::Goes(job) => Some(job),
            },
            FirstTurn::InActor => Some(Job::Waits(Box::new(work))),
        };
        if let Some(job) = job {
            // A killed actor returns the job; dropping it ends its call.
            drop(actor.cast(job));
        }
    }

    /// Refuses a call that would probably wait too long, so that the caller can try another worker.
    pub(super) fn admit(&self, call: &Call) -> Result<(), CallFailure> {
        if work::continues(call) {
            return Ok(());
        }
        let principal = &call.caller.principal;
        let wait = {
            let state = self.0.state.lock();
            if !state.idle.is_empty() && state.shares.may_run(principal) {
                return Ok(());
            }
            state.queue.wait(principal)
        };
        let left = call.deadline.saturating_duration_since(Instant::now());
        match wait > self.0.queue_age.min(left).mul_f64(SURE) {
            true => Err(CallFailure::overloaded(
                format!(
                    "it would wait for about {} s in the queue of pool {}, longer than it may",
                    wait.as_secs().max(1),
                    self.0.name
                ),
                RETRY_AFTER,
            )),
            false => Ok(()),
        }
    }

    pub(super) fn displace(&self, call: &Call) {
        let (principal, continues) = (&call.caller.principal, work::continues(call));
        let displaced = self.0.state.lock().queue.displace(principal, continues);
        if let Some(displaced) = displaced {
            displaced.make_room(&self.0.name);
        }
    }

    pub(super) fn drain(&self) {
        self.close(Closing::Draining);
    }

    pub(super) fn stop(&self) {
        self.close(Closing::Stopped);
    }

    pub(super) fn kill(&self) {
        self.stop();
        self.0.killed.cancel();
        for actor in &self.0.state.lock().all {
            actor.kill();
        }
    }

    fn close(&self, how: Closing) {
        let mut state = self.0.state.lock();
        state.closing = how;
        let idle = std::mem::take(&mut state.idle);
        let left = match how {
            Closing::Stopped => state.queue.take(),
            _ => Vec::new(),
        };
        drop(state);
        for actor in idle {
            actor.stop(None);
        }
        // Ends the queued calls.
        drop(left);
    }
}

impl PoolInner {
    async fn run(&self, mut running: CallTask) -> Arc<CallRecord> {
        let call = Arc::clone(&running.call);
        if !poll_fn(|context| running.poll_on_actor(context)).await {
            let killed = self.killed.clone();
            self.asked.spawn(async move {
                tokio::select! {
                    biased;
                    () = killed.cancelled() => {}
                    () = running.future => {}
                }
            });
        }
        call
    }

    /// Lends `actor` to a call that continues, returns a queued call for it, or marks it as idle.
    fn next(self: &Arc<Self>, actor: &ActorRef<Job>, left: &Principal) -> Option<BoxedCall> {
        let mut state = self.state.lock();
        state.shares.leave(left);
        while let Some(call) = state.returning.pop_front() {
            let Some(call) = call.upgrade() else {
                continue;
            };
            let principal = &call.caller.principal;
            state.shares.take(principal);
            drop(state);
            let lent = ActorLease::new(self, actor, principal);
            let Err(declined) = call.resume(Some(lent)) else {
                return None;
            };
            if let Some(lent) = declined {
                lent.forget();
            }
            state = self.state.lock();
            state.shares.leave(principal);
        }
        let mut expired = Vec::new();
        let PoolState { queue, shares, .. } = &mut *state;
        let next = queue.pop(shares, &mut expired);
        match &next {
            Some(work) => shares.take(work.principal()),
            None => match state.closing {
                Closing::No => state.idle.push(actor.clone()),
                Closing::Draining | Closing::Stopped => actor.stop(None),
            },
        }
        drop(state);
        self.shed(expired);
        next
    }

    pub(super) fn resume(self: &Arc<Self>, call: Arc<CallRecord>) {
        let mut state = self.state.lock();
        let lent = match (state.closing, state.idle.pop()) {
            (_, Some(actor)) => {
                let principal = &call.caller.principal;
                state.shares.take(principal);
                Some(ActorLease::new(self, &actor, principal))
            }
            (Closing::No, None) => return state.returning.push_back(Arc::downgrade(&call)),
            (Closing::Draining | Closing::Stopped, None) => None,
        };
        drop(state);
        drop(call.resume(lent));
    }

    pub(super) fn waited_in_backend(&self, admitted: Instant, busy: &str) -> CallFailure {
        if metrics::enabled() {
            let took = admitted.elapsed();
            metrics().pools.waited(took, &self.name, QueueOutcome::Shed);
        }
        waited(&format!("the limit: {busy}"))
    }

    fn shed(&self, expired: Vec<BoxedCall>) {
        for work in expired {
            work.shed(&self.name);
        }
    }
}

async fn sweep(shared: Arc<PoolInner>) {
    let mut waits = true;
    while waits {
        tokio::time::sleep(queue::SWEEP).await;
        let mut state = shared.state.lock();
        let expired = state.queue.expire();
        waits = state.queue.is_swept();
        drop(state);
        shared.shed(expired);
    }
}
