//! Draining a worker: what was accepted ends, or is named.

use std::sync::atomic::Ordering;
use std::time::Duration;

use shoal_ports::Announcement;
use shoal_protocol::RawObject;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::WorkerRuntime;
use super::record::CallRecord;

/// How often a drain names the calls that it waits for.
const REPORT: Duration = Duration::from_secs(5);
/// How long the pool may take to stop once all its calls have been told to.
const STOP: Duration = Duration::from_secs(1);

impl WorkerRuntime {
    /// Takes no more calls, lets those that were accepted end until `deadline`, stops the others, and
    /// shuts the backend down. The log names whoever is still busy, every few seconds and at the end.
    pub async fn shutdown(&self, deadline: Instant) {
        self.withdraw();
        self.pool.drain();
        // A second shutdown finds nothing to wait for.
        let stopped = self.stopped.lock().take();
        if let Some(mut stopped) = stopped
            && !self.drained(&mut stopped, deadline).await
        {
            self.stop_calls();
            if timeout(self.config.cancel_grace + STOP, &mut stopped)
                .await
                .is_err()
            {
                self.pool.kill();
            }
        }
        self.backend.shutdown().await;
    }

    /// Says that this worker takes no more calls.
    fn withdraw(&self) {
        self.draining.store(true, Ordering::Release);
        self.announcement.send_replace(Announcement {
            worker: self.id.clone(),
            pool: self.config.pool.clone(),
            catalog: None,
            detail: Some(Announcement::LEAVING.to_owned()),
        });
    }

    async fn drained(&self, stopped: &mut JoinHandle<()>, deadline: Instant) -> bool {
        loop {
            let until = deadline.min(Instant::now() + REPORT);
            if timeout_at(until, &mut *stopped).await.is_ok() {
                return true;
            }
            let late = Instant::now() >= deadline;
            for call in self.ledger.open() {
                self.report(&call, late);
            }
            if late {
                return false;
            }
        }
    }

    fn stop_calls(&self) {
        for call in self.ledger.open() {
            call.stop(call.lost("its worker was shut down before it ended"));
        }
    }

    fn report(&self, call: &CallRecord, late: bool) {
        let age = call.admitted.elapsed().as_secs();
        let params = call.params().as_ref().and_then(RawObject::of);
        let subject = params.and_then(|params| params.get("name").or_else(|| params.get("uri")));
        let subject = subject.as_ref().map_or("", |subject| subject.as_str());
        let pool = &self.config.pool;
        if late {
            tracing::warn!(%pool, call = %call.id, method = %call.method, subject, age, "stopping a call that did not end in time");
        } else {
            tracing::info!(%pool, call = %call.id, method = %call.method, subject, age, "waiting for a call to end");
        }
    }
}
