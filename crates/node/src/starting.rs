//! What a process waits for before it can serve.

use std::time::Duration;

use parking_lot::Mutex;
use shoal_store_redis::Outage;
use tokio::time::sleep;

/// How often the store is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// What a process waits for before it can serve: a store that is away, or that takes no writes now. It waits for as long as
/// its supervisor lets it; whoever asks is told what for.
#[derive(Default)]
pub struct Starting {
    waiting: Mutex<Option<StoreWait>>,
}

struct StoreWait {
    why: String,
    outage: Outage,
}

impl Starting {
    /// The store at `place` cannot be used now: waits a moment. It is told of once, and now and then.
    pub(crate) async fn wait_for(&self, place: &str, why: &str) {
        {
            let mut waiting = self.waiting.lock();
            let waiting = waiting.get_or_insert_with(|| StoreWait {
                why: String::new(),
                outage: Outage::new(place),
            });
            waiting.why = format!("waiting for {place}: {why}");
            waiting.outage.failed(why);
        }
        sleep(PAUSE).await;
    }

    /// The store can be used.
    pub(crate) fn go_on(&self) {
        if let Some(mut waiting) = self.waiting.lock().take() {
            waiting.outage.over();
        }
    }

    /// What keeps the process from serving.
    pub(crate) fn why(&self) -> String {
        let waiting = self.waiting.lock();
        let waiting = waiting.as_ref().map(|waiting| waiting.why.clone());
        waiting.unwrap_or_else(|| "the process is starting".to_owned())
    }
}
