use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use shoal_ports::{NodeId, NodeInfo, SessionId};
use shoal_rpc::Sight;
use tokio::time::Instant;

use super::{PresenceRules, View};
use crate::peers::{PeerGateways, Peers};
use crate::testing::Nowhere;

const GRACE: Duration = Duration::from_secs(6);

struct Nobody;

#[async_trait]
impl Peers for Nobody {
    fn connect(&self, _: &NodeInfo) -> PeerGateways {
        PeerGateways {
            own: Arc::new(Nowhere),
            relay: Arc::new(Nowhere),
        }
    }

    async fn look_for(&self, _: &NodeInfo) -> Sight {
        Sight::Unknown
    }
}

pub(crate) fn info(id: &str) -> NodeInfo {
    NodeInfo {
        id: NodeId::new(id),
        address: format!("{id}:7000"),
        session: true,
        edge: false,
        draining: false,
        starting: false,
        pools: Vec::new(),
        sessions: 0,
        in_flight: 0,
        version: String::new(),
    }
}

pub(crate) fn loaded(id: &str, sessions: u64) -> NodeInfo {
    NodeInfo {
        sessions,
        ..info(id)
    }
}

pub(crate) fn view<const N: usize>(me: &str, nodes: [NodeInfo; N]) -> View {
    let edge = NodeInfo {
        session: false,
        ..info(me)
    };
    let me = nodes.iter().find(|node| node.id.as_str() == me);
    let me = me.cloned().unwrap_or(edge);
    let alone = View::alone(me.clone());
    alone.refreshed(nodes.into(), me, &rules(Instant::now()))
}

pub(crate) fn rules(now: Instant) -> PresenceRules<'static> {
    PresenceRules {
        now,
        keep_missing: GRACE,
        announced_every: GRACE / 3,
        peers: &Nobody,
    }
}

fn ids(view: &View) -> Vec<&str> {
    view.nodes().map(|node| node.info().id.as_str()).collect()
}

#[test]
fn a_node_that_is_missing_is_addressed_but_gets_nothing_new() {
    let now = Instant::now();
    let before = view("a", [info("a"), info("b")]);
    let missing = before.refreshed(vec![], info("a"), &rules(now));
    assert_eq!(ids(&missing), ["a", "b"], "this node knows itself");
    let b = missing.node(&NodeId::new("b")).unwrap();
    assert!(!b.is_present() && !b.takes_sessions());
    assert!(missing.generation() > before.generation());

    let still = missing.refreshed(vec![], info("a"), &rules(now + GRACE / 2));
    assert_eq!(ids(&still), ["a", "b"]);
    let back = still.refreshed(vec![info("b")], info("a"), &rules(now + GRACE / 2));
    assert!(back.node(&NodeId::new("b")).unwrap().is_present());
    let gone = still.refreshed(vec![], info("a"), &rules(now + GRACE));
    assert_eq!(ids(&gone), ["a"]);
}

#[test]
fn load_changes_nobodys_place() {
    let before = view("e", [loaded("a", 1), info("b")]);
    let me = before.node(&NodeId::new("e")).unwrap().info().clone();
    let now = Instant::now();
    let busier = before.refreshed(vec![loaded("a", 9), info("b")], me.clone(), &rules(now));
    assert_eq!(busier.generation(), before.generation());
    let mut draining = info("a");
    draining.draining = true;
    let draining = before.refreshed(vec![draining, info("b")], me, &rules(now));
    assert_ne!(draining.generation(), before.generation());
}

#[test]
fn what_was_placed_counts_until_it_is_announced() {
    let now = Instant::now();
    let before = view("e", [info("a")]);
    let me = before.node(&NodeId::new("e")).unwrap().info().clone();
    let a = NodeId::new("a");
    let load = |view: &View| view.node(&a).unwrap().load();
    before
        .node(&a)
        .unwrap()
        .peer
        .placed
        .store(3, Ordering::Relaxed);
    let same = before.refreshed(vec![info("a")], me.clone(), &rules(now));
    assert_eq!(load(&same), 3);
    let announced = same.refreshed(vec![loaded("a", 2)], me, &rules(now));
    assert_eq!(load(&announced), 2);
}

#[test]
fn everybody_finds_the_same_taker() {
    let one = view("e", [info("a"), info("b"), info("c")]);
    let other = view("f", [info("c"), info("b"), info("a")]);
    for _ in 0..100 {
        let session = SessionId::random();
        let taker = |view: &View| view.taker(&session, |_| true).unwrap().info().id.clone();
        let taken = taker(&one);
        assert_eq!(taken, taker(&other));
        let next = one.taker(&session, |node| node.info().id != taken);
        assert_ne!(next.unwrap().info().id, taken);
    }
}
