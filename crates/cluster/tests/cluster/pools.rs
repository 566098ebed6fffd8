use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use shoal_cluster::PoolsHere;
use shoal_ports::contract::Intercepted;

use crate::test_cluster::{LEASE, TestCluster, TestNode};

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn what_the_store_remembers_is_asked_for_until_it_is_known_and_not_lost_meanwhile() {
    let mut cluster = TestCluster::new();
    let membership = cluster.store.membership.clone();
    let both = ["early", "late"].map(str::to_owned);
    membership.remember_pools(&both, HOUR).await.unwrap();
    let asked = AtomicUsize::new(0);
    let hangs_first = move |step: &'static str| {
        let hangs = step == "remembered_pools" && asked.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            match hangs {
                true => std::future::pending().await,
                false => Ok(()),
            }
        }
    };
    cluster.store.membership = Arc::new(Intercepted::new(membership.clone(), hangs_first));
    let edge = cluster.edge("a").await;
    let expected = Arc::new(Mutex::new(BTreeSet::new()));
    let known = BTreeSet::from(["early".to_owned()]);
    let (waiting, told) = (expected.clone(), expected.clone());
    edge.members.share_pools(
        move || PoolsHere {
            is_whole: waiting.lock().is_subset(&known),
            known: known.clone(),
            contested: BTreeMap::new(),
        },
        move |elsewhere| told.lock().clone_from(&elsewhere.known),
    );
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!(*expected.lock(), BTreeSet::from(both.clone()));
    assert_eq!(membership.remembered_pools().await.unwrap(), both);
}

async fn disputed(
    cluster: &TestCluster,
    name: &str,
    keeper: &str,
) -> (TestNode, Arc<Mutex<String>>) {
    let edge = cluster.edge(name).await;
    let settled = Arc::new(Mutex::new(String::new()));
    let (here, told) = (keeper.to_owned(), settled.clone());
    edge.members.share_pools(
        move || PoolsHere {
            known: ["one", "other"].map(str::to_owned).into(),
            is_whole: true,
            contested: [("tool t".to_owned(), here.clone())].into(),
        },
        move |elsewhere| {
            if let Some(pool) = elsewhere.settled.get("tool t") {
                told.lock().clone_from(pool);
            }
        },
    );
    (edge, settled)
}

#[tokio::test(start_paused = true)]
async fn nodes_agree_on_which_pool_keeps_a_name_and_a_node_that_starts_is_told_at_once() {
    let cluster = TestCluster::new();
    let (_a, first) = disputed(&cluster, "a", "other").await;
    tokio::time::sleep(LEASE).await;
    let (_b, second) = disputed(&cluster, "b", "one").await;
    assert_eq!(*second.lock(), "other", "before it has seen any worker");
    tokio::time::sleep(LEASE).await;
    for agreed in [first, second] {
        assert_eq!(*agreed.lock(), "other");
    }
}
