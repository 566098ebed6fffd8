//! Simulates the search for the next owners of a dead node's sessions. The pauses and the
//! rendezvous hashing are the nodes' real code, and Redis has one thread.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt::Write as _;
use std::time::Duration;

use rand::Rng;
use shoal_cluster::rehearsal::{Pauses, SPREAD, look_closely_every, taker};
use shoal_ports::{NodeId, SessionId};

use super::seconds;

const AT_ONCE: usize = 64;
const TRIP: Duration = Duration::from_micros(200);

#[derive(Debug, Clone, Copy)]
pub(super) struct Death {
    pub(super) sessions: usize,
    pub(super) edges: usize,
    pub(super) nodes: usize,
    pub(super) lapse: Duration,
    /// CPU time of Redis for a lookup (`lookup`) and for a claim (`claim`), and of the node for a
    /// claim (`wake`).
    pub(super) lookup: Duration,
    pub(super) claim: Duration,
    pub(super) wake: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taken {
    /// The times from the end of the lease until half, 99 % and all of the sessions had an owner.
    pub(super) half: Duration,
    pub(super) most: Duration,
    pub(super) all: Duration,
    pub(super) lookups: usize,
    /// The load of Redis in its busiest second, in percent.
    pub(super) redis_busy: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The session and the lookup's number. A lookup with an outdated number is void.
    Look(usize, u32),
    Answer(usize),
    Gone(usize),
}

struct Town<'a, R> {
    death: Death,
    rng: &'a mut R,
    steps: BinaryHeap<Reverse<(Duration, u64, Step)>>,
    number: u64,
    pauses: Vec<Pauses>,
    due: Vec<u32>,
    waiting: Vec<bool>,
    asking: Vec<usize>,
    queued: Vec<VecDeque<usize>>,
    redis_free: Duration,
    redis_busy: Vec<Duration>,
    node_free: Vec<Duration>,
    nodes: Vec<NodeId>,
    owned: Vec<Duration>,
    lookups: usize,
}

pub(super) fn take_over(death: Death, rng: &mut impl Rng) -> Taken {
    let mut town = Town {
        death,
        steps: BinaryHeap::new(),
        number: 0,
        pauses: (0..death.sessions).map(|_| Pauses::default()).collect(),
        due: vec![0; death.sessions],
        waiting: vec![false; death.sessions],
        asking: vec![0; death.edges],
        queued: vec![VecDeque::new(); death.edges],
        redis_free: Duration::ZERO,
        redis_busy: Vec::new(),
        node_free: vec![Duration::ZERO; death.nodes],
        nodes: (0..death.nodes)
            .map(|n| NodeId::new(format!("session-{n}")))
            .collect(),
        owned: Vec::with_capacity(death.sessions),
        lookups: 0,
        rng,
    };
    for session in 0..death.sessions {
        town.plan(Duration::ZERO, Step::Look(session, 0));
    }
    let refresh = look_closely_every(death.edges + death.nodes);
    for edge in 0..death.edges {
        let heard = death.lapse + refresh.mul_f64(town.rng.random());
        town.plan(heard, Step::Gone(edge));
    }
    while let Some(Reverse((now, _, step))) = town.steps.pop() {
        match step {
            Step::Look(session, look) if town.due[session] == look => town.look(now, session),
            Step::Look(..) => {}
            Step::Answer(session) => town.answer(now, session),
            Step::Gone(edge) => town.gone(now, edge),
        }
    }
    town.taken()
}

impl<R: Rng> Town<'_, R> {
    fn edge_of(&self, session: usize) -> usize {
        session % self.death.edges
    }

    fn plan(&mut self, at: Duration, step: Step) {
        self.number += 1;
        self.steps.push(Reverse((at, self.number, step)));
    }

    fn look(&mut self, now: Duration, session: usize) {
        self.waiting[session] = false;
        let edge = self.edge_of(session);
        if self.asking[edge] == AT_ONCE {
            self.queued[edge].push_back(session);
        } else {
            self.ask(now, session);
        }
    }

    fn ask(&mut self, now: Duration, session: usize) {
        let edge = self.edge_of(session);
        self.asking[edge] += 1;
        self.lookups += 1;
        let done = self.redis(now, self.death.lookup);
        self.plan(done + TRIP, Step::Answer(session));
    }

    /// Runs after all earlier operations. Returns when the operation ends.
    fn redis(&mut self, now: Duration, takes: Duration) -> Duration {
        let begins = now.max(self.redis_free);
        self.redis_free = begins + takes;
        let second = usize::try_from(begins.as_secs()).expect("a take-over ends within years");
        self.redis_busy
            .resize(self.redis_busy.len().max(second + 1), Duration::ZERO);
        self.redis_busy[second] += takes;
        self.redis_free
    }

    fn answer(&mut self, now: Duration, session: usize) {
        let edge = self.edge_of(session);
        self.asking[edge] -= 1;
        if let Some(next) = self.queued[edge].pop_front() {
            self.ask(now, next);
        }
        if now < self.death.lapse {
            let pause = self.pauses[session].next(self.rng);
            self.waiting[session] = true;
            self.due[session] += 1;
            self.plan(now + pause, Step::Look(session, self.due[session]));
            return;
        }
        let id = SessionId::new(format!("{session:032x}"));
        let node = taker(&id, &self.nodes).expect("a node is left");
        let claimed = self.redis(now, self.death.claim) + TRIP;
        let woken = claimed.max(self.node_free[node]) + self.death.wake;
        self.node_free[node] = woken;
        self.owned.push(woken - self.death.lapse);
    }

    fn gone(&mut self, now: Duration, edge: usize) {
        for session in (edge..self.death.sessions).step_by(self.death.edges) {
            if self.waiting[session] {
                self.due[session] += 1;
                let at = now + SPREAD.mul_f64(self.rng.random());
                self.plan(at, Step::Look(session, self.due[session]));
            }
        }
    }

    fn taken(mut self) -> Taken {
        self.owned.sort_unstable();
        let after = |share: f64| {
            let at = (self.owned.len() as f64 * share) as usize;
            self.owned[at.min(self.owned.len() - 1)]
        };
        let busiest = self.redis_busy.iter().max().copied().unwrap_or_default();
        Taken {
            half: after(0.5),
            most: after(0.99),
            all: after(1.0),
            lookups: self.lookups,
            redis_busy: (busiest.as_secs_f64() * 100.0) as u64,
        }
    }
}

pub(super) fn table(rng: &mut impl Rng) -> String {
    let mut out = String::from(
        "A session node dies; its lease lapses 5 s later; a lookup takes Redis 5 µs, a claim 40 µs of Redis and 100 µs of its node\n\
         sessions waited for  edges  nodes left  lookups  half owned after  99 %     all      Redis' busiest second\n",
    );
    for (sessions, edges, nodes) in [
        (1_000, 2, 2),
        (20_000, 2, 2),
        (20_000, 10, 9),
        (100_000, 10, 9),
        (100_000, 100, 99),
    ] {
        let death = Death {
            sessions,
            edges,
            nodes,
            lapse: Duration::from_secs(5),
            lookup: Duration::from_micros(5),
            claim: Duration::from_micros(40),
            wake: Duration::from_micros(100),
        };
        let taken = take_over(death, rng);
        let _ = writeln!(
            out,
            "{sessions:19}  {edges:5}  {nodes:10}  {:7}  {:>16}  {:>7}  {:>7}  {:19} %",
            taken.lookups,
            seconds(taken.half),
            seconds(taken.most),
            seconds(taken.all),
            taken.redis_busy
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::{Death, take_over};

    const DEATH: Death = Death {
        sessions: 5000,
        edges: 4,
        nodes: 3,
        lapse: Duration::from_secs(5),
        lookup: Duration::from_micros(5),
        claim: Duration::from_micros(40),
        wake: Duration::from_micros(100),
    };

    #[test]
    fn all_sessions_have_an_owner_soon_after_the_lapse_and_a_seed_decides() {
        let taken = take_over(DEATH, &mut StdRng::seed_from_u64(7));
        // Nodes read the list of nodes every 0.1 s. Each list wakes requests and spreads them over 0.1 s.
        assert!(taken.all < Duration::from_millis(600), "{taken:?}");
        assert!(taken.lookups >= 2 * DEATH.sessions, "{taken:?}");
        assert_eq!(taken, take_over(DEATH, &mut StdRng::seed_from_u64(7)));
    }

    #[test]
    fn pauses_keep_those_who_wait_from_asking_again_and_again() {
        let taken = take_over(DEATH, &mut StdRng::seed_from_u64(7));
        // The pauses are at least half of 0.1, 0.2, 0.4, 0.8 and then 1 s. So a request makes at
        // most 13 lookups before the lapse, and two after.
        assert!(taken.lookups <= 15 * DEATH.sessions, "{taken:?}");
    }
}
