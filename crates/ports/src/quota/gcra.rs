//! The arithmetic of GCRA, in nanoseconds.

use std::time::Duration;

use super::Rate;

/// The longest fill time for which arithmetic is exact, in Redis too.
pub(super) const LONGEST_FILL: Duration = Duration::from_secs(30 * 24 * 3600);

/// A bucket's size and refill interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRate {
    interval: u64,
    burst: u32,
}

/// The result of asking for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The number taken.
    Cells(u32),
    /// Enough tokens will be there after this time.
    Later(Duration),
}

impl CellRate {
    /// Combines a rate with a bucket size.
    pub fn new(rate: Rate, burst: u32) -> Self {
        Self {
            interval: rate.interval(),
            burst: burst.max(1),
        }
    }

    /// The share of one in `of`, at least `need` tokens.
    pub fn share(self, of: usize, need: u32) -> Self {
        let of = u32::try_from(of).unwrap_or(u32::MAX).max(1);
        Self {
            interval: self.interval.saturating_mul(u64::from(of)),
            burst: (self.burst / of).max(need).max(1),
        }
    }

    /// Tokens in a full bucket.
    pub fn burst(self) -> u32 {
        self.burst
    }

    /// Nanoseconds until one token comes back.
    pub fn interval(self) -> u64 {
        self.interval
    }

    /// Nanoseconds until an empty bucket is full.
    pub fn fill(self) -> u64 {
        self.interval.saturating_mul(u64::from(self.burst))
    }

    /// Takes tokens at `now`. `full` is when the bucket will be full, before and after.
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

    /// Returns tokens, as [`take`](Self::take) takes them.
    pub(crate) fn give_back(self, full: u64, now: u64, cells: u32) -> u64 {
        let less = self.interval.saturating_mul(u64::from(cells));
        full.saturating_sub(less).max(now)
    }
}
