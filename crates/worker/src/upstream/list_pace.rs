use std::time::Duration;

use shoal_ports::Backoff;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::lists::Which;

/// Announcements within this time share one read, because some servers announce each tool that they
/// register.
const SETTLE: Duration = Duration::from_millis(50);
/// An announcement so soon after a read may be caused by the read.
const CAUSED: Duration = Duration::from_secs(1);
/// Maximum pause between reads while lists keep changing.
const CHANGING: Duration = Duration::from_secs(5);
/// Maximum pause between reads while announced lists stay the same.
const UNCHANGED: Duration = Duration::from_secs(60);
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// Schedules reads of lists: after announcements, less often the more there are, and again after failures.
pub(crate) struct ListPace {
    changes: watch::Receiver<[u64; 3]>,
    seen: [u64; 3],
    pause: Duration,
    read_at: Instant,
    changed: bool,
    retry: Backoff,
    missing: Option<(Instant, Which)>,
}

impl ListPace {
    pub(crate) fn new(mut changes: watch::Receiver<[u64; 3]>) -> Self {
        let seen = *changes.borrow_and_update();
        Self {
            changes,
            seen,
            pause: SETTLE,
            read_at: Instant::now(),
            changed: true,
            retry: Backoff::new(RETRY.0, RETRY.1),
            missing: None,
        }
    }

    pub(crate) fn from_the_start(changes: watch::Receiver<[u64; 3]>) -> Self {
        let mut pace = Self::new(changes);
        pace.seen = [0; 3];
        pace
    }

    pub(crate) fn was_read(&mut self, changed: bool, missing: Which) {
        self.read_at = Instant::now();
        self.changed = changed;
        if missing.is_empty() {
            self.retry.reset();
            self.missing = None;
        } else {
            self.missing = Some((self.read_at + self.retry.pause(), missing));
        }
    }

    /// Waits until lists are due. Cancellation safe: announcements stay counted.
    pub(crate) async fn due(&mut self) -> Which {
        let missing = self.missing;
        let again = async {
            match missing {
                Some((at, which)) => {
                    sleep_until(at).await;
                    which
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            which = again => return which,
            // Cannot fail, because the link keeps the sender.
            Ok(_) = self.changes.wait_for(|now| *now != self.seen) => {}
        }
        self.pause = self.pause_now();
        sleep(self.pause).await;
        let now = *self.changes.borrow_and_update();
        let announced = std::array::from_fn(|at| now[at] != self.seen[at]);
        self.seen = now;
        Which::announced(announced)
    }

    fn pause_now(&self) -> Duration {
        if self.read_at.elapsed() > CAUSED {
            return SETTLE;
        }
        let longest = if self.changed { CHANGING } else { UNCHANGED };
        (self.pause * 2).min(longest)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::watch;
    use tokio::time::{Instant, timeout};

    use super::{ListPace, SETTLE};
    use crate::upstream::lists::{List, Which};

    async fn pauses(changed: bool) -> Vec<Duration> {
        let sender = watch::Sender::new([0; 3]);
        let mut pace = ListPace::new(sender.subscribe());
        let mut pauses = Vec::new();
        for _ in 0..20 {
            sender.send_modify(|changes| changes[0] += 1);
            let began = Instant::now();
            assert_eq!(pace.due().await, Which::only(List::Tools));
            pauses.push(began.elapsed());
            pace.was_read(changed, Which::default());
        }
        pauses
    }

    #[tokio::test(start_paused = true)]
    async fn announcements_after_each_list_are_followed_less_and_less() {
        let of = |pauses: Vec<Duration>| pauses.last().unwrap().as_secs();
        assert_eq!(of(pauses(true).await), 5);
        assert_eq!(of(pauses(false).await), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn an_announcement_after_a_while_is_followed_at_once() {
        let sender = watch::Sender::new([0; 3]);
        let mut pace = ListPace::new(sender.subscribe());
        for _ in 0..10 {
            sender.send_modify(|changes| changes[2] += 1);
            tokio::time::sleep(Duration::from_secs(2)).await;
            let began = Instant::now();
            pace.due().await;
            assert_eq!(began.elapsed(), SETTLE);
            pace.was_read(false, Which::default());
        }
        let nothing = timeout(Duration::from_secs(1000), pace.due()).await;
        assert!(nothing.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_read_is_tried_again_until_it_is() {
        let sender = watch::Sender::new([0; 3]);
        let mut pace = ListPace::new(sender.subscribe());
        let lacking = Which::only(List::Prompts);
        for _ in 0..12 {
            pace.was_read(false, lacking);
            assert_eq!(pace.due().await, lacking);
        }
        let began = Instant::now();
        pace.was_read(false, lacking);
        pace.due().await;
        assert!(began.elapsed() >= Duration::from_secs(150));
        pace.was_read(true, Which::default());
        let nothing = timeout(Duration::from_secs(1000), pace.due()).await;
        assert!(nothing.is_err());
    }
}
