mod entry;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

#[derive(Default)]
pub(crate) struct Subscriptions {
    by_uri: Mutex<HashMap<String, ResourceSubscription>>,
}

struct ResourceSubscription {
    pool: Arc<str>,
    subscribers: usize,
    /// Whether the pool's workers watch the resource. Not set if lists differ by caller.
    watched: bool,
    entries: usize,
    /// Held during workers' requests, so that the first and the last subscriber do not race.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Subscriptions {
    pub(crate) fn of(&self, pool: &str, watched: bool) -> Vec<String> {
        let by_uri = self.by_uri.lock();
        let of_pool = by_uri
            .iter()
            .filter(|(_, it)| it.pool.as_ref() == pool && it.watched == watched);
        of_pool.map(|(uri, _)| uri.clone()).collect()
    }

    pub(crate) fn len(&self) -> usize {
        let by_uri = self.by_uri.lock();
        by_uri.values().filter(|it| it.watched).count()
    }
}
