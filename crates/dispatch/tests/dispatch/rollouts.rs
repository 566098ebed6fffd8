use serde_json::json;
use shoal_ports::{CallFailure, Dispatcher as _, WorkerId};
use shoal_protocol::{Method, Revision};

use crate::fake_worker::FakeWorker;
use crate::setting::{Setting, call, legacy, setting, tools};

async fn listed(setting: &Setting) -> Vec<String> {
    let list = call(Revision::V2025_11_25, Method::ToolsList, json!({}));
    let page = setting.result(list).await;
    let tools = page["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn old(id: &str) -> FakeWorker {
    FakeWorker::new(id, "a", tools(&["t"]))
}

fn new(id: &str) -> FakeWorker {
    FakeWorker::new(id, "a", tools(&["t", "added"]))
}

#[tokio::test]
async fn the_newest_announcement_is_listed_and_its_tools_go_where_they_are() {
    let setting = setting();
    // The old workers come first in the order of names.
    let olds = ["w1", "w2"].map(|id| setting.add(old(id)));
    let rolled = setting.add(new("w3"));
    assert_eq!(listed(&setting).await, ["t", "added"]);
    for _ in 0..20 {
        setting.result(legacy("added", json!({}))).await;
    }
    assert_eq!(rolled.calls(), 20);
    for _ in 0..40 {
        setting.result(legacy("t", json!({}))).await;
    }
    assert!(olds.iter().all(|worker| worker.calls() > 0));
}

#[tokio::test]
async fn an_old_worker_that_comes_again_moves_nothing() {
    let setting = setting();
    setting.add(old("w1"));
    setting.add(new("w2"));
    let versions = setting.dispatch.facts().borrow().versions;
    for _ in 0..3 {
        assert!(setting.dispatch.remove_worker(&WorkerId::new("w1")));
        let again = setting.add(old("w1"));
        again.announce(None, Some("restarting"));
        again.announce(Some(tools(&["t"])), None);
        setting
            .until(|d| d.status().pools[0].workers[0].ready)
            .await;
        assert_eq!(listed(&setting).await, ["t", "added"]);
    }
    assert_eq!(setting.dispatch.facts().borrow().versions, versions);
    assert!(setting.dispatch.remove_worker(&WorkerId::new("w2")));
    assert_eq!(listed(&setting).await, ["t"]);
    assert_ne!(setting.dispatch.facts().borrow().versions, versions);
}

#[tokio::test]
async fn a_tool_whose_workers_are_out_is_refused_for_now() {
    let setting = setting();
    setting.add(old("w1"));
    let rolled = setting.add(new("w2"));
    rolled.connect(false);
    let failure = setting.failure(legacy("added", json!({}))).await;
    let CallFailure::NotExecuted { reason } = failure else {
        panic!("unexpected {failure:?}");
    };
    assert!(
        reason.contains("w1: its version does not have the tool"),
        "{reason}"
    );
    assert!(reason.contains("w2: it cannot be reached"), "{reason}");
}
