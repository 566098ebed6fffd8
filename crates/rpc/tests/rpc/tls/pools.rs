//! Certificates that name pools permit only work for those pools.

use std::time::Duration;

use rcgen::SanType;
use shoal_rpc::{JoinState, JoiningWorker, LinkConfig, WorkerJoin};

use super::authority::{Authority, Files, NAME, over};
use super::reached;
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Node, within};

const POOL: &str = "tools";

fn of_pools(authority: &Authority, pools: &[&str]) -> Files {
    let issued = authority.issue_with(|params| {
        for pool in pools {
            let name = format!("{pool}.pool.{NAME}").try_into().unwrap();
            params.subject_alt_names.push(SanType::DnsName(name));
        }
    });
    Files::with(&issued, &authority.pem())
}

async fn refused(node: &Node, files: &Files) -> String {
    let joining = JoiningWorker::new(ScriptedWorker::running("w"));
    let join = WorkerJoin::start(&joining, &node.address.to_string(), over(&files.open()));
    let mut state = join.state();
    loop {
        state.changed().await.unwrap();
        let said: Option<String> = JoinState::clone(&state.borrow()).last_error;
        if let Some(reason) = said.filter(|reason| reason.contains("pools")) {
            return reason;
        }
    }
}

#[tokio::test]
async fn a_worker_works_for_the_pools_of_its_certificate() {
    within(async {
        let authority = Authority::new();
        let there = Files::of(&authority);
        for pools in [&[POOL][..], &["other", POOL], &["*"], &[]] {
            let node = Node::start(over(&there.open())).await;
            let here = of_pools(&authority, pools);
            let joining = JoiningWorker::new(ScriptedWorker::running("w"));
            let address = node.address.to_string();
            let _join = WorkerJoin::start(&joining, &address, over(&here.open()));
            node.set.worker("w").await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_worker_of_another_pool_is_refused_and_told_why() {
    within(async {
        let authority = Authority::new();
        let node = Node::start(over(&Files::of(&authority).open())).await;
        let why = refused(&node, &of_pools(&authority, &["other"])).await;
        assert!(why.contains("other") && why.contains(POOL), "{why}");
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_is_refused_comes_again_less_and_less_often() {
    let authority = Authority::new();
    let node = Node::start(over(&Files::of(&authority).open())).await;
    let joining = JoiningWorker::new(ScriptedWorker::running("w"));
    let config = LinkConfig {
        backoff: Duration::from_millis(10),
        backoff_max: Duration::from_secs(3600),
        ..over(&of_pools(&authority, &["other"]).open())
    };
    let join = WorkerJoin::start(&joining, &node.address.to_string(), config);
    let mut state = join.state();
    let mut joined = 0;
    let counting = async {
        loop {
            state.changed().await.unwrap();
            joined += u32::from(state.borrow_and_update().connected);
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(2), counting).await;
    assert!((1..=10).contains(&joined), "{joined} links");
}

#[tokio::test]
async fn nobody_takes_the_name_of_a_worker_of_another_pool() {
    within(async {
        let authority = Authority::new();
        let node = Node::start(over(&Files::of(&authority).open())).await;
        let good = of_pools(&authority, &[POOL]);
        let joining = JoiningWorker::new(ScriptedWorker::running("w"));
        let address = node.address.to_string();
        let _join = WorkerJoin::start(&joining, &address, over(&good.open()));
        let before = node.set.worker("w").await;
        refused(&node, &of_pools(&authority, &["other"])).await;
        let after = node.set.worker("w").await;
        assert!(std::sync::Arc::ptr_eq(&before, &after), "it was replaced");
    })
    .await;
}

#[tokio::test]
async fn a_worker_is_no_node() {
    within(async {
        let authority = Authority::new();
        let (full, worker) = (Files::of(&authority), of_pools(&authority, &["*"]));
        let node = Node::start(over(&full.open())).await;
        let why = reached(&node, over(&worker.open())).await.unwrap_err();
        assert!(why.contains("not for nodes"), "{why}");

        let posing = Node::start(over(&worker.open())).await;
        let why = reached(&posing, over(&full.open())).await.unwrap_err();
        assert!(why.contains("not for nodes"), "{why}");
        assert_eq!(reached(&node, over(&full.open())).await, Ok(()));
    })
    .await;
}
