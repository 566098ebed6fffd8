use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long an unreachable server's tools stay listed while calls wait, if the pool has no other
/// server.
const LISTED: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LastHeard {
    #[default]
    Nothing,
    There,
    Doubted,
    Away,
}

#[derive(Clone)]
pub(crate) struct EqualServers(Arc<watch::Sender<Vec<LastHeard>>>);

pub(crate) struct Reachability {
    all: EqualServers,
    own: usize,
    away_since: Mutex<Option<Instant>>,
}

impl EqualServers {
    pub(crate) fn of(count: usize) -> Self {
        Self(Arc::new(watch::Sender::new(vec![
            LastHeard::default();
            count
        ])))
    }

    pub(crate) fn at(&self, place: usize) -> Reachability {
        Reachability {
            all: self.clone(),
            own: place,
            away_since: Mutex::default(),
        }
    }
}

impl Reachability {
    pub(crate) fn is_alone(&self) -> bool {
        self.all.0.borrow().len() == 1
    }

    pub(crate) fn found(&self) {
        *self.away_since.lock() = None;
        self.hear(LastHeard::There);
    }

    /// Returns whether to unlist the server's tools.
    pub(crate) fn missed(&self) -> bool {
        self.hear(LastHeard::Away);
        let mut away_since = self.away_since.lock();
        let away_since = *away_since.get_or_insert_with(Instant::now);
        !self.is_alone() || away_since.elapsed() >= LISTED
    }

    pub(crate) fn doubt(&self) {
        if self.heard() == LastHeard::There {
            self.hear(LastHeard::Doubted);
        }
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        self.is_alone() && self.heard() != LastHeard::There
    }

    /// Cancellation safe.
    pub(crate) async fn back(&self) {
        self.until(|own, _| own == LastHeard::There).await;
    }

    /// Waits until another server is reachable and this one is not. Cancellation safe.
    pub(crate) async fn left_to_others(&self) {
        self.until(|own, all| own == LastHeard::Away && all.contains(&LastHeard::There))
            .await;
    }

    /// Returns early on a hint that the server is away. Cancellation safe.
    pub(crate) async fn ask_again(&self, interval: Duration) {
        let doubted = self.until(|own, _| own != LastHeard::There);
        let _ = tokio::time::timeout(interval, doubted).await;
    }

    fn heard(&self) -> LastHeard {
        self.all.0.borrow()[self.own]
    }

    fn hear(&self, heard: LastHeard) {
        self.all.0.send_if_modified(|all| {
            let before = std::mem::replace(&mut all[self.own], heard);
            before != heard
        });
    }

    async fn until(&self, is_so: impl Fn(LastHeard, &[LastHeard]) -> bool) {
        let mut all = self.all.0.subscribe();
        // `self` keeps the sender alive.
        let _ = all.wait_for(|all| is_so(all[self.own], all)).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::EqualServers;

    #[test]
    fn only_one_that_is_away_is_left_to_others_that_are_there() {
        let all = EqualServers::of(2);
        let [first, second] = [0, 1].map(|place| all.at(place));
        let left = || first.left_to_others().now_or_never().is_some();
        first.found();
        second.found();
        assert!(!left(), "it is there");
        first.doubt();
        assert!(!left(), "nobody knows");
        first.missed();
        assert!(left());
        second.doubt();
        assert!(!left(), "the other may be away too");
        second.missed();
        assert!(!left(), "there is no other");
        second.found();
        assert!(left());
        first.found();
        assert!(!left(), "it came back");
    }
}
