//! The arithmetic of GCRA, on any clock that counts nanoseconds.

use std::time::Duration;

use super::Rate;

/// The longest that a bucket may take to fill: all arithmetic stays exact, in Redis too.
pub(super) const LONGEST_FILL: Duration = Duration::from_secs(30 * 24 * 3600);

/// A bucket's size, and how often a cell comes back into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRate {
    interval: u64,
    burst: u32,
}

/// What came of asking for cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// So many were taken.
    Cells(u32),
    /// None were; there are as many as are needed after this time, if nobody else takes them.
    Later(Duration),
}

impl CellRate {
    /// As many cells as a rate has, in a bucket of this size.
    pub fn new(rate: Rate, burst: u32) -> Self {
        Self {
            interval: rate.interval(),
            burst: burst.max(1),
        }
    }

    /// The part of one of so many, in which `need` cells fit in any case.
    pub fn share(self, of: usize, need: u32) -> Self {
        let of = u32::try_from(of).unwrap_or(u32::MAX).max(1);
        Self {
            interval: self.interval.saturating_mul(u64::from(of)),
            burst: (self.burst / of).max(need).max(1),
        }
    }

    /// Cells in a full bucket.
    pub fn burst(self) -> u32 {
        self.burst
    }

    /// Nanoseconds until one cell comes back.
    pub fn interval(self) -> u64 {
        self.interval
    }

    /// Nanoseconds until an empty bucket is full.
    pub fn fill(self) -> u64 {
        self.interval.saturating_mul(u64::from(self.burst))
    }

    /// Takes cells from a bucket that will be full at `full`, as seen at `now`. Returns when it will be full then.
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

    /// The same, of cells that come back unused.
    pub(crate) fn give_back(self, full: u64, now: u64, cells: u32) -> u64 {
        let less = self.interval.saturating_mul(u64::from(cells));
        full.saturating_sub(less).max(now)
    }
}
