use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use shoal_dispatch::{Config, ItemKind};
use shoal_ports::{Call, CallFailure, PoolCatalog, WorkerId};
use shoal_protocol::{Method, Revision};

use crate::fake_worker::FakeWorker;
use crate::setting::{Setting, call, configured, items, legacy, setting, tools};

const LINGER: Duration = Duration::from_secs(60);

fn one_of_each() -> PoolCatalog {
    let mut catalog = tools(&["t"]);
    catalog.prompts = items(json!([{ "name": "p" }]));
    catalog.resources = items(json!([{ "uri": "file:///r", "name": "r" }]));
    let template = json!([{ "uriTemplate": "mem:///{id}", "name": "m" }]);
    catalog.resource_templates = items(template);
    catalog
}

fn calls() -> [Call; 4] {
    let of = |method, params| call(Revision::V2025_11_25, method, params);
    [
        legacy("t", json!({})),
        of(Method::PromptsGet, json!({ "name": "p" })),
        of(Method::ResourcesRead, json!({ "uri": "file:///r" })),
        of(Method::ResourcesRead, json!({ "uri": "mem:///1" })),
    ]
}

fn offers(pool: &str, catalog: PoolCatalog) -> FakeWorker {
    FakeWorker::new(&format!("{pool}@w"), pool, catalog)
}

fn starting() -> Setting {
    configured(Config {
        settle_within: Duration::from_secs(15),
        ..Config::default()
    })
}

async fn asked(setting: &Setting) {
    for call in calls() {
        setting.result(call).await;
    }
}

fn keepers(setting: &Setting) -> Vec<(ItemKind, String)> {
    let conflicts = setting.dispatch.conflicts().into_iter();
    conflicts.map(|it| (it.kind, it.kept)).collect()
}

fn names(pool: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("tool: t".to_owned(), pool.to_owned())])
}

fn pools(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

async fn called(setting: &Setting, workers: [&Arc<FakeWorker>; 2]) -> [usize; 2] {
    let before = workers.map(|worker| worker.calls());
    setting.result(legacy("t", json!({}))).await;
    [0, 1].map(|at| workers[at].calls() - before[at])
}

#[tokio::test(start_paused = true)]
async fn who_has_a_name_keeps_it_until_the_pool_leaves_for_good() {
    let setting = setting();
    let first = setting.add(offers("b", one_of_each()));
    let second = setting.add(offers("a", one_of_each()));
    asked(&setting).await;
    assert_eq!((first.calls(), second.calls()), (4, 0));
    let kinds = [
        ItemKind::Tool,
        ItemKind::Prompt,
        ItemKind::Resource,
        ItemKind::ResourceTemplate,
    ];
    assert_eq!(keepers(&setting), kinds.map(|kind| (kind, "b".to_owned())));
    setting.dispatch.remove_worker(&WorkerId::new("b@w"));
    tokio::time::sleep(LINGER / 2).await;
    setting.failure(legacy("t", json!({}))).await;
    tokio::time::sleep(LINGER).await;
    asked(&setting).await;
    assert_eq!((first.calls(), second.calls()), (4, 4));
    assert!(setting.dispatch.conflicts().is_empty());
}

#[tokio::test]
async fn a_pool_that_was_there_before_does_not_get_a_name_that_it_offers_later() {
    let setting = setting();
    let elder = setting.add(offers("a", tools(&["other"])));
    let holder = setting.add(offers("b", tools(&["t"])));
    elder.announce(Some(tools(&["other", "t"])), None);
    setting
        .until(|dispatch| !dispatch.conflicts().is_empty())
        .await;
    assert_eq!(called(&setting, [&elder, &holder]).await, [0, 1]);
    assert_eq!(setting.dispatch.contested(), names("b"));
    holder.announce(Some(tools(&["none"])), None);
    setting
        .until(|dispatch| dispatch.conflicts().is_empty())
        .await;
    holder.announce(Some(tools(&["t"])), None);
    setting
        .until(|dispatch| !dispatch.conflicts().is_empty())
        .await;
    assert_eq!(called(&setting, [&elder, &holder]).await, [1, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_starts_keeps_a_name_for_the_pool_that_has_it_elsewhere() {
    let setting = starting();
    setting.dispatch.agree(&names("b"));
    setting.dispatch.expect(&pools(&["a", "b"]));
    let newcomer = setting.add(offers("a", tools(&["t", "other"])));
    let failure = setting.failure(legacy("t", json!({}))).await;
    assert!(matches!(failure, CallFailure::NotReady { .. }), "{failure}");
    setting.result(legacy("other", json!({}))).await;
    let incumbent = setting.add(offers("b", tools(&["t"])));
    assert_eq!(called(&setting, [&newcomer, &incumbent]).await, [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_not_kept_for_ever_for_a_pool_that_does_not_come() {
    let setting = starting();
    setting.dispatch.agree(&names("b"));
    setting.dispatch.expect(&pools(&["a", "b"]));
    let newcomer = setting.add(offers("a", tools(&["t"])));
    tokio::time::sleep(LINGER).await;
    setting.dispatch.expect(&pools(&["a", "b"]));
    setting.result(legacy("t", json!({}))).await;
    assert_eq!(newcomer.calls(), 1);
}

#[tokio::test]
async fn nodes_that_have_seen_another_order_follow_what_was_agreed() {
    let setting = setting();
    let first = setting.add(offers("a", tools(&["t"])));
    let second = setting.add(offers("b", tools(&["t"])));
    assert_eq!(called(&setting, [&first, &second]).await, [1, 0]);
    setting.dispatch.agree(&names("b"));
    assert_eq!(called(&setting, [&first, &second]).await, [0, 1]);
    // Once `b` withdraws the tool, the agreement on the name is void.
    second.announce(Some(tools(&["none"])), None);
    setting
        .until(|dispatch| dispatch.conflicts().is_empty())
        .await;
    assert_eq!(called(&setting, [&first, &second]).await, [1, 0]);
}
