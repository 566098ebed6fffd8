use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::mix::Kind;
use super::pacer::Pacer;
use super::session::Common;
use super::stage::Stages;
use crate::failure::Failure;
use crate::times::record;

/// Further sessions wait, and count as behind schedule.
pub(super) const WORKERS: usize = 128;

pub(super) struct Churn {
    pub(super) common: Arc<Common>,
    pub(super) pacer: Arc<Pacer>,
    pub(super) stages: Arc<Stages>,
    pub(super) next: Arc<AtomicUsize>,
    pub(super) calls: usize,
}

impl Churn {
    pub(super) async fn run(self) {
        while let Some(due) = self.pacer.next().await {
            let measured = self.stages.at(due).is_some_and(|stage| stage > 0);
            if let Err(failure) = self.life(due, measured).await {
                self.common.tally.failed("a session of churn", &failure);
            }
        }
    }

    async fn life(&self, due: Instant, measured: bool) -> Result<(), Failure> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut caller = self.common.open(number).await?;
        if measured {
            let took = due.elapsed();
            record(&mut self.common.tally.counts().opened, took);
        }
        for _ in 0..self.calls {
            let call = caller.call(Kind::Echo, &self.common.echo);
            self.common.in_time(call).await?;
        }
        self.common.in_time(caller.client.end()).await?;
        if measured {
            self.common.tally.counts().churned += 1;
        }
        Ok(())
    }
}
