use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use shoal_dispatch::{Config, PoolConfig, ScaleToZero};
use shoal_ports::{Announcement, CallFailure, PoolCatalog, WorkerId};
use shoal_protocol::{Method, Revision};

use crate::fake_worker::FakeWorker;
use crate::setting::{Setting, call, configured, legacy, tools};

const LINGER: Duration = Duration::from_secs(60);

fn vacant() -> PoolConfig {
    PoolConfig {
        linger: LINGER.into(),
        scale_to_zero: Some(ScaleToZero::default()),
        ..PoolConfig::default()
    }
}

fn setting() -> Setting {
    let pools = [("zero", vacant()), ("one", PoolConfig::default())];
    configured(Config {
        pools: pools.map(|(name, pool)| (name.to_owned(), pool)).into(),
        ..Config::default()
    })
}

fn recall(setting: &Setting, pool: &str, names: &[&str]) {
    let catalog = Arc::new(tools(names));
    setting.dispatch.recall(vec![(pool.to_owned(), catalog)]);
}

async fn names(setting: &Setting) -> Vec<String> {
    let list = call(Revision::V2025_11_25, Method::ToolsList, json!({}));
    let list = setting.result(list).await;
    let tools = list["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn remembered(setting: &Setting) -> Vec<(String, PoolCatalog, bool)> {
    let all = setting.dispatch.to_remember().into_iter();
    all.map(|it| (it.pool.to_string(), (*it.catalog).clone(), it.replaces))
        .collect()
}

fn tools_of(setting: &Setting) -> Vec<(String, usize, bool)> {
    let all = remembered(setting).into_iter();
    all.map(|(pool, catalog, replaces)| (pool, catalog.tools.len(), replaces))
        .collect()
}

fn zero(tools: usize, replaces: bool) -> Vec<(String, usize, bool)> {
    vec![("zero".to_owned(), tools, replaces)]
}

#[tokio::test(start_paused = true)]
async fn a_recalled_pool_stays_listed_and_is_no_news() {
    let setting = setting();
    setting.add(FakeWorker::new("b1", "other", tools(&["b"])));
    assert_eq!(setting.dispatch.unknown_scaled_pools(), ["zero"]);
    recall(&setting, "zero", &["t"]);
    recall(&setting, "one", &["never"]);
    recall(&setting, "strange", &["never"]);
    assert!(setting.dispatch.unknown_scaled_pools().is_empty());
    assert_eq!(names(&setting).await, ["b", "t"]);
    assert_eq!(tools_of(&setting), zero(1, false));
    let settings = PoolConfig {
        prefix: "p_".to_owned(),
        ..vacant()
    };
    let change = BTreeMap::from([("zero".to_owned(), Some(settings))]);
    setting.dispatch.configure(change);
    assert_eq!(names(&setting).await, ["b", "p_t"]);
    assert_eq!(tools_of(&setting), zero(1, false));
    recall(&setting, "zero", &["older", "still"]);
    assert_eq!(names(&setting).await, ["b", "p_t"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_worker_says_is_news_and_stays_without_it() {
    let setting = setting();
    recall(&setting, "zero", &["t"]);
    let starting = setting.add(FakeWorker::new("z1", "zero", tools(&["t", "new"])));
    assert_eq!(tools_of(&setting), zero(2, true));
    starting.announce(None, Some("leaving"));
    setting.until(|d| !d.status().pools[0].ready).await;
    setting.dispatch.remove_worker(&WorkerId::new("z1"));
    tokio::time::sleep(2 * LINGER).await;
    setting.add(FakeWorker::new("b1", "other", tools(&["b"])));
    assert_eq!(names(&setting).await, ["b", "t", "new"]);
    assert_eq!(tools_of(&setting), zero(2, true));
    let failure = setting.failure(legacy("new", json!({}))).await;
    assert!(
        matches!(failure, CallFailure::NotReady { .. }),
        "{failure:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_its_workers_remove_is_recalled_no_more() {
    let setting = setting();
    setting.add(FakeWorker::new("b1", "other", tools(&["b"])));
    let worker = setting.add(FakeWorker::new("z1", "zero", tools(&["t"])));
    worker.announce(None, Some(Announcement::REMOVED));
    setting.until(|d| d.known_pools().len() == 1).await;
    let gone = |setting: &Setting| setting.dispatch.to_forget();
    assert_eq!(gone(&setting), ["zero".into()]);
    setting.dispatch.remove_worker(&WorkerId::new("z1"));
    assert!(setting.dispatch.unknown_scaled_pools().is_empty());
    assert_eq!(tools_of(&setting), []);
    recall(&setting, "zero", &["t"]);
    assert_eq!(names(&setting).await, ["b"]);
    setting.add(FakeWorker::new("z2", "zero", tools(&["t"])));
    assert_eq!(names(&setting).await, ["b", "t"]);
    assert!(gone(&setting).is_empty());
    let worker = setting.add(FakeWorker::new("z2", "zero", tools(&["t"])));
    worker.announce(None, Some(Announcement::REMOVED));
    setting.dispatch.remove_worker(&WorkerId::new("z2"));
    assert_eq!(gone(&setting), ["zero".into()]);
    for settings in [None, Some(vacant())] {
        let change = BTreeMap::from([("zero".to_owned(), settings)]);
        setting.dispatch.configure(change);
        assert!(gone(&setting).is_empty());
    }
    recall(&setting, "zero", &["t"]);
    assert_eq!(names(&setting).await, ["b", "t"]);
}
