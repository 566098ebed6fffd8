use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use shoal_ports::Principal;
use tokio::time::Instant;

use super::pace::Pace;
use super::shares::Shares;
use super::work::BoxedCall;

/// How often expired calls are removed. On average, they leave half of this time late.
pub(super) const SWEEP: Duration = Duration::from_millis(100);

pub(super) struct QueuedCall {
    work: BoxedCall,
    until: Instant,
}

impl QueuedCall {
    pub(super) fn new(work: BoxedCall, longest: Duration) -> Self {
        let until = work.deadline().min(Instant::now() + longest);
        Self { work, until }
    }
}

/// Calls that wait for an actor: first in, first out for one principal, and round robin among principals.
/// Admission and [`wait`](Self::wait) limit the length.
pub(super) struct Queue {
    concurrency: usize,
    pace: Option<Pace>,
    lanes: HashMap<Principal, VecDeque<QueuedCall>>,
    turns: VecDeque<Principal>,
    /// Whether a task regularly calls [`expire`](Self::expire).
    swept: bool,
}

impl Queue {
    pub(super) fn new(concurrency: usize) -> Self {
        Self {
            concurrency,
            pace: None,
            lanes: HashMap::new(),
            turns: VecDeque::new(),
            swept: false,
        }
    }

    pub(super) fn wait(&self, principal: &Principal) -> Duration {
        let Some(pace) = &self.pace else {
            return Duration::ZERO;
        };
        let own = self.lanes.get(principal).map_or(0, VecDeque::len);
        // Each other principal gets one turn per call of this one.
        let ahead = self.lanes.values().map(|lane| lane.len().min(own + 1));
        pace.wait(ahead.sum(), Instant::now())
    }

    /// Returns `true` if the caller must start a task that removes expired calls.
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
            // A repeated call that brings its client's answers goes first.
            true => lane.push_front(call),
            false => lane.push_back(call),
        }
        !std::mem::replace(&mut self.swept, true)
    }

    /// Takes the next call of a principal below its limit. Moves expired calls before it to `expired`.
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

    fn forget_pace_if_empty(&mut self) {
        if self.lanes.is_empty() {
            self.pace = None;
        }
    }

    /// Removes the newest call of the principal with the most calls, which must have more than `principal` would have,
    /// unless the new call `continues`.
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

    /// If this empties the queue, the sweeping task stops.
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

    pub(super) fn is_swept(&self) -> bool {
        self.swept
    }

    pub(super) fn take(&mut self) -> Vec<BoxedCall> {
        self.turns.clear();
        self.pace = None;
        let taken = std::mem::take(&mut self.lanes).into_values().flatten();
        taken.map(|waiting| waiting.work).collect()
    }
}
