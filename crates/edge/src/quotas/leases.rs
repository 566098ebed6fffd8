//! Cells that an edge has taken for requests to come.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use shoal_ports::{CellRate, QuotaSubject, Taken};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Instant;

/// How long cells may lie here. Then they go back.
const LIFE: Duration = Duration::from_secs(2);
/// How long an empty bucket is not asked about again.
const EMPTY: Duration = Duration::from_secs(1);
/// One in so many cells of a bucket may lie here.
const SHARE: u32 = 10;
/// Bytes that leases of one quota may take, and of a lease beside its name.
const MOST_BYTES: usize = 16 << 20;
const LEASE: usize = 192;

#[derive(Default)]
pub(super) struct Leases(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    all: HashMap<QuotaSubject, Lease, RandomState>,
    bytes: usize,
}

struct Lease {
    cells: u32,
    /// How many were asked for last.
    size: u32,
    since: Instant,
    /// What is known of an empty bucket: how many cells were asked for, when there are so many, and when to ask again.
    empty: Option<(u32, Instant, Instant)>,
    asking: bool,
    news: Arc<Notify>,
}

/// What comes of wanting cells.
pub(super) enum Step {
    Spent,
    /// There are enough after this time.
    Refused(Duration),
    /// Somebody asks already; look again then.
    Wait(OwnedNotified),
    /// Ask for so many, and give back those that nobody used.
    Ask {
        want: u32,
        unused: u32,
    },
}

impl Leases {
    pub(super) fn spend(
        &self,
        subject: &QuotaSubject,
        need: u32,
        rate: CellRate,
        now: Instant,
    ) -> Step {
        let mut entries = self.0.lock();
        let Some(lease) = entries.all.get_mut(subject) else {
            let lease = Lease {
                cells: 0,
                size: need,
                since: now,
                empty: None,
                asking: true,
                news: Arc::default(),
            };
            entries.insert(subject.clone(), lease);
            let (want, unused) = (need, 0);
            return Step::Ask { want, unused };
        };
        let fresh = now < lease.since + LIFE;
        if fresh && lease.cells >= need {
            lease.cells -= need;
            return Step::Spent;
        }
        if let Some((lacked, enough, ask_again)) = lease.empty
            && need >= lacked
            && now < ask_again
        {
            return Step::Refused(enough.saturating_duration_since(now));
        }
        if lease.asking {
            return Step::Wait(Arc::clone(&lease.news).notified_owned());
        }
        // The faster they are spent, the more are taken.
        lease.size = match fresh {
            true => lease.size.saturating_mul(2),
            false => lease.size / 2,
        };
        lease.size = lease.size.clamp(1, (rate.burst() / SHARE).max(1));
        lease.asking = true;
        // What was left is asked for anew with the rest.
        let unused = std::mem::take(&mut lease.cells);
        let want = lease.size.max(need);
        Step::Ask { want, unused }
    }

    /// Cells that were spent on a request that was not let through.
    pub(super) fn put_back(&self, subject: &QuotaSubject, cells: u32) {
        if let Some(lease) = self.0.lock().all.get_mut(subject) {
            lease.cells += cells;
        }
    }

    /// What has lain here for too long. Leases that nobody needs are forgotten.
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
            if lease.cells > 0 {
                unused.push((subject.clone(), lease.cells));
            }
            *bytes -= bytes_of(subject);
            false
        });
        unused
    }

    /// All of it.
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
    fn insert(&mut self, subject: QuotaSubject, lease: Lease) {
        let bytes = bytes_of(&subject);
        if self.bytes + bytes > MOST_BYTES {
            // Those who come again ask again. Cells that go with a lease come back to the bucket with time.
            let Self { all, bytes } = self;
            all.retain(|subject, lease| {
                let keep = lease.asking || *bytes <= MOST_BYTES / 4 * 3;
                if !keep {
                    *bytes -= bytes_of(subject);
                }
                keep
            });
        }
        self.bytes += bytes;
        self.all.insert(subject, lease);
    }
}

fn bytes_of(subject: &QuotaSubject) -> usize {
    LEASE + subject.bytes()
}

/// Somebody asks for more: whatever becomes of that, those who wait hear of it.
pub(super) struct Asking<'a> {
    leases: &'a Leases,
    subject: &'a QuotaSubject,
    answer: Option<(u32, Taken)>,
}

impl<'a> Asking<'a> {
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

impl Drop for Asking<'_> {
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
