//! The actor pool: one actor for each call that can run at once, and a queue of those that wait for one.
//!
//! A call goes straight to an actor that has nothing to do: one message. Or it has its [first turn](turn) where it comes
//! from, on that actor's place, and goes to the actor when it has to wait: one message, or none. An actor that ends a
//! call takes the next from the queue by itself: none. (ractor's factory does the same with three messages through an
//! actor of its own, which was a tenth of the instructions of a small echo call in one process.)

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use ractor::{Actor, ActorRef};
use shoal_ports::CallFailure;
use tokio::task::JoinHandle;

use super::config::PoolConfig;
use crate::backend::Backend;

mod actor;
mod queue;
mod turn;
mod work;

pub(super) use work::Work;

use actor::{Job, PoolActor};
use queue::{Queue, Waiting};
use turn::{LongTurns, Turn};
use work::Parcel;

/// When an overloaded pool may be tried again. A pool that is full now is seldom empty sooner, and
/// clients that come back in the same second would only be refused again.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The pool's mailbox. A cheap handle.
#[derive(Clone)]
pub(super) struct Pool(Arc<Shared>);

/// What the pool's actors share.
struct Shared {
    name: Arc<str>,
    backend: Arc<dyn Backend>,
    /// How long a call may go on after it was told to stop.
    grace: Duration,
    /// How long a call may wait.
    queue_age: Duration,
    long_turns: LongTurns,
    state: Mutex<State>,
}

struct State {
    /// Actors that have nothing to do; the one that had something last is used first.
    idle: Vec<ActorRef<Job>>,
    /// Empty while there are idle ones.
    queue: Queue,
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
    ) -> (Self, JoinHandle<()>) {
        let shared = Arc::new(Shared {
            name: Arc::clone(&config.pool),
            backend,
            grace: config.cancel_grace,
            long_turns: LongTurns::default(),
            queue_age: config.queue_age,
            state: Mutex::new(State {
                idle: Vec::new(),
                queue: Queue::default(),
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
        let ended = tokio::spawn(async move {
            join_all(ends).await;
        });
        (Self(shared), ended)
    }

    /// Has the call run, after those that wait; it waits no longer than the pool's limit or its deadline. It may have
    /// ended when this returns.
    pub(super) fn dispatch(&self, work: Work, first_turn: FirstTurn) {
        let mut state = self.0.state.lock();
        if state.closing != Closing::No {
            drop(state);
            work.shut_out(&self.0.name);
            return;
        }
        let Some(actor) = state.idle.pop() else {
            let waiting = Waiting::new(Box::new(work), self.0.queue_age);
            if state.queue.push(waiting) {
                tokio::spawn(sweep(Arc::clone(&self.0)));
            }
            return;
        };
        drop(state);
        let job = match first_turn {
            FirstTurn::Here => match turn::first(work, &self.0) {
                Turn::Ended => self.0.next(&actor).map(Job::Waits),
                Turn::Goes(job) => Some(job),
            },
            FirstTurn::InActor => Some(Job::Waits(Box::new(work))),
        };
        if let Some(job) = job {
            // An actor that was killed hands the job back, and dropping it ends the call.
            drop(actor.cast(job));
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
    /// What `actor`, which has nothing to do, does next; with nothing it is idle from now on.
    fn next(&self, actor: &ActorRef<Job>) -> Option<Parcel> {
        let mut expired = Vec::new();
        let mut state = self.state.lock();
        let next = state.queue.pop(&mut expired);
        if next.is_none() {
            match state.closing {
                Closing::No => state.idle.push(actor.clone()),
                Closing::Draining | Closing::Stopped => actor.stop(None),
            }
        }
        drop(state);
        self.shed(expired);
        next
    }

    fn shed(&self, expired: Vec<Parcel>) {
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

fn waited(until: &str) -> CallFailure {
    CallFailure::Overloaded {
        reason: format!("it waited in the queue until {until}"),
        retry_after: RETRY_AFTER,
    }
}
