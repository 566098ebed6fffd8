use std::sync::Arc;

use shoal_ports::{Backoff, NodeInfo, Renewal, StoreError};
use shoal_telemetry::metrics::{LeaseOutcome, metrics};
use tokio::time::Instant;

use super::{MembersInner, NodeLoad, Ownership};

/// A failed renewal is retried sooner.
pub(super) async fn beat(shared: Arc<MembersInner>) {
    let every = shared.beat();
    let mut backoff = Backoff::new(every / 8, every);
    let mut next = every;
    let mut failing = false;
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep(next) => {}
        }
        let (renewed, announced) = tokio::join!(shared.renew(), shared.announce());
        match renewed.and(announced) {
            Ok(()) => {
                shared.remember_pools().await;
                *shared.failing.lock() = None;
                if std::mem::take(&mut failing) {
                    tracing::info!("renewed the lease and the announcement of this node again");
                }
                backoff.reset();
                next = every;
            }
            Err(error) => {
                *shared.failing.lock() = Some(error.to_string());
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "cannot renew the lease or announce this node; retrying");
                }
                next = backoff.pause();
            }
        }
    }
}

impl MembersInner {
    pub(super) async fn renew(&self) -> Result<(), StoreError> {
        if !self.me.lock().session {
            return Ok(());
        }
        let asked = Instant::now();
        let renewal = self.directory.renew_lease(&self.id, self.config.lease);
        let renewal = self.in_time(renewal).await;
        let found = renewal.map(|found| self.lease.lock().renewed(asked, found));
        let nodes = &metrics().nodes;
        let outcome = match &found {
            Ok(Renewal::Kept) => LeaseOutcome::Renewed,
            Ok(Renewal::Contested) => LeaseOutcome::Contested,
            Ok(Renewal::Begun) => LeaseOutcome::Lapsed,
            Err(_) => LeaseOutcome::Failed,
        };
        nodes.renewed(asked.elapsed(), outcome);
        match found? {
            Renewal::Kept => {}
            Renewal::Contested => {
                tracing::warn!(
                    "another node could not reach this one and has claimed sessions of it"
                );
                self.doubt();
            }
            Renewal::Begun => {
                nodes.lapsed();
                tracing::warn!(
                    "the lease had expired: other nodes may have claimed sessions of this node"
                );
                self.doubt();
            }
        }
        self.certainty.renewed(asked + self.config.lease);
        Ok(())
    }

    fn doubt(&self) {
        self.certainty.doubted();
        self.doubted.notify_one();
    }

    /// Whenever other nodes may have claimed sessions (a doubt), has `ownership` check its sessions until a check
    /// succeeds, and once more one lease later. The later check finds claims that were under way at the first,
    /// because another node reads the lease before it claims.
    pub(super) async fn revalidate(&self, ownership: &dyn Ownership) {
        let every = self.beat();
        let mut backoff = Backoff::new(every / 8, every);
        let mut once_more = None;
        loop {
            let late = async {
                match once_more {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            once_more = tokio::select! {
                () = self.doubted.notified() => Some(Instant::now() + self.config.lease),
                () = late => None,
            };
            let doubts = self.certainty.doubts();
            backoff.reset();
            while let Err(error) = ownership.revalidate().await {
                tracing::warn!(%error, "cannot ask the store which sessions this node still owns; retrying");
                tokio::time::sleep(backoff.pause()).await;
            }
            self.certainty.settled(doubts);
        }
    }

    pub(super) async fn announce(&self) -> Result<(), StoreError> {
        let _alone = self.announcing.lock().await;
        let me = self.myself();
        let said = self.membership.announce(&me, self.config.lease);
        self.in_time(said).await
    }

    pub(super) fn myself(&self) -> NodeInfo {
        let NodeLoad {
            sessions,
            in_flight,
        } = self.load.get().map(|load| load()).unwrap_or_default();
        NodeInfo {
            sessions,
            in_flight,
            pools: self.pools_here().known.into_iter().collect(),
            ..self.me.lock().clone()
        }
    }
}
