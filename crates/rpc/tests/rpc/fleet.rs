use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{
    CallFailure, ListOwner, NodeId, OwnLists, PoolCatalog, Principal, ResourceUpdated, SessionId,
    WorkerLoad,
};
use shoal_protocol::RawJson;
use shoal_rpc::{LinkConfig, WorkerJoin};
use tokio::time::Instant;

use crate::probe::{journaled, next, repeatable, rest};
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Node, Pair, config, node_info, until, within};

#[tokio::test]
async fn announcements_and_their_changes_arrive() {
    within(async {
        let worker = ScriptedWorker::running("w");
        let catalog = PoolCatalog {
            instructions: Some("be kind".to_owned()),
            tools: vec![RawJson::from_static(r#"{"name":"a", "x":1.0}"#)],
            generations: [3, 1, 4],
            ..PoolCatalog::default()
        };
        worker.announcement.send_modify(|said| {
            said.catalog = Some(Arc::new(catalog.clone()));
            said.detail = Some("degraded".to_owned());
        });
        let pair = Pair::new(worker).await;
        let mut said = pair.remote.announcement();
        {
            let said = said.borrow_and_update();
            assert_eq!((said.worker.as_str(), &*said.pool), ("w", "tools"));
            assert_eq!(said.catalog.as_deref(), Some(&catalog));
            assert_eq!(said.detail.as_deref(), Some("degraded"));
        }
        pair.worker
            .announcement
            .send_modify(|said| said.catalog = None);
        said.wait_for(|said| said.catalog.is_none()).await.unwrap();
        let long = |tools: usize| PoolCatalog {
            tools: (0..tools).map(|_| crate::probe::long(1000)).collect(),
            ..PoolCatalog::default()
        };
        pair.worker
            .announcement
            .send_modify(|said| said.catalog = Some(Arc::new(long(1000))));
        said.wait_for(|said| said.catalog.as_deref() == Some(&long(1000)))
            .await
            .unwrap();
        pair.worker
            .announcement
            .send_modify(|said| said.catalog = Some(Arc::new(long(20_000))));
        let said = said.wait_for(|said| said.catalog.is_none()).await.unwrap();
        assert!(said.detail.as_ref().unwrap().contains("does not fit"));
    })
    .await;
}

#[tokio::test]
async fn load_is_reported_and_what_happens_between_reports_is_guessed() {
    within(async {
        let worker = ScriptedWorker::running("w");
        let rarely = LinkConfig {
            load_interval: Duration::from_millis(5),
            ..config()
        };
        let pair = Pair::configured(worker, config(), rarely).await;
        let load = |running, queued| WorkerLoad {
            running,
            queued,
            capacity: 8,
        };
        until(|| pair.remote.load() == load(0, 0)).await;
        let running = pair.remote.start(journaled(), None).await.unwrap();
        until(|| pair.remote.load().running == 1).await;
        *pair.worker.load.lock() = load(5, 2);
        until(|| pair.remote.load() == load(5, 2)).await;
        drop(running);
    })
    .await;
}

#[tokio::test]
async fn a_worker_is_told_which_results_it_need_not_keep() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled().id;
        pair.remote.acknowledge(call);
        pair.worker.load.lock().queued += 1;
        pair.worker.logged(&format!("acknowledged {call}")).await;
        let many: Vec<_> = (0..64).map(|_| journaled().id).collect();
        many.iter().for_each(|call| pair.remote.acknowledge(*call));
        for call in many {
            pair.worker.logged(&format!("acknowledged {call}")).await;
        }
    })
    .await;
}

#[tokio::test]
async fn only_subscribed_updates_arrive() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let mut updates = pair.remote.resource_updates();
        pair.remote.subscribe("file:a").await.unwrap();
        pair.remote.subscribe("file:a").await.unwrap();
        let refused = pair.remote.subscribe("no:b").await.unwrap_err();
        assert_eq!(refused.message, "no such resource");
        for uri in ["file:other", "no:b", "file:a"] {
            pair.worker.updates.send(updated(uri)).unwrap();
        }
        assert_eq!(updates.recv().await.unwrap(), updated("file:a"));
        pair.remote.unsubscribe("file:a").await;
        pair.worker.logged("unsubscribe file:a").await;
        pair.remote.end_session(&SessionId::new("s-1")).await;
        pair.worker.logged("end s-1").await;
        let log = pair.worker.log.borrow().clone();
        let asked = log
            .iter()
            .filter(|line| *line == "subscribe file:a")
            .count();
        assert_eq!(asked, 1, "{log:?}");
    })
    .await;
}

#[tokio::test]
async fn subscriptions_outlive_the_link_and_what_was_missed_is_told() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let mut updates = pair.remote.resource_updates();
        pair.remote.subscribe("file:a").await.unwrap();
        pair.remote.subscribe("file:b").await.unwrap();
        pair.proxy.block();
        pair.seen(false).await;
        let unreachable = pair.remote.subscribe("file:c").await;
        assert!(unreachable.is_err());
        pair.remote.unsubscribe("file:b").await;
        pair.remote.end_session(&SessionId::new("s-2")).await;
        pair.proxy.unblock();
        let missed = updates.recv().await.unwrap();
        assert_eq!(missed.uri, "file:a");
        pair.worker.logged("unsubscribe file:b").await;
        pair.worker.logged("end s-2").await;
        pair.seen(true).await;
        pair.connected(true).await;
        pair.worker.updates.send(updated("file:a")).unwrap();
        assert_eq!(updates.recv().await.unwrap(), updated("file:a"));
    })
    .await;
}

#[tokio::test]
async fn who_sees_other_lists_is_known_whatever_the_link_has_missed() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let told = pair.remote.own_lists();
        let own = &pair.worker.own_lists;
        let owners = || {
            let session = |at: u64| ListOwner::Session(SessionId::new(format!("s-{at}")));
            let principal = Principal::new("alice");
            let others = [
                ListOwner::Principal(principal.clone()),
                ListOwner::Sessionless(principal),
            ];
            (0..2_500).map(session).chain(others)
        };
        let numbers = |number: u64| owners().map(move |owner| (owner, [number, 0, 7]));
        own.send_replace(Arc::new(numbers(1).collect()));
        until(|| *told.borrow() == *own.borrow()).await;
        own.send_modify(|own| {
            let own = Arc::make_mut(own);
            own.pop_first();
            own.insert(ListOwner::Session(SessionId::new("s-7")), [9, 9, 9]);
        });
        until(|| *told.borrow() == *own.borrow()).await;
        pair.proxy.block();
        pair.seen(false).await;
        own.send_replace(Arc::new(numbers(2).skip(5).collect()));
        pair.proxy.unblock();
        until(|| *told.borrow() == *own.borrow()).await;
        own.send_replace(OwnLists::default());
        until(|| told.borrow().is_empty()).await;
    })
    .await;
}

#[tokio::test]
async fn two_nodes_subscribe_without_ending_one_another() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let other = Node::start(config()).await;
        let join = WorkerJoin::start(&pair.joining, &other.address.to_string(), config());
        let remote = other.set.worker("w").await;
        pair.remote.subscribe("file:a").await.unwrap();
        remote.subscribe("file:a").await.unwrap();
        remote.unsubscribe("file:a").await;
        remote.end_session(&SessionId::new("after")).await;
        pair.worker.logged("end after").await;
        let mut updates = pair.remote.resource_updates();
        pair.worker.updates.send(updated("file:a")).unwrap();
        assert_eq!(updates.recv().await.unwrap(), updated("file:a"));
        let log = pair.worker.log.borrow().clone();
        assert!(!log.contains(&"unsubscribe file:a".to_owned()), "{log:?}");
        drop(join);
        pair.join.stop();
        pair.worker.logged("unsubscribe file:a").await;
    })
    .await;
}

#[tokio::test]
async fn workers_are_told_of_the_nodes() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let mut nodes = pair.join.nodes();
        let first = vec![node_info("node-1")];
        nodes.wait_for(|nodes| *nodes == first).await.unwrap();
        let both = vec![node_info("node-1"), node_info("node-2")];
        pair.node.nodes.send_replace(both.clone());
        nodes.wait_for(|nodes| *nodes == both).await.unwrap();
        let state = pair.join.state().borrow().clone();
        assert!(state.connected);
        assert_eq!(state.node, Some(NodeId::new("node-1")));
        assert_eq!(state.last_error, None);
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_leaves_finishes_what_it_has() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call, None).await.unwrap();
        let record = pair.worker.call(id).await;
        let leaving = pair.join.leave(Instant::now() + Duration::from_secs(600));
        let finish = async {
            let mut said = pair.remote.announcement();
            let said = said.wait_for(|said| said.catalog.is_none()).await.unwrap();
            assert!(said.detail.is_some());
            drop(said);
            record.progress(1);
            record.result(2);
            rest(&mut running).await
        };
        let (idle, events) = tokio::join!(leaving, finish);
        assert!(idle);
        assert_eq!(events.len(), 2);
        pair.node.set.gone("w").await;
        let refused = pair.remote.start(repeatable(), None).await.err();
        assert!(matches!(refused, Some(CallFailure::NotExecuted { .. })));
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_must_leave_leaves_its_calls() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let mut running = pair.remote.start(journaled(), None).await.unwrap();
        let idle = pair.join.leave(Instant::now()).await;
        assert!(!idle);
        assert_eq!(next(&mut running).await, None);
        pair.node.set.gone("w").await;
    })
    .await;
}

#[tokio::test]
async fn leaving_a_node_that_is_away_ends() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        pair.proxy.block();
        pair.connected(false).await;
        assert!(
            pair.join
                .leave(Instant::now() + Duration::from_secs(600))
                .await
        );
    })
    .await;
}

#[tokio::test]
async fn a_node_that_leaves_tells_its_workers() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        pair.node.shutdown.cancel();
        let mut state = pair.join.state();
        let state = state
            .wait_for(|state| !state.connected && state.last_error.is_some())
            .await
            .unwrap();
        assert!(
            state.last_error.as_ref().unwrap().contains("leaving"),
            "{state:?}"
        );
    })
    .await;
}

fn updated(uri: &str) -> ResourceUpdated {
    ResourceUpdated {
        uri: uri.to_owned(),
        params: RawJson::of(&serde_json::json!({ "uri": uri, "extra": 1 })),
    }
}
