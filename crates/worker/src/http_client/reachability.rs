//! Whether a server is there, as far as is known.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a server that is away stays listed where no other one takes its calls: they wait for it meanwhile.
const LISTED: Duration = Duration::from_secs(15);

/// What was heard of a server last.
pub(crate) struct Reachability {
    there: watch::Sender<bool>,
    away_since: Mutex<Option<Instant>>,
    /// Whether no other server takes its calls.
    alone: bool,
}

impl Reachability {
    /// Nothing is known.
    pub(crate) fn new(alone: bool) -> Self {
        Self {
            there: watch::Sender::new(false),
            away_since: Mutex::default(),
            alone,
        }
    }

    /// It is there.
    pub(crate) fn found(&self) {
        *self.away_since.lock() = None;
        self.there.send_replace(true);
    }

    /// It is away. Returns whether nobody can take calls meanwhile.
    pub(crate) fn missed(&self) -> bool {
        self.there.send_replace(false);
        let mut away_since = self.away_since.lock();
        let away_since = *away_since.get_or_insert_with(Instant::now);
        !self.alone || away_since.elapsed() >= LISTED
    }

    /// Somebody could not reach it.
    pub(crate) fn doubt(&self) {
        self.there.send_replace(false);
    }

    /// Whether calls are to wait for it: it is away, and no other server takes them.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.alone && !*self.there.borrow()
    }

    /// Waits until it is there.
    pub(crate) async fn back(&self) {
        let mut there = self.there.subscribe();
        // Whoever waits holds the sender.
        let _ = there.wait_for(|there| *there).await;
    }

    /// Waits until it is to be asked: after `interval`, or at once when it is doubted.
    pub(crate) async fn ask_again(&self, interval: Duration) {
        let mut there = self.there.subscribe();
        // As above: it ends by the time or by a doubt.
        let _ = tokio::time::timeout(interval, there.wait_for(|there| !there)).await;
    }
}
