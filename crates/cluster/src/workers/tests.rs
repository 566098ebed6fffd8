use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::{ClusterSettings, NodeId, NodeInfo};
use shoal_rpc::{JoinState, LinkConfig};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::link::{JoinLink, Links};
use super::{JoinConfig, WorkerJoins};
use crate::view::tests::info;

pub(super) fn joining(seeds: &[&str]) -> JoinConfig {
    JoinConfig {
        cluster: ClusterSettings {
            join: seeds.iter().map(|&seed| seed.to_owned()).collect(),
            ..ClusterSettings::default()
        },
        ..JoinConfig::default()
    }
}

#[derive(Clone, Default)]
struct Net {
    nodes: Arc<Mutex<Vec<NodeInfo>>>,
    log: Arc<Mutex<Vec<String>>>,
    links: Arc<Mutex<Vec<(String, FakeLink)>>>,
    busy: watch::Sender<bool>,
}

#[derive(Clone)]
struct FakeLink {
    address: String,
    state: watch::Sender<JoinState>,
    nodes: watch::Sender<Vec<NodeInfo>>,
    log: Arc<Mutex<Vec<String>>>,
    busy: watch::Receiver<bool>,
}

impl Net {
    fn log(&self) -> Vec<String> {
        let mut log = std::mem::take(&mut *self.log.lock());
        log.sort();
        log
    }

    fn set(&self, names: &[&str]) {
        let nodes: Vec<_> = names.iter().map(|name| info(name)).collect();
        self.nodes.lock().clone_from(&nodes);
        for (address, link) in self.links.lock().iter() {
            let there = nodes.iter().any(|node| node.address == *address);
            link.state.send_modify(|state| state.connected = there);
            if there {
                link.nodes.send_replace(nodes.clone());
            }
        }
    }
}

impl Links for Net {
    fn join(&self, address: &str) -> Box<dyn JoinLink> {
        self.log.lock().push(format!("join {address}"));
        let nodes = self.nodes.lock().clone();
        let node = nodes.iter().find(|node| node.address == address);
        let state = JoinState {
            connected: node.is_some(),
            node: node.map(|node| NodeId::new(node.id.as_str())),
            last_error: None,
        };
        let link = FakeLink {
            address: address.to_owned(),
            state: watch::Sender::new(state),
            nodes: watch::Sender::new(nodes),
            log: self.log.clone(),
            busy: self.busy.subscribe(),
        };
        self.links.lock().push((address.to_owned(), link.clone()));
        Box::new(link)
    }
}

#[async_trait]
impl JoinLink for FakeLink {
    fn state(&self) -> watch::Receiver<JoinState> {
        self.state.subscribe()
    }

    fn nodes(&self) -> watch::Receiver<Vec<NodeInfo>> {
        self.nodes.subscribe()
    }

    async fn leave(&self, _: Instant) -> bool {
        self.log.lock().push(format!("leave {}", self.address));
        self.busy.clone().wait_for(|busy| !busy).await.is_ok()
    }

    fn stop(&self) {
        self.log.lock().push(format!("stop {}", self.address));
    }
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

#[tokio::test(start_paused = true)]
async fn joins_follow_the_nodes_and_leave_them_all() {
    let net = Net::default();
    net.set(&["a", "b"]);
    let config = joining(&["a:7000"]);
    let joins = WorkerJoins::new(config.clone(), LinkConfig::default(), None);
    joins.keep(Box::new(net.clone()));
    settle().await;
    assert_eq!(net.log(), ["join a:7000", "join b:7000"]);
    net.set(&["a", "b", "c"]);
    settle().await;
    assert_eq!(net.log(), ["join c:7000"]);
    net.set(&["a", "c"]);
    settle().await;
    assert!(net.log().is_empty(), "it may come back");
    tokio::time::sleep(config.forget_after * 2).await;
    assert_eq!(net.log(), ["stop b:7000"]);
    let status = &joins.status()[0];
    assert_eq!(status.len(), 2);
    assert!(status.iter().all(|join| join.connected));
    assert!(joins.leave(Instant::now()).await);
    assert_eq!(net.log(), ["leave a:7000", "leave c:7000"]);
    net.set(&["a", "c", "d"]);
    settle().await;
    assert!(net.log().is_empty(), "it has left for good");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_while_calls_end_is_joined_to_be_left() {
    let net = Net::default();
    net.set(&["a", "b"]);
    let config = joining(&["a:7000"]);
    let joins = WorkerJoins::new(config.clone(), LinkConfig::default(), None);
    joins.keep(Box::new(net.clone()));
    settle().await;
    net.busy.send_replace(true);
    net.log();
    let leaving = joins.leave(Instant::now());
    tokio::pin!(leaving);
    assert!(timeout(Duration::from_secs(1), &mut leaving).await.is_err());
    assert_eq!(net.log(), ["leave a:7000", "leave b:7000"]);
    net.set(&["a", "c"]);
    assert!(
        timeout(config.forget_after * 2, &mut leaving)
            .await
            .is_err()
    );
    assert_eq!(net.log(), ["join c:7000", "leave c:7000", "stop b:7000"]);
    net.busy.send_replace(false);
    assert!(leaving.await);
}

#[tokio::test(start_paused = true)]
async fn workers_come_and_go_one_by_one() {
    let [stays, goes] = [Net::default(), Net::default()];
    for net in [&stays, &goes] {
        net.set(&["a"]);
    }
    let config = joining(&["a:7000"]);
    let joins = WorkerJoins::new(config.clone(), LinkConfig::default(), None);
    joins.keep(Box::new(stays.clone()));
    settle().await;
    let leaver = joins.keep(Box::new(goes.clone()));
    settle().await;
    assert_eq!(goes.log(), ["join a:7000"]);
    joins.remove(&leaver, Instant::now()).await;
    assert_eq!(goes.log(), ["leave a:7000"]);
    goes.set(&["a", "b"]);
    stays.set(&["a", "b"]);
    settle().await;
    assert!(goes.log().is_empty(), "it has left for good");
    assert_eq!(stays.log(), ["join a:7000", "join b:7000"]);
    assert_eq!(joins.status().len(), 1);
    assert!(joins.leave(Instant::now()).await);
    assert_eq!(stays.log(), ["leave a:7000", "leave b:7000"]);
}
