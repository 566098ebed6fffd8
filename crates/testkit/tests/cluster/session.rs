use serde_json::json;
use shoal_testkit::cluster::{Cluster, Member};

use crate::client::{Client, progress_of, text_of, within};
use crate::{small, start};

pub(crate) async fn owner(cluster: &Cluster) -> &Member {
    for node in cluster.sessions() {
        let status = node.admin().status().await.unwrap();
        let held = &status["sessions"];
        if held["live"] == 1 || held["passive"] == 1 {
            return node;
        }
    }
    panic!("nobody holds the session")
}

#[tokio::test]
async fn a_call_whose_owner_is_killed_ends_on_the_same_connection() {
    outlives_its_owner(&start(small()).await).await;
}

pub(crate) async fn outlives_its_owner(cluster: &Cluster) {
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 40, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = Vec::new();
    for _ in 0..5 {
        messages.extend(events.next().await);
    }
    owner(cluster).await.kill().await.unwrap();
    messages.extend(events.rest().await);

    let response = messages.last().unwrap();
    assert_eq!(text_of(response), "once");
    assert_eq!(progress_of(&messages), (1..=40).collect::<Vec<_>>());
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    assert_eq!(ledger.lines().count(), 1, "executed once: {ledger}");
    client.echo_patiently(2).await;
}

#[tokio::test]
async fn a_question_is_answered_after_its_owner_was_killed() {
    let cluster = start(small()).await;
    let client = Client::open(cluster.url()).await;
    let mut events = client.stream(1, "ask", &json!({ "nonce": "asked" })).await;
    let question = events.next().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    owner(&cluster).await.kill().await.unwrap();

    let result = json!({ "action": "accept", "content": { "text": "yes" } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    let accepted = client.post(&answer).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let rest = events.rest().await;
    assert_eq!(text_of(rest.last().unwrap()), "asked yes");
}

#[tokio::test]
async fn a_call_that_nobody_has_agreed_to_does_not_run_after_its_owner_was_killed() {
    let rules = "[{ name = 'all', effect = 'allow' }, { name = 'ask', effect = 'ask', tools = ['record'] }]";
    let cluster = start(small().setting("policy.rules", rules)).await;
    let client = Client::open(cluster.url()).await;
    let ran = || std::fs::read_to_string(cluster.ledger()).unwrap_or_default();
    let arguments = json!({ "nonce": "agreed", "ms": 1 });
    let mut events = client.stream(1, "record", &arguments).await;
    let question = events.next().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    owner(&cluster).await.kill().await.unwrap();
    // The next owner repeats the question under the same id.
    let again = events.next().await.unwrap();
    assert_eq!((&again["id"], ran().as_str()), (&question["id"], ""));

    let result = json!({ "action": "accept" });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
    let accepted = client.post(&answer).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let rest = events.rest().await;
    assert!(rest.last().unwrap()["result"].is_object(), "{rest:?}");
    assert_eq!(ran().lines().count(), 1, "executed once: {}", ran());
}

#[tokio::test]
async fn a_paused_owner_that_comes_back_does_no_harm() {
    let cluster = start(small()).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 60, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    let paused = owner(&cluster).await;
    paused.pause().await.unwrap();
    // An answer proves that another node owns the session.
    client.echo_patiently(2).await;
    paused.resume().await.unwrap();
    messages.extend(events.rest().await);
    assert_eq!(progress_of(&messages), (1..=60).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "once");
    for id in 3..8 {
        client.echo_patiently(id).await;
    }
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    assert_eq!(ledger.lines().count(), 1, "executed once: {ledger}");
}

#[tokio::test]
async fn the_status_command_shows_the_cluster() {
    let cluster = start(small()).await;
    Client::open(cluster.url()).await;
    let admin = cluster.edges()[0].admin().address().to_owned();
    let shoal = shoal_testkit::programs::shoal().unwrap();
    let mut command = tokio::process::Command::new(shoal);
    let output = within(command.args(["status", "--admin", &admin]).output()).await;
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    for part in [
        "NODE",
        "ready",
        "edge",
        "session",
        "POOL",
        "chaos",
        "store",
        "available",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    assert!(
        !text.contains("lease"),
        "an edge without sessions has none: {text}"
    );
}
