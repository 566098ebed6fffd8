//! The actor pool: one actor for each call that can run at once, and a queue of those that wait for one.
//!
//! A call goes straight to an actor that has nothing to do: one message. Or it has its [first turn](turn) where it comes
//! from, on that actor's place, and goes to the actor when it has to wait: one message, or none. An actor that ends a
//! call takes the next from the queue by itself: none. (ractor's factory does the same with three messages through an
//! actor of its own, which was a tenth of the instructions of a small echo call in one process.)

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

use super::admission::Admission;
use super::config::PoolConfig;
use super::record::CallRecord;
use crate::backend::Backend;

mod actor;
mod lease;
mod pace;
mod queue;
mod shares;
mod turn;
mod work;

pub(super) use lease::ActorLease;
pub(super) use work::{CallTask, PooledCall};

use actor::{Job, PoolActor};
use queue::{Queue, QueuedCall};
use shares::Shares;
use turn::{LongTurns, Turn};
use work::BoxedCall;

/// When an overloaded pool may be tried again. A pool that is full now is seldom empty sooner, and
/// clients that come back in the same second would only be refused again.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The part of the time that a call may wait within which it has to have its turn by the pace of those before it. The rest
/// is for calls that take longer than those.
const SURE: f64 = 0.75;

/// The pool's mailbox. A cheap handle.
#[derive(Clone)]
pub(super) struct Pool(Arc<Shared>);

/// What the pool's actors share.
pub(super) struct Shared {
    pub(super) admission: Arc<Admission>,
    name: Arc<str>,
    backend: Arc<dyn Backend>,
    /// How long a call may go on after it was told to stop.
    grace: Duration,
    /// How long a call may wait.
    pub(super) queue_age: Duration,
    long_turns: LongTurns,
    /// The calls that have asked, which no actor runs any more.
    asked: TaskTracker,
    /// Ends those.
    killed: CancellationToken,
    state: Mutex<State>,
}

struct State {
    /// Actors that have nothing to do; the one that had something last is used first.
    idle: Vec<ActorRef<Job>>,
    /// Calls that go on after an answer, before any that has not begun.
    returning: VecDeque<Weak<CallRecord>>,
    /// While there are idle ones, only those wait here whose principals have their share.
    queue: Queue,
    shares: Shares,
    /// Every actor of the pool.
    all: Vec<ActorRef<Job>>,
    closing: Closing,
}

/// Where a call is run until it waits for the first time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstTurn {
    /// In the task that brings it, if an actor is free: for who has nothing else to do meanwhile.
    Here,
    /// In an actor.
    InActor,
}

/// What the pool still does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// It takes calls.
    No,
    /// What was accepted runs, nothing new is taken.
    Draining,
    /// Only what has begun runs.
    Stopped,
}

impl Pool {
    /// Starts the pool's actors; the task ends when all of them have.
    pub(super) async fn start(
        config: &PoolConfig,
        backend: Arc<dyn Backend>,
        admission: Arc<Admission>,
    ) -> (Self, JoinHandle<()>) {
        let shared = Arc::new(Shared {
            admission,
            name: Arc::clone(&config.pool),
            backend,
            grace: config.cancel_grace,
            long_turns: LongTurns::default(),
            queue_age: config.queue_age,
            asked: TaskTracker::new(),
            killed: CancellationToken::new(),
            state: Mutex::new(State {
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
            // Only actors add to these.
            asked.close();
            asked.wait().await;
        });
        (Self(shared), ended)
    }

    /// Has the call run, after those that wait; it waits no longer than the pool's limit or its deadline. It may have
    /// ended when this returns.
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
                Turn::Ended(call) => {
                    let next = self.0.next(&actor, &call.caller.principal);
                    next.map(Job::Waits)
                }
                Turn::Goes(job) => Some(job),
            },
            FirstTurn::InActor => Some(Job::Waits(Box::new(work))),
        };
        if let Some(job) = job {
            // An actor that was killed hands the job back, and dropping it ends the call.
            drop(actor.cast(job));
        }
    }

    /// Whether a call would have its turn in time if it waited now.
    ///
    /// # Errors
    /// It would wait longer than it may, at the pace of those before it: refused at once, it can still be tried elsewhere.
    pub(super) fn admit(&self, call: &Call) -> Result<(), CallFailure> {
        if work::continues(call) {
            return Ok(());
        }
        let principal = &call.caller.principal;
        let wait = {
            let state = self.0.state.lock();
            // Those who wait may do so for their shares only, beside actors that have nothing to do.
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

    /// Makes room in a full queue for a call of a principal that has fewer there than another.
    pub(super) fn displace(&self, call: &Call) {
        let (principal, continues) = (&call.caller.principal, work::continues(call));
        let displaced = self.0.state.lock().queue.displace(principal, continues);
        if let Some(displaced) = displaced {
            displaced.make_room(&self.0.name);
        }
    }

    /// Runs what has been accepted and nothing new, then stops the pool.
    pub(super) fn drain(&self) {
        self.close(Closing::Draining);
    }

    /// Ends what waits, and stops the actors once they have ended what they run.
    pub(super) fn stop(&self) {
        self.close(Closing::Stopped);
    }

    /// Stops the actors at once, whatever they run.
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
        // Each ends the call that it is of.
        drop(left);
    }
}

impl Shared {
    /// Runs a call on the actor whose task this is, until it ends or asks its client.
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

    /// What `actor`, which has nothing to do any more for `left`, does next; with nothing it is idle from now on, or lent to
    /// a call that goes on.
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
        let State { queue, shares, .. } = &mut *state;
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

    /// Finds an actor for a call that goes on, now or when one is free.
    pub(super) fn resume(self: &Arc<Self>, call: Arc<CallRecord>) {
        let mut state = self.state.lock();
        let lent = match (state.closing, state.idle.pop()) {
            (_, Some(actor)) => {
                let principal = &call.caller.principal;
                state.shares.take(principal);
                Some(ActorLease::new(self, &actor, principal))
            }
            (Closing::No, None) => return state.returning.push_back(Arc::downgrade(&call)),
            // There may be no actor left to wait for.
            (Closing::Draining | Closing::Stopped, None) => None,
        };
        drop(state);
        // What is declined goes back by itself.
        drop(call.resume(lent));
    }

    /// A call has waited too long for what its backend has too little of.
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

/// Sheds what has waited too long, until nothing waits.
async fn sweep(shared: Arc<Shared>) {
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

pub(super) fn waited(until: &str) -> CallFailure {
    CallFailure::overloaded(format!("it waited in the queue until {until}"), RETRY_AFTER)
}
