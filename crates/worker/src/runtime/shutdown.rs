use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::join_all;
use shoal_ports::{Announcement, Worker as _};
use shoal_protocol::RawObject;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::WorkerRuntime;
use super::form::Form;
use super::record::CallRecord;

const REPORT: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);
const STOP: Duration = Duration::from_secs(1);

impl WorkerRuntime {
    /// Refuses new calls, waits for accepted ones until `deadline`, stops the rest, and shuts the
    /// backend down. The log names busy calls.
    pub async fn shutdown(&self, deadline: Instant) {
        self.withdraw(Announcement::LEAVING);
        // These are all forms, because a draining worker accepts no change.
        let forms: Vec<Arc<Form>> = self.forms.read().all().cloned().collect();
        for form in &forms {
            form.pool.drain();
        }
        if !self.drained(&forms, deadline).await {
            self.stop_calls();
            join_all(forms.iter().map(stop)).await;
        }
        let backends = self.forms.read().backends();
        join_all(backends.iter().map(|backend| backend.shutdown())).await;
    }

    /// Refuses new calls, announces `why` ([`Announcement::LEAVING`] or [`Announcement::REMOVED`]), and waits
    /// until accepted calls have ended and their ends were read. The worker still needs a shutdown.
    /// Cancellation safe.
    pub async fn leave(&self, why: &'static str) {
        self.withdraw(why);
        while self.open_calls() > 0 {
            sleep(LOOK).await;
        }
    }

    /// Announces why the worker takes no more calls. Only the first reason counts.
    pub fn withdraw(&self, why: &'static str) {
        // A change of forms checks the draining flag under this lock.
        let forms = self.forms.write();
        if self.draining.swap(true, Ordering::AcqRel) {
            return;
        }
        self.announcement.send_replace(Announcement {
            worker: self.id.clone(),
            pool: Arc::clone(&self.pool),
            catalog: None,
            detail: Some(why.to_owned()),
        });
        drop(forms);
    }

    async fn drained(&self, forms: &[Arc<Form>], deadline: Instant) -> bool {
        loop {
            let until = deadline.min(Instant::now() + REPORT);
            let over = join_all(forms.iter().map(|form| form.over.cancelled()));
            if timeout_at(until, over).await.is_ok() {
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
        let pool = &self.pool;
        if late {
            tracing::warn!(%pool, call = %call.id, method = %call.method, subject, age, "stopping a call that did not end in time");
        } else {
            tracing::info!(%pool, call = %call.id, method = %call.method, subject, age, "waiting for a call to end");
        }
    }
}

async fn stop(form: &Arc<Form>) {
    let patience = form.config.cancel_grace.get() + STOP;
    if timeout(patience, form.over.cancelled()).await.is_err() {
        form.pool.kill();
    }
}
