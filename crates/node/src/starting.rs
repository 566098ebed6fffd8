//! Waits for the store while a process starts.

use std::time::Duration;

use parking_lot::Mutex;
use shoal_store_redis::Outage;
use tokio::time::sleep;

const PAUSE: Duration = Duration::from_millis(500);

/// Why a starting process cannot serve yet. The process waits for the store without a time limit; its supervisor
/// decides when to give up.
#[derive(Default)]
pub struct Starting {
    waiting: Mutex<Option<StoreWait>>,
}

struct StoreWait {
    why: String,
    outage: Outage,
}

impl Starting {
    /// Logs the outage of the store at `place` when it begins, and again from time to time.
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

    pub(crate) fn go_on(&self) {
        if let Some(mut waiting) = self.waiting.lock().take() {
            waiting.outage.over();
        }
    }

    pub(crate) fn why(&self) -> String {
        let waiting = self.waiting.lock();
        let waiting = waiting.as_ref().map(|waiting| waiting.why.clone());
        waiting.unwrap_or_else(|| "the process is starting".to_owned())
    }
}
