use serde_json::json;
use shoal_dispatch::{Affinity, Config, PoolConfig};
use shoal_ports::{Dispatcher as _, WorkerId};

use crate::fake_worker::FakeWorker;
use crate::setting::{CallExt as _, Setting, configured, legacy, modern, tools};

fn setting(affinity: Affinity) -> Setting {
    let settings = PoolConfig {
        affinity,
        ..PoolConfig::default()
    };
    let setting = configured(Config {
        pools: [("a".to_owned(), settings)].into(),
        ..Config::default()
    });
    for n in 0..4 {
        setting.add(FakeWorker::new(&format!("w{n}"), "a", tools(&["t"])));
    }
    setting
}

async fn worker(setting: &Setting, call: shoal_ports::Call) -> WorkerId {
    let running = setting.start(call).await.unwrap();
    running.worker.unwrap()
}

#[tokio::test]
async fn calls_of_one_session_or_modern_principal_meet() {
    let setting = setting(Affinity::Session);
    let mut met = std::collections::HashSet::new();
    for _ in 0..20 {
        let call = legacy("t", json!({}));
        let first = worker(&setting, call.clone()).await;
        let mut second = legacy("t", json!({"x":1}));
        second.caller = call.caller.clone();
        assert_eq!(worker(&setting, second).await, first);
        let planned = setting.plan(call).await.worker;
        assert_eq!(planned.unwrap().worker, first);
        met.insert(first);
    }
    assert!(met.len() > 1, "sessions are spread");
    let alice = worker(&setting, modern("t", json!({}))).await;
    for _ in 0..5 {
        assert_eq!(worker(&setting, modern("t", json!({}))).await, alice);
    }
}

#[tokio::test]
async fn all_calls_meet_where_the_state_is_and_the_others_stand_by() {
    let setting = setting(Affinity::All);
    let first = worker(&setting, legacy("t", json!({}))).await;
    for _ in 0..5 {
        assert_eq!(worker(&setting, legacy("t", json!({}))).await, first);
        assert_eq!(worker(&setting, modern("t", json!({}))).await, first);
    }
    setting.dispatch.remove_worker(&first);
    let second = worker(&setting, legacy("t", json!({}))).await;
    assert_ne!(second, first);
}

#[tokio::test]
async fn calls_with_one_argument_meet_and_others_go_anywhere() {
    let setting = setting(Affinity::Key("tenant".into()));
    let of = |tenant: &str| legacy("t", json!({ "tenant": tenant }));
    let first = worker(&setting, of("blue")).await;
    for _ in 0..10 {
        assert_eq!(worker(&setting, of("blue")).await, first);
    }
    let mut met = std::collections::HashSet::new();
    for _ in 0..40 {
        met.insert(worker(&setting, legacy("t", json!({}))).await);
    }
    assert!(met.len() > 2);
}

#[tokio::test]
async fn the_next_in_line_takes_over_and_gives_back() {
    let setting = setting(Affinity::Key("tenant".into()));
    let call = || legacy("t", json!({"tenant":"blue"}));
    let first = worker(&setting, call()).await;
    let plan = setting.plan(call()).await;
    let tried = std::slice::from_ref(&first);
    let second = setting.dispatch.replan(&plan, tried).unwrap().worker;
    assert_ne!(second, first);
    assert!(setting.dispatch.remove_worker(&first));
    assert_eq!(worker(&setting, call()).await, second);
    setting.add(FakeWorker::new(first.as_str(), "a", tools(&["t"])));
    assert_eq!(worker(&setting, call()).await, first);
    let bound = call().at(second.as_str());
    assert_eq!(worker(&setting, bound).await, second);
}

#[test]
fn affinity_reads_as_it_is_documented() {
    let read = |text| serde_json::from_str::<Affinity>(text).unwrap();
    assert_eq!(read(r#""none""#), Affinity::None);
    assert_eq!(read(r#""all""#), Affinity::All);
    assert_eq!(read(r#""session""#), Affinity::Session);
    assert_eq!(read(r#"{"key":"tenant"}"#), Affinity::Key("tenant".into()));
}
