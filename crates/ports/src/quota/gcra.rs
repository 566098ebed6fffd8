//! GCRA (the generic cell rate algorithm), in nanoseconds.

use std::time::Duration;

use super::Rate;

/// The longest fill time for which the arithmetic is exact, also in Redis.
pub(super) const LONGEST_FILL: Duration = Duration::from_secs(30 * 24 * 3600);

/// A bucket's size and refill interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRate {
    interval: u64,
    burst: u32,
}

/// The answer to a request for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Tokens taken.
    Cells(u32),
    /// The time until the bucket has enough tokens.
    Later(Duration),
}

impl CellRate {
    /// Makes a bucket of `burst` tokens that refills at `rate`.
    pub fn new(rate: Rate, burst: u32) -> Self {
        Self {
            interval: rate.interval(),
            burst: burst.max(1),
        }
    }

    /// Returns one of `of` equal shares of the rate, with a burst of at least `need` tokens.
    pub fn share(self, of: usize, need: u32) -> Self {
        let of = u32::try_from(of).unwrap_or(u32::MAX).max(1);
        Self {
            interval: self.interval.saturating_mul(u64::from(of)),
            burst: (self.burst / of).max(need).max(1),
        }
    }

    /// Returns a full bucket's tokens.
    pub fn burst(self) -> u32 {
        self.burst
    }

    /// Returns the nanoseconds for one token.
    pub fn interval(self) -> u64 {
        self.interval
    }

    /// Returns the nanoseconds until an empty bucket is full.
    pub fn fill(self) -> u64 {
        self.interval.saturating_mul(u64::from(self.burst))
    }

    /// `full` is the time at which the bucket is full. Returns the new time, and the tokens.
    pub(crate) fn take(self, full: u64, now: u64, need: u32, want: u32) -> (u64, Taken) {
        let empty = now.saturating_add(self.fill());
        let full = full.clamp(now, empty);
        let free = u32::try_from((empty - full) / self.interval).unwrap_or(u32::MAX);
        if free < need {
            let lacks = u64::from(need) * self.interval - (empty - full);
            return (full, Taken::Later(Duration::from_nanos(lacks)));
        }
        let cells = free.min(want.max(need));
        (full + u64::from(cells) * self.interval, Taken::Cells(cells))
    }

    /// Parameters as for [`take`](Self::take).
    pub(crate) fn give_back(self, full: u64, now: u64, cells: u32) -> u64 {
        let less = self.interval.saturating_mul(u64::from(cells));
        full.saturating_sub(less).max(now)
    }
}
