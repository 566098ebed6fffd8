//! A starting node that may not know every pool yet.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use shoal_dispatch::Config;
use shoal_ports::{
    Announcement, Call, CallFailure, CallOutcome, CatalogSettings, Dispatcher as _,
    RawObjectOrEmpty, WorkerId,
};
use shoal_protocol::{Method, RawJson, Revision};
use tokio::time::Instant;

use crate::fake_worker::FakeWorker;
use crate::setting::{Setting, call, configured, legacy, modern, setting, tools};

const LEARN_FOR: Duration = Duration::from_secs(5);
const LINGER: Duration = Duration::from_secs(60);

fn starting() -> Setting {
    configured(Config {
        learn_for: Duration::from_secs(5),
        settle_within: Duration::from_secs(15),
        ..Config::default()
    })
}

fn worker(pool: &str, tool: &str) -> FakeWorker {
    FakeWorker::new(&format!("{pool}@w"), pool, tools(&[tool]))
}

fn pools(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn list() -> Call {
    call(Revision::V2025_11_25, Method::ToolsList, json!({}))
}

async fn listed(setting: &Setting) -> usize {
    let list = setting.result(list()).await;
    list["tools"].as_array().unwrap().len()
}

fn unknown() -> [Call; 4] {
    let of = |method, params| call(Revision::V2026_07_28, method, params);
    [
        legacy("other", json!({})),
        modern("other", json!({})),
        of(Method::PromptsGet, json!({ "name": "other" })),
        of(
            Method::Complete,
            json!({ "ref": { "type": "ref/prompt", "name": "other" } }),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_is_unknown_at_the_start_is_not_refused_for_good() {
    let setting = starting();
    setting.add(worker("a", "t"));
    tokio::time::sleep(LEARN_FOR - Duration::from_secs(2)).await;
    for call in unknown() {
        let method = call.method.clone();
        let failure = setting.failure(call).await;
        let CallFailure::NotReady { retry_after, .. } = &failure else {
            panic!("{method:?}: {failure:?}");
        };
        assert_eq!(*retry_after, Duration::from_secs(2), "{method:?}");
        assert_eq!(failure.to_rpc().code, 50_301);
    }
    setting.result(legacy("t", json!({}))).await;
    // With a second pool of prompts, an unlisted prompt goes to neither.
    setting.add(worker("b", "more"));
    tokio::time::sleep(Duration::from_secs(2)).await;
    for call in unknown() {
        setting.error(call).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_other_nodes_know_is_waited_for() {
    let setting = starting();
    setting.dispatch.expect(&pools(&["a", "b"]));
    setting.add(worker("a", "t"));
    tokio::time::sleep(LINGER / 2).await;
    assert!(!setting.dispatch.is_whole());
    let failure = setting.failure(legacy("other", json!({}))).await;
    let CallFailure::NotReady { reason, .. } = failure else {
        panic!("{failure:?}");
    };
    assert!(reason.contains("the pool b"), "{reason}");
    setting.add(worker("b", "other"));
    setting.result(legacy("other", json!({}))).await;
    let error = setting.error(legacy("none", json!({}))).await;
    assert_eq!(error.message, "unknown tool: none");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_knows_all_that_others_know_has_learnt() {
    let setting = starting();
    setting.dispatch.expect(&pools(&["a", "b"]));
    setting.add(worker("a", "t"));
    setting.add(worker("b", "more"));
    for call in unknown() {
        setting.error(call).await;
    }
    setting.dispatch.expect(&pools(&["a", "b", "c"]));
    let failure = setting.failure(legacy("other", json!({}))).await;
    assert!(
        matches!(failure, CallFailure::NotReady { .. }),
        "{failure:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_never_comes_is_not_waited_for_for_ever() {
    let setting = starting();
    setting.add(worker("a", "t"));
    for _ in 0..6 {
        setting.dispatch.expect(&pools(&["a", "b"]));
        let failure = setting.failure(legacy("other", json!({}))).await;
        assert!(
            matches!(failure, CallFailure::NotReady { .. }),
            "{failure:?}"
        );
        tokio::time::sleep(LINGER / 6).await;
    }
    setting.dispatch.expect(&pools(&["a", "b", "c"]));
    setting.add(worker("c", "more"));
    let error = setting.error(legacy("other", json!({}))).await;
    assert_eq!(error.message, "unknown tool: other");
}

#[tokio::test(start_paused = true)]
async fn lists_wait_until_they_are_whole() {
    let setting = starting();
    setting.dispatch.expect(&pools(&["a", "b"]));
    setting.add(worker("a", "t"));
    assert!(setting.start_now(&list()).is_none());
    let late = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        setting.add(worker("b", "other"));
    };
    let (count, ()) = tokio::join!(listed(&setting), late);
    assert_eq!(count, 2);
    assert!(setting.start_now(&list()).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_waited_in_vain_says_when_to_come_back_and_none_waits_for_ever() {
    let setting = starting();
    setting.dispatch.expect(&pools(&["a", "b"]));
    setting.add(worker("a", "t"));
    let outcome = setting.outcome(list()).await;
    let CallOutcome::Failed(CallFailure::NotReady { .. }) = outcome else {
        panic!("{outcome:?}");
    };
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(listed(&setting).await, 1);
}

fn declaring(pool: &str, capabilities: &'static str) -> FakeWorker {
    let mut catalog = tools(&[]);
    catalog.capabilities = RawObjectOrEmpty(RawJson::from_static(capabilities));
    FakeWorker::new(&format!("{pool}@w"), pool, catalog)
}

fn tooler(pool: &str) -> FakeWorker {
    declaring(pool, r#"{"tools":{}}"#)
}

fn prompter(pool: &str) -> FakeWorker {
    declaring(pool, r#"{"prompts":{}}"#)
}

async fn names_prompts(setting: &Setting) -> bool {
    let settled = setting.dispatch.settled_facts().await.unwrap();
    settled.facts.capabilities.member("prompts").is_some()
}

#[tokio::test(start_paused = true)]
async fn what_the_server_says_of_itself_waits_as_lists_do() {
    let setting = starting();
    setting.dispatch.expect(&pools(&["a", "b"]));
    setting.add(tooler("a"));
    let late = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        setting.add(prompter("b"));
    };
    let (named, ()) = tokio::join!(names_prompts(&setting), late);
    assert!(named);
    let settled = setting.dispatch.settled_facts().await.unwrap();
    assert_eq!(settled.lacks, None);
}

#[tokio::test(start_paused = true)]
async fn capabilities_are_named_before_others_are_told_of_the_lists() {
    let setting = configured(Config {
        catalog: CatalogSettings {
            announce_after: Duration::from_secs(60).into(),
            ..Config::default().catalog
        },
        settle_within: Duration::from_secs(15),
        ..Config::default()
    });
    setting.add(tooler("a"));
    setting.add(prompter("b"));
    let before = Instant::now();
    assert!(names_prompts(&setting).await);
    assert!(before.elapsed() < Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn an_empty_catalog_says_nothing_of_the_server() {
    for setting in [setting(), starting()] {
        let failure = setting.dispatch.settled_facts().await.unwrap_err();
        assert_eq!(failure.to_rpc().code, 50_301, "{failure}");
        assert!(failure.retry_after().is_some(), "{failure}");
        let late = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            setting.add(prompter("b"));
        };
        let (named, ()) = tokio::join!(names_prompts(&setting), late);
        assert!(named);
    }
}

fn being_started(pool: &str, detail: &str) -> (FakeWorker, Announcement) {
    let worker = worker(pool, "t");
    let ready = worker.announcement.borrow().clone();
    worker.announcement.send_modify(|said| {
        said.catalog = None;
        said.detail = Some(detail.to_owned());
    });
    (worker, ready)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_being_started_is_waited_for() {
    let ways: [fn(&Setting) -> BoxFuture<'_, bool>; 3] = [
        |setting| async { setting.dispatch.settled_facts().await.is_ok() }.boxed(),
        |setting| async { listed(setting).await == 1 }.boxed(),
        |setting| {
            let called = async |setting: &Setting| setting.outcome(legacy("t", json!({}))).await;
            async move { matches!(called(setting).await, CallOutcome::Result(_)) }.boxed()
        },
    ];
    for way in ways {
        let setting = setting();
        let (worker, ready) = being_started("a", Announcement::STARTING);
        let worker = setting.add(worker);
        let late = async {
            tokio::time::sleep(Duration::from_secs(40)).await;
            worker.announcement.send_replace(ready);
        };
        let (found, ()) = tokio::join!(way(&setting), late);
        assert!(found);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_start_is_not_waited_for_long() {
    for (detail, longest) in [("cannot start: no", 6), (Announcement::STARTING, 51)] {
        let setting = setting();
        let (worker, _) = being_started("a", detail);
        setting.add(worker);
        let before = Instant::now();
        let failure = setting.dispatch.settled_facts().await.unwrap_err();
        assert_eq!(failure.to_rpc().code, 50_301, "{failure}");
        assert!(before.elapsed() < Duration::from_secs(longest));
    }
}

#[tokio::test(start_paused = true)]
async fn who_waited_in_vain_is_told_that_more_may_come() {
    let setting = starting();
    setting.dispatch.expect(&pools(&["a", "b"]));
    setting.add(tooler("a"));
    let failure = setting.dispatch.settled_facts().await.unwrap_err();
    assert!(matches!(failure, CallFailure::NotReady { .. }), "{failure}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let settled = setting.dispatch.settled_facts().await.unwrap();
    assert!(settled.facts.capabilities.member("tools").is_some());
    let lacks = settled.lacks.unwrap();
    assert!(lacks.to_string().contains("the pool b"), "{lacks}");
}

#[tokio::test(start_paused = true)]
async fn workers_of_this_process_alone_are_known_at_once() {
    let setting = setting();
    setting.add(worker("a", "t"));
    assert!(setting.start_now(&list()).is_some());
    let error = setting.error(legacy("other", json!({}))).await;
    assert_eq!(error.message, "unknown tool: other");
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_leaves_for_good_is_unknown_then() {
    let setting = starting();
    setting.dispatch.expect(&pools(&["a", "b"]));
    setting.add(worker("a", "t"));
    setting.add(worker("b", "other"));
    setting.dispatch.remove_worker(&WorkerId::new("b@w"));
    tokio::time::sleep(LINGER).await;
    setting
        .until(|dispatch| dispatch.status().pools.len() == 1)
        .await;
    let error = setting.error(legacy("other", json!({}))).await;
    assert_eq!(error.message, "unknown tool: other");
}
