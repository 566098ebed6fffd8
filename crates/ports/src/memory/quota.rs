use std::collections::HashMap;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{CellRate, QuotaCells, QuotaKey, StoreError, Taken};

const MOST_BYTES: usize = 32 << 20;
/// A bucket's bytes besides its subject's name.
const BUCKET: usize = 128;

/// This process's buckets. At the memory limit, the full buckets are removed first, then others,
/// which are then full again.
#[derive(Debug)]
pub struct MemoryQuotas {
    began: Instant,
    most_bytes: usize,
    buckets: Mutex<Buckets>,
}

#[derive(Debug, Default)]
struct Buckets {
    full: HashMap<QuotaKey, u64>,
    bytes: usize,
}

impl Default for MemoryQuotas {
    fn default() -> Self {
        Self::within(MOST_BYTES)
    }
}

impl MemoryQuotas {
    /// Makes a table of at most `most_bytes`.
    pub fn within(most_bytes: usize) -> Self {
        Self {
            began: Instant::now(),
            most_bytes,
            buckets: Mutex::default(),
        }
    }

    /// Takes tokens, like [`QuotaCells::take`].
    pub fn take_now(&self, key: &QuotaKey, rate: CellRate, need: u32, want: u32) -> Taken {
        let now = self.now();
        let mut buckets = self.buckets.lock();
        let full = buckets.full.get(key).copied().unwrap_or(now);
        let (full, taken) = rate.take(full, now, need, want);
        buckets.set(key, full, now, self.most_bytes);
        taken
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Buckets {
    fn set(&mut self, key: &QuotaKey, full: u64, now: u64, most_bytes: usize) {
        if let Some(known) = self.full.get_mut(key) {
            *known = full;
            return;
        }
        let bytes = bytes_of(key);
        if self.bytes + bytes > most_bytes {
            self.make_room(now, most_bytes);
        }
        self.bytes += bytes;
        self.full.insert(key.clone(), full);
    }

    fn make_room(&mut self, now: u64, most_bytes: usize) {
        let Self { full, bytes } = self;
        let mut forget = |key: &QuotaKey| *bytes -= bytes_of(key);
        full.retain(|key, full| {
            let keep = *full > now;
            if !keep {
                forget(key);
            }
            keep
        });
        // Leaves a quarter free, so that few insertions must make room.
        full.retain(|key, _| {
            let keep = *bytes <= most_bytes / 4 * 3;
            if !keep {
                *bytes -= bytes_of(key);
            }
            keep
        });
    }
}

fn bytes_of(key: &QuotaKey) -> usize {
    BUCKET + key.subject.bytes()
}

#[async_trait]
impl QuotaCells for MemoryQuotas {
    async fn take(
        &self,
        key: &QuotaKey,
        rate: CellRate,
        need: u32,
        want: u32,
    ) -> Result<Taken, StoreError> {
        Ok(self.take_now(key, rate, need, want))
    }

    async fn give_back(
        &self,
        key: &QuotaKey,
        rate: CellRate,
        cells: u32,
    ) -> Result<(), StoreError> {
        let now = self.now();
        if let Some(full) = self.buckets.lock().full.get_mut(key) {
            *full = rate.give_back(*full, now, cells);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::{BUCKET, MemoryQuotas};
    use crate::{CellRate, QuotaKey, QuotaSubject, Taken};

    #[tokio::test(start_paused = true)]
    async fn buckets_are_bounded_in_bytes() {
        let quotas = MemoryQuotas::within(100 * BUCKET);
        let rate = CellRate::new("1/h".parse().unwrap(), 1);
        for number in 0..10_000_u32 {
            let address = IpAddr::V4(Ipv4Addr::from(number));
            let key = QuotaKey {
                quota: "some".into(),
                subject: QuotaSubject::address(address),
            };
            assert_eq!(quotas.take_now(&key, rate, 1, 1), Taken::Cells(1));
            let again = quotas.take_now(&key, rate, 1, 1);
            assert!(matches!(again, Taken::Later(_)), "{again:?}");
            let buckets = quotas.buckets.lock();
            assert!(buckets.full.len() <= 100);
            assert_eq!(buckets.bytes, buckets.full.len() * BUCKET);
        }
    }
}
