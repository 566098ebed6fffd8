//! Which pools there are, where a node that starts has only the store to ask.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_cluster::PoolsHere;
use shoal_ports::{Membership, NodeId, NodeInfo, StoreError};

use crate::test_cluster::{LEASE, TestCluster};

const HOUR: Duration = Duration::from_secs(3_600);

/// Does not say what it remembers when it is asked first.
struct Slow {
    membership: Arc<dyn Membership>,
    asked: AtomicUsize,
}

#[async_trait]
impl Membership for Slow {
    async fn announce(&self, node: &NodeInfo, life: Duration) -> Result<(), StoreError> {
        self.membership.announce(node, life).await
    }

    async fn withdraw(&self, node: &NodeId) -> Result<(), StoreError> {
        self.membership.withdraw(node).await
    }

    async fn nodes(&self) -> Result<Vec<NodeInfo>, StoreError> {
        self.membership.nodes().await
    }

    async fn remember_pools(&self, pools: &[String], life: Duration) -> Result<(), StoreError> {
        self.membership.remember_pools(pools, life).await
    }

    async fn remembered_pools(&self) -> Result<Vec<String>, StoreError> {
        match self.asked.fetch_add(1, Ordering::SeqCst) {
            0 => std::future::pending().await,
            _ => self.membership.remembered_pools().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_store_remembers_is_asked_for_until_it_is_known_and_not_lost_meanwhile() {
    let mut cluster = TestCluster::new();
    let membership = cluster.store.membership.clone();
    let both = ["early", "late"].map(str::to_owned);
    membership.remember_pools(&both, HOUR).await.unwrap();
    cluster.store.membership = Arc::new(Slow {
        membership: membership.clone(),
        asked: AtomicUsize::new(0),
    });
    let edge = cluster.edge("a").await;
    let expected = Arc::new(Mutex::new(BTreeSet::new()));
    let known = BTreeSet::from(["early".to_owned()]);
    let (waiting, told) = (expected.clone(), expected.clone());
    edge.members.share_pools(
        move || PoolsHere {
            is_whole: waiting.lock().is_subset(&known),
            known: known.clone(),
        },
        move |pools| told.lock().clone_from(pools),
    );
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(*expected.lock(), BTreeSet::from(both.clone()));
    assert_eq!(membership.remembered_pools().await.unwrap(), both);
}
