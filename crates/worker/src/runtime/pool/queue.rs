//! The calls that wait for an actor: one principal's after the other's, in turn.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use shoal_ports::Principal;
use tokio::time::Instant;

use super::pace::Pace;
use super::shares::Shares;
use super::work::BoxedCall;

/// How often calls are looked for that have waited too long. Those are late by half of it in the middle, which
/// nobody notices after seconds.
pub(super) const SWEEP: Duration = Duration::from_millis(100);

/// A call that waits.
pub(super) struct QueuedCall {
    work: BoxedCall,
    until: Instant,
}

impl QueuedCall {
    /// One that waits for `longest`, and no longer than its deadline.
    pub(super) fn new(work: BoxedCall, longest: Duration) -> Self {
        let until = work.deadline().min(Instant::now() + longest);
        Self { work, until }
    }
}

/// One principal's calls are served as they came; of several principals, each has its turn. Admission bounds it
/// (`admission.rs`, and [`wait`](Self::wait)), which can refuse a call before it comes here.
pub(super) struct Queue {
    /// The calls that can run at once.
    concurrency: usize,
    /// While anybody waits.
    pace: Option<Pace>,
    /// No lane is empty.
    lanes: HashMap<Principal, VecDeque<QueuedCall>>,
    /// Whose turn it is: each principal that has a lane, once.
    turns: VecDeque<Principal>,
    /// Somebody calls [`expire`](Self::expire) every now and then.
    swept: bool,
}

impl Queue {
    /// An empty one in front of so many places.
    pub(super) fn new(concurrency: usize) -> Self {
        Self {
            concurrency,
            pace: None,
            lanes: HashMap::new(),
            turns: VecDeque::new(),
            swept: false,
        }
    }

    /// How long one more call of `principal` would wait, at the pace of those before it. Nothing where nobody waits.
    pub(super) fn wait(&self, principal: &Principal) -> Duration {
        let Some(pace) = &self.pace else {
            return Duration::ZERO;
        };
        let own = self.lanes.get(principal).map_or(0, VecDeque::len);
        // The others have a turn for each of its own.
        let ahead = self.lanes.values().map(|lane| lane.len().min(own + 1));
        pace.wait(ahead.sum(), Instant::now())
    }

    /// Has a call wait; true where the caller has to see to it that the queue is swept from now on.
    pub(super) fn push(&mut self, call: QueuedCall) -> bool {
        self.pace
            .get_or_insert_with(|| Pace::new(Instant::now(), self.concurrency));
        let principal = call.work.principal();
        let lane = match self.lanes.get_mut(principal) {
            Some(lane) => lane,
            None => {
                let principal = principal.clone();
                self.turns.push_back(principal.clone());
                self.lanes.entry(principal).or_default()
            }
        };
        match call.work.continues() {
            // It has been here before, and its client has answered since.
            true => lane.push_front(call),
            false => lane.push_back(call),
        }
        !std::mem::replace(&mut self.swept, true)
    }

    /// The next call of a principal that may have one more run; those before it that have waited too long go to
    /// `expired`.
    pub(super) fn pop(
        &mut self,
        shares: &Shares,
        expired: &mut Vec<BoxedCall>,
    ) -> Option<BoxedCall> {
        if self.turns.is_empty() {
            return None;
        }
        let now = Instant::now();
        for _ in 0..self.turns.len() {
            let principal = self.turns.pop_front()?;
            if !shares.may_run(&principal) {
                self.turns.push_back(principal);
                continue;
            }
            let lane = self.lanes.get_mut(&principal)?;
            let mut next = None;
            while let Some(QueuedCall { work, until }) = lane.pop_front() {
                if until > now {
                    next = Some(work);
                    break;
                }
                expired.push(work);
            }
            match lane.is_empty() {
                true => drop(self.lanes.remove(&principal)),
                false => self.turns.push_back(principal),
            }
            if next.is_some() {
                if let Some(pace) = &mut self.pace {
                    pace.left(now);
                }
                self.forget_pace_if_empty();
                return next;
            }
        }
        self.forget_pace_if_empty();
        None
    }

    /// Forgets the pace when nobody waits any more: the next that do may find others.
    fn forget_pace_if_empty(&mut self) {
        if self.lanes.is_empty() {
            self.pace = None;
        }
    }

    /// Takes out the newest call of whoever has most, to make room for one more call of `principal`, unless that has as
    /// many itself; for one that `continues`, whatever it has.
    pub(super) fn displace(&mut self, principal: &Principal, continues: bool) -> Option<BoxedCall> {
        let own = self.lanes.get(principal).map_or(0, VecDeque::len);
        let (most, lane) = self.lanes.iter_mut().max_by_key(|(_, lane)| lane.len())?;
        if lane.len() <= own + 1 && !continues {
            return None;
        }
        let displaced = lane.pop_back()?.work;
        if lane.is_empty() {
            let most = most.clone();
            self.lanes.remove(&most);
            self.turns.retain(|turn| *turn != most);
        }
        self.forget_pace_if_empty();
        Some(displaced)
    }

    /// Takes those out that have waited too long. One that finds nobody waiting is the last: then nobody sweeps any
    /// more.
    pub(super) fn expire(&mut self) -> Vec<BoxedCall> {
        let now = Instant::now();
        let mut expired = Vec::new();
        for lane in self.lanes.values_mut() {
            for _ in 0..lane.len() {
                match lane.pop_front() {
                    Some(late) if late.until <= now => expired.push(late.work),
                    Some(waits) => lane.push_back(waits),
                    None => break,
                }
            }
        }
        if !expired.is_empty() {
            self.lanes.retain(|_, lane| !lane.is_empty());
            self.turns.retain(|turn| self.lanes.contains_key(turn));
            self.forget_pace_if_empty();
        }
        self.swept = !self.lanes.is_empty();
        expired
    }

    /// Whether the queue goes on being swept.
    pub(super) fn is_swept(&self) -> bool {
        self.swept
    }

    /// Takes all that wait.
    pub(super) fn take(&mut self) -> Vec<BoxedCall> {
        self.turns.clear();
        self.pace = None;
        let taken = std::mem::take(&mut self.lanes).into_values().flatten();
        taken.map(|waiting| waiting.work).collect()
    }
}
