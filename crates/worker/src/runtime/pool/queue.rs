//! The calls that wait for an actor.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::work::Parcel;

/// How often calls are looked for that have waited too long. Those are late by half of it in the middle, which
/// nobody notices after seconds.
pub(super) const SWEEP: Duration = Duration::from_millis(100);

/// A call that waits.
pub(super) struct Waiting {
    work: Parcel,
    until: Instant,
}

impl Waiting {
    /// One that waits for `longest`, and no longer than its deadline.
    pub(super) fn new(work: Parcel, longest: Duration) -> Self {
        let until = work.deadline().min(Instant::now() + longest);
        Self { work, until }
    }
}

/// First come, first served. Admission bounds it (`places.rs`), which can refuse a call before it comes here.
#[derive(Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    /// Somebody calls [`expire`](Self::expire) every now and then.
    swept: bool,
}

impl Queue {
    /// Has a call wait; true where the caller has to see to it that the queue is swept from now on.
    pub(super) fn push(&mut self, call: Waiting) -> bool {
        self.waiting.push_back(call);
        !std::mem::replace(&mut self.swept, true)
    }

    /// The next call; those before it that have waited too long go to `expired`.
    pub(super) fn pop(&mut self, expired: &mut Vec<Parcel>) -> Option<Parcel> {
        if self.waiting.is_empty() {
            return None;
        }
        let now = Instant::now();
        while let Some(Waiting { work, until }) = self.waiting.pop_front() {
            if until > now {
                return Some(work);
            }
            expired.push(work);
        }
        None
    }

    /// Takes those out that have waited too long. One that finds nobody waiting is the last: then nobody sweeps any
    /// more.
    pub(super) fn expire(&mut self) -> Vec<Parcel> {
        let now = Instant::now();
        let mut expired = Vec::new();
        for _ in 0..self.waiting.len() {
            match self.waiting.pop_front() {
                Some(late) if late.until <= now => expired.push(late.work),
                Some(waits) => self.waiting.push_back(waits),
                None => break,
            }
        }
        self.swept = !self.waiting.is_empty();
        expired
    }

    /// Whether the queue goes on being swept.
    pub(super) fn is_swept(&self) -> bool {
        self.swept
    }

    /// Takes all that wait.
    pub(super) fn take(&mut self) -> Vec<Parcel> {
        let taken = std::mem::take(&mut self.waiting);
        taken.into_iter().map(|waiting| waiting.work).collect()
    }
}
