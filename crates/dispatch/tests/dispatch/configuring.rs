use std::collections::BTreeMap;

use serde_json::json;
use shoal_dispatch::{Config, PoolConfig, ToolRules};
use shoal_ports::{Announcement, CallFailure, CatalogSettings, Dispatcher as _, Period, WorkerId};
use shoal_protocol::{Method, Revision};

use crate::fake_worker::FakeWorker;
use crate::setting::{Setting, call, configured, legacy, setting, tools};

fn worker(id: &str, pool: &str) -> FakeWorker {
    FakeWorker::new(id, pool, tools(&["t", "hidden"]))
}

async fn names(setting: &Setting) -> Vec<String> {
    let list = call(Revision::V2025_11_25, Method::ToolsList, json!({}));
    let list = setting.result(list).await;
    let tools = list["tools"].as_array().unwrap().iter();
    let name = |tool: &serde_json::Value| tool["name"].as_str().unwrap().to_owned();
    tools.map(name).collect()
}

fn hiding() -> PoolConfig {
    PoolConfig {
        prefix: "a_".to_owned(),
        tools: ToolRules {
            deny: vec!["hidden".to_owned()],
            ..ToolRules::default()
        },
        ..PoolConfig::default()
    }
}

fn configure(setting: &Setting, settings: Option<PoolConfig>) {
    let change = BTreeMap::from([("a".to_owned(), settings)]);
    setting.dispatch.configure(change);
}

#[tokio::test]
async fn other_rules_hold_at_once_and_listeners_are_told() {
    let setting = setting();
    setting.add(worker("a1", "a"));
    setting.add(FakeWorker::new("b1", "b", tools(&["b"])));
    let facts = setting.dispatch.facts();
    let before = facts.borrow().versions;
    configure(&setting, Some(hiding()));
    assert_eq!(names(&setting).await, ["a_t", "b"]);
    setting.result(legacy("a_t", json!({}))).await;
    let error = setting.error(legacy("hidden", json!({}))).await;
    assert_eq!(error.message, "unknown tool: hidden");
    let told = facts.borrow().versions;
    assert!(told[0] != before[0] && told[1..] == before[1..]);
    let silent = PoolConfig {
        hold: Some(Period::seconds(1)),
        ..hiding()
    };
    configure(&setting, Some(silent));
    assert_eq!(facts.borrow().versions, told);
    configure(&setting, Some(PoolConfig::default()));
    assert_eq!(facts.borrow().versions, before);
    assert_eq!(names(&setting).await, ["t", "hidden", "b"]);
}

#[tokio::test]
async fn rules_stay_for_as_long_as_the_pool_is_offered() {
    let setting = setting();
    let worker_a = setting.add(worker("a1", "a"));
    setting.add(FakeWorker::new("b1", "b", tools(&["b"])));
    configure(&setting, Some(hiding()));
    configure(&setting, None);
    assert_eq!(names(&setting).await, ["a_t", "b"]);
    worker_a.announce(None, Some(Announcement::REMOVED));
    setting
        .until(|d| d.status().pools[0].removed && d.known_pools().len() == 1)
        .await;
    setting.dispatch.remove_worker(&WorkerId::new("a1"));
    setting.add(worker("a2", "a"));
    assert_eq!(names(&setting).await, ["t", "hidden", "b"]);
}

#[tokio::test]
async fn a_pool_that_is_named_no_more_is_not_waited_for() {
    let setting = setting();
    setting.add(FakeWorker::new("b1", "b", tools(&["b"])));
    for named_while_it_leaves in [false, true] {
        setting.add(worker("a1", "a"));
        configure(&setting, Some(PoolConfig::default()));
        if !named_while_it_leaves {
            configure(&setting, None);
            assert_eq!(names(&setting).await, ["t", "hidden", "b"]);
        }
        // The pool's only worker stops without announcing a removal, as when its Deployment is
        // deleted.
        setting.dispatch.remove_worker(&WorkerId::new("a1"));
        if named_while_it_leaves {
            assert_eq!(names(&setting).await, ["t", "hidden", "b"]);
            configure(&setting, None);
        }
        assert_eq!(names(&setting).await, ["b"]);
        let error = setting.error(legacy("t", json!({}))).await;
        assert_eq!(error.message, "unknown tool: t");
    }
}

#[tokio::test]
async fn a_pool_is_removed_when_all_its_workers_say_so() {
    let setting = setting();
    let workers = [
        setting.add(worker("a1", "a")),
        setting.add(worker("a2", "a")),
    ];
    setting.add(FakeWorker::new("b1", "b", tools(&["b"])));
    workers[0].announce(None, Some(Announcement::REMOVED));
    let waiting = |d: &shoal_dispatch::Dispatch| {
        let status = d.status();
        status.pools[0].workers.iter().filter(|w| !w.ready).count()
    };
    setting.until(|d| waiting(d) == 1).await;
    setting.result(legacy("t", json!({}))).await;
    workers[1].announce(None, Some(Announcement::REMOVED));
    setting.until(|d| waiting(d) == 2).await;
    assert_eq!(names(&setting).await, ["b"]);
    let error = setting.error(legacy("t", json!({}))).await;
    assert_eq!(error.message, "unknown tool: t");
    assert!(setting.dispatch.is_whole());
    workers[1].announce(Some(tools(&["t"])), None);
    setting.until(|d| d.known_pools().len() == 2).await;
    setting.result(legacy("t", json!({}))).await;
    workers[1].announce(None, Some(Announcement::LEAVING));
    setting.until(|d| waiting(d) == 2).await;
    assert!(matches!(
        setting.failure(legacy("t", json!({}))).await,
        CallFailure::NotExecuted { .. }
    ));
}

#[tokio::test]
async fn a_pool_that_is_named_no_more_takes_no_calls_where_only_named_ones_do() {
    let setting = configured(Config {
        catalog: CatalogSettings {
            unnamed_pools: false,
            ..Config::default().catalog
        },
        pools: BTreeMap::from([("a".to_owned(), hiding())]),
        ..Config::default()
    });
    setting.add(worker("a1", "a"));
    setting.result(legacy("a_t", json!({}))).await;
    configure(&setting, None);
    let error = setting.error(legacy("a_t", json!({}))).await;
    assert_eq!(error.message, "method not found: tools/call");
    assert!(setting.dispatch.status().pools[0].unnamed);
    configure(&setting, Some(hiding()));
    setting.result(legacy("a_t", json!({}))).await;
}
