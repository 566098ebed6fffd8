use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use shoal_ports::{CellRate, QuotaSubject, Taken};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Instant;

use crate::places::PlaceCount;

/// How long unused cells stay leased.
const LIFE: Duration = Duration::from_secs(2);
/// The pause before asking again about an empty bucket.
const EMPTY: Duration = Duration::from_secs(1);
/// A lease has at most a bucket's cells divided by this number, but enough for its request.
const SHARE: u32 = 10;
/// Maximum bytes of one quota's leases, and the bytes of a lease besides its subject's name.
const MOST_BYTES: usize = 16 << 20;
const LEASE: usize = 240;

#[derive(Default)]
pub(super) struct Leases(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    all: HashMap<QuotaSubject, QuotaLease, RandomState>,
    bytes: usize,
}

pub(super) struct QuotaLease {
    pub(super) places: PlaceCount,
    cells: u32,
    size: u32,
    since: Instant,
    /// Set after the bucket was empty: the requested cells, when they are available, and when to
    /// ask again.
    empty: Option<(u32, Instant, Instant)>,
    asking: bool,
    news: Arc<Notify>,
}

pub(super) enum LeaseStep {
    Spent,
    Refused(Duration),
    /// The request must try again after this notification.
    Wait(OwnedNotified),
    Ask {
        rate: CellRate,
        want: u32,
        unused: u32,
    },
}

impl Leases {
    pub(super) fn with<T>(
        &self,
        subject: &QuotaSubject,
        now: Instant,
        act: impl FnOnce(&mut QuotaLease) -> T,
    ) -> T {
        let entries = &mut *self.0.lock();
        act(match entries.all.get_mut(subject) {
            Some(lease) => lease,
            None => entries.insert(subject.clone(), now),
        })
    }

    pub(super) fn put_back(&self, subject: &QuotaSubject, cells: u32) {
        if let Some(lease) = self.0.lock().all.get_mut(subject) {
            lease.cells += cells;
        }
    }

    /// Drops leases without cells.
    pub(super) fn take_unused(&self) -> Vec<(QuotaSubject, u32)> {
        let now = Instant::now();
        let mut entries = self.0.lock();
        let Entries { all, bytes } = &mut *entries;
        let mut unused = Vec::new();
        all.retain(|subject, lease| {
            let known_empty = lease.empty.is_some_and(|(_, _, again)| now < again);
            if now < lease.since + LIFE || lease.asking || known_empty {
                return true;
            }
            let cells = std::mem::take(&mut lease.cells);
            if cells > 0 {
                unused.push((subject.clone(), cells));
            }
            let keep = lease.places.any();
            if !keep {
                *bytes -= bytes_of(subject);
            }
            keep
        });
        unused
    }

    pub(super) fn take_all(&self) -> Vec<(QuotaSubject, u32)> {
        let mut entries = self.0.lock();
        let leases = entries.all.iter_mut();
        leases
            .map(|(subject, lease)| (subject.clone(), std::mem::take(&mut lease.cells)))
            .filter(|(_, cells)| *cells > 0)
            .collect()
    }
}

impl Entries {
    fn insert(&mut self, subject: QuotaSubject, now: Instant) -> &mut QuotaLease {
        let bytes = bytes_of(&subject);
        if self.bytes + bytes > MOST_BYTES {
            // A dropped lease's cells are lost, but the bucket refills.
            let Self { all, bytes } = self;
            all.retain(|subject, lease| {
                let needed = lease.asking || lease.places.any();
                let keep = needed || *bytes <= MOST_BYTES / 4 * 3;
                if !keep {
                    *bytes -= bytes_of(subject);
                }
                keep
            });
        }
        self.bytes += bytes;
        self.all.entry(subject).or_insert_with(|| QuotaLease {
            places: PlaceCount::default(),
            cells: 0,
            size: 0,
            since: now,
            empty: None,
            asking: false,
            news: Arc::default(),
        })
    }
}

impl QuotaLease {
    pub(super) fn spend(&mut self, need: u32, rate: CellRate, now: Instant) -> LeaseStep {
        let fresh = now < self.since + LIFE;
        if fresh && self.cells >= need {
            self.cells -= need;
            return LeaseStep::Spent;
        }
        if let Some((lacked, enough, ask_again)) = self.empty
            && need >= lacked
            && now < ask_again
        {
            return LeaseStep::Refused(enough.saturating_duration_since(now));
        }
        if self.asking {
            return LeaseStep::Wait(Arc::clone(&self.news).notified_owned());
        }
        // A lease that is spent within `LIFE` grows, and any other shrinks.
        let size = match fresh {
            true => self.size.saturating_mul(2),
            false => self.size / 2,
        };
        self.size = size.clamp(1, (rate.burst() / SHARE).max(1)).max(need);
        self.asking = true;
        let unused = std::mem::take(&mut self.cells);
        let want = self.size;
        LeaseStep::Ask { rate, want, unused }
    }
}

fn bytes_of(subject: &QuotaSubject) -> usize {
    LEASE + subject.bytes()
}

/// Dropping an open question notifies the waiting requests.
pub(super) struct AskingStore<'a> {
    leases: &'a Leases,
    subject: &'a QuotaSubject,
    answer: Option<(u32, Taken)>,
}

impl<'a> AskingStore<'a> {
    pub(super) fn new(leases: &'a Leases, subject: &'a QuotaSubject) -> Self {
        Self {
            leases,
            subject,
            answer: None,
        }
    }

    pub(super) fn answered(mut self, need: u32, taken: Taken) {
        self.answer = Some((need, taken));
    }
}

impl Drop for AskingStore<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut entries = self.leases.0.lock();
        let Some(lease) = entries.all.get_mut(self.subject) else {
            return;
        };
        lease.asking = false;
        match self.answer {
            Some((_, Taken::Cells(cells))) => {
                lease.cells += cells;
                lease.since = now;
                lease.empty = None;
            }
            Some((need, Taken::Later(wait))) => {
                lease.empty = Some((need, now + wait, now + wait.min(EMPTY)));
            }
            None => {}
        }
        lease.news.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use shoal_ports::{Principal, QuotaSubject};
    use tokio::time::{Instant, advance};

    use super::{LIFE, Leases, MOST_BYTES, bytes_of};
    use crate::places::TakenPlace;

    fn place(leases: &Leases, principal: &str, now: Instant) -> Option<TakenPlace> {
        let subject = QuotaSubject::Principal(Principal::new(principal));
        leases.with(&subject, now, |lease| lease.places.take(1, 1))
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_held_for_as_long_as_its_call_takes() {
        let leases = Leases::default();
        let held = place(&leases, "alice", Instant::now());
        assert!(held.is_some());
        advance(LIFE * 2).await;
        assert!(leases.take_unused().is_empty());
        assert!(place(&leases, "alice", Instant::now()).is_none());
        drop(held);
        assert!(leases.take_unused().is_empty());
        let entries = leases.0.lock();
        assert_eq!((entries.all.len(), entries.bytes), (0, 0));
    }

    #[test]
    fn whoever_comes_by_many_names_takes_no_more_memory() {
        let leases = Leases::default();
        let held = place(&leases, "alice", Instant::now());
        let long = "n".repeat(64 << 10);
        for number in 0..2 * MOST_BYTES / long.len() {
            assert!(place(&leases, &format!("{number}{long}"), Instant::now()).is_some());
        }
        assert!(place(&leases, "alice", Instant::now()).is_none());
        let entries = leases.0.lock();
        let bytes: usize = entries.all.keys().map(bytes_of).sum();
        assert_eq!(entries.bytes, bytes);
        assert!((MOST_BYTES / 2..=MOST_BYTES).contains(&bytes), "{bytes}");
        drop(held);
    }

    #[test]
    fn a_sweep_forgets_nothing_that_is_held() {
        let leases = Leases::default();
        let old = Instant::now() - LIFE;
        let inside = AtomicUsize::new(0);
        let call = || {
            for _ in 0..5_000 {
                if let Some(place) = place(&leases, "alice", old) {
                    assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                    inside.fetch_sub(1, Ordering::Relaxed);
                    drop(place);
                }
            }
        };
        thread::scope(|scope| {
            let calls = [scope.spawn(call), scope.spawn(call)];
            while !calls.iter().all(|calls| calls.is_finished()) {
                leases.take_unused();
            }
        });
    }
}
