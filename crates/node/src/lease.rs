//! Keeps the node's lease alive, without which others may take its sessions.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{Directory, NodeId, StoreError};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

/// Renewals within one lease: two may fail before it lapses.
const RENEWALS: u32 = 3;

/// A lease that is renewed in the background until it is ended.
#[derive(Debug)]
pub(crate) struct Lease {
    stop: CancellationToken,
    renewing: JoinHandle<()>,
}

impl Lease {
    /// Begins the lease of `node` and keeps it.
    ///
    /// # Errors
    /// When the store refuses the first time: without a lease the node cannot own sessions.
    pub(crate) async fn begin(
        directory: Arc<dyn Directory>,
        node: NodeId,
        length: Duration,
    ) -> Result<Self, StoreError> {
        directory.renew_lease(&node, length).await?;
        let stop = CancellationToken::new();
        let renewing = tokio::spawn(renew(directory, node, length, stop.clone()));
        Ok(Self { stop, renewing })
    }

    /// Ends the lease at once, so that nobody waits for it to lapse.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        if let Err(error) = self.renewing.await {
            tracing::warn!(%error, "could not end the lease");
        }
    }
}

async fn renew(
    directory: Arc<dyn Directory>,
    node: NodeId,
    length: Duration,
    stop: CancellationToken,
) {
    let every = length / RENEWALS;
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = ticks.tick() => {}
        }
        // A store that hangs must not hold up the next attempt.
        match timeout(every, directory.renew_lease(&node, length)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "could not renew the lease"),
            Err(_) => tracing::warn!("could not renew the lease in time"),
        }
    }
    if let Err(error) = directory.end_lease(&node).await {
        tracing::warn!(%error, "could not end the lease");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use shoal_ports::memory::{MemoryLimits, MemoryStore};
    use shoal_ports::{Directory as _, NodeId, SessionId, StoreError};

    use super::Lease;

    #[tokio::test(start_paused = true)]
    async fn sessions_are_held_while_the_lease_is_kept() {
        let store = MemoryStore::new(MemoryLimits::default());
        let (node, other) = (NodeId::new("a"), NodeId::new("b"));
        let length = Duration::from_secs(6);
        let lease = Lease::begin(Arc::new(store.clone()), node.clone(), length)
            .await
            .unwrap();
        let session = SessionId::random();
        let day = Duration::from_secs(86_400);
        store
            .create(&session, &node, Bytes::new(), day)
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        let held = store.claim(&session, &other).await;
        assert_eq!(held.unwrap_err(), StoreError::Held);
        lease.end().await;
        assert!(store.claim(&session, &other).await.is_ok());
    }
}
