use std::time::Duration;

use shoal_ports::Backoff;
use tokio::time::{Instant, sleep};

use super::SPREAD;
use crate::config::RoutingConfig;
use crate::members::Members;

pub(super) struct RoutingPatience {
    begun: Instant,
    within: Duration,
    backoff: Backoff,
}

impl RoutingPatience {
    pub(super) fn new(config: &RoutingConfig, within: Duration) -> Self {
        Self {
            begun: Instant::now(),
            within,
            backoff: Backoff::new(config.resolve_every, config.resolve_at_most),
        }
    }

    pub(super) fn spent(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(super) fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// If nodes come, go or drain, resets the backoff and returns after a short random delay.
    pub(super) async fn pause(&mut self, members: &Members) {
        let pause = self.backoff.pause().min(self.left());
        let _closely = members.wait();
        tokio::select! {
            () = sleep(pause) => {}
            () = nodes_change(members) => {
                self.backoff.reset();
                self.spread().await;
            }
        }
    }

    fn left(&self) -> Duration {
        self.within.saturating_sub(self.spent())
    }

    async fn spread(&self) {
        let most = SPREAD.min(self.left());
        sleep(most.mul_f64(rand::random::<f64>())).await;
    }
}

async fn nodes_change(members: &Members) {
    let mut views = members.watch();
    let before = views.borrow_and_update().generation();
    while views.changed().await.is_ok() {
        if views.borrow_and_update().generation() != before {
            return;
        }
    }
}
