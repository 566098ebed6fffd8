//! Which node owned a session when last heard of. The store is the truth; this only saves asking it.

use std::time::Duration;

use quick_cache::sync::Cache;
use shoal_ports::{NodeId, SessionId};
use tokio::time::Instant;

/// The owners that are remembered: a bounded number, the least used forgotten first.
pub(crate) struct OwnerCache {
    owners: Cache<SessionId, Remembered>,
    believed_for: Duration,
}

#[derive(Clone)]
struct Remembered {
    owner: NodeId,
    since: Instant,
}

impl OwnerCache {
    pub(crate) fn new(capacity: usize, believed_for: Duration) -> Self {
        Self {
            owners: Cache::new(capacity.max(1)),
            believed_for,
        }
    }

    /// The owner, if it was learnt recently enough to be believed.
    pub(crate) fn fresh(&self, session: &SessionId) -> Option<NodeId> {
        let Remembered { owner, since } = self.owners.get(session)?;
        (since.elapsed() < self.believed_for).then_some(owner)
    }

    /// The owner, however long ago it was learnt: better than nothing.
    pub(crate) fn any(&self, session: &SessionId) -> Option<NodeId> {
        self.owners.get(session).map(|remembered| remembered.owner)
    }

    pub(crate) fn insert(&self, session: &SessionId, owner: NodeId) {
        let since = Instant::now();
        self.owners
            .insert(session.clone(), Remembered { owner, since });
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
        let cache = OwnerCache::new(100, minute);
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
}
