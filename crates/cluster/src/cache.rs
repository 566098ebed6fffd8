use std::time::Duration;

use parking_lot::Mutex;
use quick_cache::sync::Cache;
use shoal_ports::{NodeId, SessionId};
use tokio::time::Instant;

const LOOKS: u32 = 8;

/// A bounded LRU cache of session owners. Entries may be outdated. Without [`forget_old`](Self::forget_old), many
/// short sessions would fill the cache.
pub(crate) struct OwnerCache {
    owners: Cache<SessionId, RememberedOwner>,
    believed_for: Duration,
    kept_for: Duration,
    next_look: Mutex<Instant>,
}

#[derive(Clone)]
struct RememberedOwner {
    owner: NodeId,
    since: Instant,
}

impl OwnerCache {
    /// `fresh` returns an owner for `believed_for` after its insertion. `any` returns it for `kept_for` longer.
    pub(crate) fn new(capacity: usize, believed_for: Duration, kept_for: Duration) -> Self {
        let kept_for = believed_for.saturating_add(kept_for);
        Self {
            owners: Cache::new(capacity.max(1)),
            believed_for,
            kept_for,
            next_look: Mutex::new(Instant::now() + kept_for / LOOKS),
        }
    }

    pub(crate) fn fresh(&self, session: &SessionId) -> Option<NodeId> {
        let RememberedOwner { owner, since } = self.owners.get(session)?;
        (since.elapsed() < self.believed_for).then_some(owner)
    }

    /// Returns even an outdated entry's owner, as a guess while the store is away.
    pub(crate) fn any(&self, session: &SessionId) -> Option<NodeId> {
        self.owners.get(session).map(|remembered| remembered.owner)
    }

    pub(crate) fn insert(&self, session: &SessionId, owner: NodeId) {
        let since = Instant::now();
        self.owners
            .insert(session.clone(), RememberedOwner { owner, since });
        self.forget_old(since);
    }

    fn forget_old(&self, now: Instant) {
        if let Some(mut next_look) = self.next_look.try_lock()
            && *next_look <= now
        {
            *next_look = now + self.kept_for / LOOKS;
            self.owners
                .retain(|_, remembered| now.duration_since(remembered.since) < self.kept_for);
        }
    }

    pub(crate) fn remove(&self, session: &SessionId) {
        self.owners.remove(session);
    }

    pub(crate) fn len(&self) -> usize {
        self.owners.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_ports::{NodeId, SessionId};

    use super::OwnerCache;

    #[tokio::test(start_paused = true)]
    async fn owners_age_and_are_bounded() {
        let minute = Duration::from_secs(60);
        let cache = OwnerCache::new(100, minute, minute);
        let (session, node) = (SessionId::random(), NodeId::new("a"));
        cache.insert(&session, node.clone());
        assert_eq!(cache.fresh(&session), Some(node.clone()));
        tokio::time::advance(minute).await;
        assert_eq!(cache.fresh(&session), None);
        assert_eq!(cache.any(&session), Some(node.clone()));
        cache.remove(&session);
        assert_eq!(cache.any(&session), None);
        for _ in 0..1000 {
            cache.insert(&SessionId::random(), node.clone());
        }
        assert!(cache.len() <= 100);
    }

    #[tokio::test(start_paused = true)]
    async fn owners_of_sessions_that_must_be_gone_are_forgotten() {
        let (believed, lives) = (Duration::from_secs(60), Duration::from_secs(100));
        let cache = OwnerCache::new(100_000, believed, lives);
        let node = NodeId::new("a");
        for _ in 0..1_000 {
            cache.insert(&SessionId::random(), node.clone());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!((160..=180).contains(&cache.len()), "{}", cache.len());
    }
}
