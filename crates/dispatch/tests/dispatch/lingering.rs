use std::time::Duration;

use serde_json::json;
use shoal_dispatch::{Config, PoolConfig};
use shoal_ports::{CallFailure, Dispatcher as _, Period, WorkerId, WorkerSet as _};
use shoal_protocol::{Method, Revision};

use crate::fake_worker::FakeWorker;
use crate::setting::{Setting, call, configured, legacy, setting, tools};

fn worker(id: &str) -> FakeWorker {
    FakeWorker::new(id, "a", tools(&["t"]))
}

async fn listed(setting: &Setting) -> usize {
    let list = call(Revision::V2025_11_25, Method::ToolsList, json!({}));
    setting.result(list).await["tools"]
        .as_array()
        .unwrap()
        .len()
}

#[tokio::test(start_paused = true)]
async fn a_pool_without_workers_stays_listed_and_refuses_for_now() {
    let setting = setting();
    setting.add(worker("w1"));
    let versions = setting.dispatch.facts().borrow().versions;
    let facts = setting.dispatch.facts();
    setting.dispatch.remove(&WorkerId::new("w1"));
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(listed(&setting).await, 1);
    let failure = setting.failure(legacy("t", json!({}))).await;
    let reason = "no worker of the pool a is connected; try again";
    assert_eq!(
        failure,
        CallFailure::NotExecuted {
            reason: reason.into()
        }
    );
    assert!(setting.dispatch.status().pools[0].lingering);
    setting.dispatch.add(std::sync::Arc::new(worker("w2")));
    tokio::time::sleep(Duration::from_secs(120)).await;
    setting.result(legacy("t", json!({}))).await;
    assert_eq!(setting.dispatch.facts().borrow().versions, versions);
    assert!(!facts.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_stays_away_is_dropped_and_the_change_told() {
    let setting = configured(Config {
        pools: [(
            "a".to_owned(),
            PoolConfig {
                linger: Period::seconds(5),
                ..PoolConfig::default()
            },
        )]
        .into(),
        ..Config::default()
    });
    setting.add(worker("w1"));
    setting.add(FakeWorker::new("w9", "b", tools(&["other"])));
    let mut facts = setting.dispatch.facts();
    let [before, resources, _] = facts.borrow_and_update().versions;
    assert!(setting.dispatch.remove_worker(&WorkerId::new("w1")));
    facts.changed().await.unwrap();
    let [after, same, _] = facts.borrow_and_update().versions;
    assert!(after != before && same == resources);
    assert_eq!(listed(&setting).await, 1);
    let error = setting.error(legacy("t", json!({}))).await;
    assert_eq!(error.message, "unknown tool: t");
    assert_eq!(setting.dispatch.status().pools.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_runs_on_a_worker_that_leaves_goes_on() {
    let setting = setting();
    let worker = setting.add(worker("w1").on_call(|_, mut script| async move {
        let answer = script.elicit(1).await;
        script.result(&answer).await;
    }));
    let mut running = setting.start(legacy("t", json!({}))).await.unwrap();
    worker.announce(None, Some("shutting down"));
    setting.until(|d| !d.status().pools[0].ready).await;
    setting.dispatch.remove(&WorkerId::new("w1"));
    let asked = running.events.next().await.unwrap();
    let shoal_ports::CallEventKind::Ask { ask, .. } = asked.kind else {
        panic!("no question");
    };
    let answer = shoal_protocol::RawJson::from_static(r#"{"content":[]}"#);
    let arrived = running
        .control
        .answer(ask, shoal_protocol::Outcome::Result(answer));
    assert!(arrived.await);
    let (_, outcome) = crate::setting::finish(&mut running).await;
    assert_eq!(crate::setting::result(outcome), json!({"content":[]}));
}
