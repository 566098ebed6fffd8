use serde_json::json;
use shoal_ports::{Call, CallOutcome, ListOwner, Principal, SessionId};
use shoal_protocol::Method;

use super::harness::{Client, TestBackend, eventually, fixture, text};
use crate::Isolation;

async fn listed(running: &TestBackend, client: &Client) -> Vec<String> {
    let call = Call {
        method: Method::ToolsList,
        params: None,
        ..client.call(json!({}))
    };
    let CallOutcome::Result(result) = running.run(client, &call).await else {
        panic!()
    };
    let tools: Vec<serde_json::Value> = result.member("tools").unwrap().read().unwrap();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_sessions_process_that_adds_a_tool_tells_whose_that_is() {
    let mut config = fixture("legacy.py", &[]);
    config.isolation = Isolation::Session;
    let running = TestBackend::start(config).await;
    let own = running.0.own_lists();
    let (a, b) = (Client::named("a"), Client::named("b"));
    let owner = ListOwner::Session(SessionId::new("a"));
    running.call(&b, "echo", json!({ "text": "" })).await;
    running.call(&a, "change", json!({ "tool": "added" })).await;
    eventually("it is told", || own.borrow().contains_key(&owner)).await;
    let first = own.borrow()[&owner];
    assert_eq!([first[1], first[2]], [0, 0], "only the tools have changed");
    assert_eq!(own.borrow().len(), 1);
    assert!(listed(&running, &a).await.contains(&"added".to_owned()));
    assert!(!listed(&running, &b).await.contains(&"added".to_owned()));
    let catalog = running.catalog_where(|_| true).await;
    assert!(
        !catalog
            .tools
            .iter()
            .any(|tool| tool.as_str().contains("added"))
    );
    running.call(&a, "change", json!({ "tool": "more" })).await;
    eventually("it is told again", || own.borrow()[&owner] != first).await;
    running.0.end_session(&SessionId::new("a")).await;
    eventually("it is forgotten", || own.borrow().is_empty()).await;
}

#[tokio::test]
async fn what_a_principals_process_adds_is_for_its_calls_without_a_session() {
    let mut config = fixture("legacy.py", &[]);
    config.isolation = Isolation::Session;
    let running = TestBackend::start(config).await;
    let own = running.0.own_lists();
    let (alice, bob) = (Client::modern("alice", "{}"), Client::modern("bob", "{}"));
    running
        .call(&alice, "change", json!({ "tool": "added" }))
        .await;
    let owner = ListOwner::Sessionless(Principal::new("alice"));
    eventually("it is told", || own.borrow().contains_key(&owner)).await;
    assert!(listed(&running, &alice).await.contains(&"added".to_owned()));
    assert!(!listed(&running, &bob).await.contains(&"added".to_owned()));
    let pid = text(&running.call(&alice, "pid", json!({})).await).to_string();
    super::harness::signal(&json!(pid.parse::<u32>().unwrap()), "-KILL");
    eventually("it is forgotten", || own.borrow().is_empty()).await;
}

#[tokio::test]
async fn a_process_that_all_share_has_nobodys_own_lists() {
    let running = TestBackend::start(fixture("legacy.py", &[])).await;
    let own = running.0.own_lists();
    running
        .call(&Client::named("a"), "change", json!({ "tool": "added" }))
        .await;
    running
        .catalog_where(|catalog| catalog.tools.iter().any(|it| it.as_str().contains("added")))
        .await;
    assert!(own.borrow().is_empty());
}
