use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::admin::Admin;
use shoal_testkit::cluster::Member;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::client::{
    Client, Events, modern_call, post_beside, progress_of, single_stream, text_of,
};
use crate::{small, start};

const ORDERLY: Duration = Duration::from_secs(30);

#[tokio::test]
async fn draining_session_nodes_hand_over_without_waiting_for_a_lease() {
    let cluster = start(small().lease(Duration::from_secs(600))).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 60, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    for node in cluster.sessions() {
        node.terminate(ORDERLY).await.unwrap();
        client.echo_patiently(2).await;
        node.start_again().await.unwrap();
    }
    messages.extend(events.rest().await);
    assert_eq!(progress_of(&messages), (1..=60).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "once");
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    assert_eq!(ledger.lines().count(), 1, "executed once: {ledger}");
}

#[tokio::test]
async fn a_draining_worker_finishes_its_calls() {
    let cluster = start(small().workers(2)).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 20, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    for worker in cluster.workers() {
        worker.terminate(ORDERLY).await.unwrap();
        worker.start_again().await.unwrap();
    }
    messages.extend(events.rest().await);
    assert_eq!(progress_of(&messages), (1..=20).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "once");
    client.echo_patiently(2).await;
}

#[tokio::test]
async fn a_draining_worker_stays_within_reach_of_a_sessions_next_owner() {
    let cluster = start(small().lease(Duration::from_secs(600))).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 60, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    let (mut owner, mut next) = (None, None);
    for node in cluster.sessions() {
        let status = node.admin().status().await.unwrap();
        match status["sessions"]["live"] == 1 {
            true => owner = Some(node),
            false => next = Some(node),
        }
    }
    let (owner, next) = (owner.unwrap(), next.unwrap());
    let handed_over = async {
        while !sees_a_worker_leave(next.admin()).await {
            sleep(Duration::from_millis(20)).await;
        }
        owner.terminate(ORDERLY).await
    };
    let workers = cluster.workers();
    let (worker, session) = tokio::join!(workers[0].terminate(ORDERLY), handed_over);
    assert!(worker.unwrap().success() && session.unwrap().success());
    messages.extend(events.rest().await);
    assert_eq!(progress_of(&messages), (1..=60).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "once");
}

async fn sees_a_worker_leave(node: &Admin) -> bool {
    let status = node.status().await.unwrap();
    let pools = status["pools"].as_array().unwrap();
    let mut workers = pools
        .iter()
        .filter_map(|pool| pool["workers"].as_array())
        .flatten();
    workers.any(|worker| worker["detail"] == "the worker is leaving")
}

#[tokio::test]
async fn a_draining_worker_is_within_reach_of_nodes_that_come() {
    let cluster = start(small().workers(2).lease(Duration::from_secs(600))).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "nonce": "once", "count": 80, "ms": 100 });
    let mut events = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![events.next().await.unwrap()];
    let mut running = None;
    for worker in cluster.workers() {
        if !worker.admin().held().await.unwrap().is_empty() {
            running = Some(worker);
        }
    }
    let running = running.unwrap();
    let replaced = async {
        while running.admin().is_ready().await {
            sleep(Duration::from_millis(20)).await;
        }
        // The session's last owner must start after the worker was told to end.
        for node in cluster.sessions() {
            node.terminate(ORDERLY).await.unwrap();
            node.start_again().await.unwrap();
        }
    };
    let (worker, ()) = tokio::join!(running.terminate(ORDERLY), replaced);
    assert!(worker.unwrap().success());
    messages.extend(events.rest().await);
    assert_eq!(progress_of(&messages), (1..=80).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "once");
}

#[tokio::test]
async fn a_draining_edge_waits_for_what_streams_that_cannot_be_resumed_are_to_bring() {
    let cluster = start(small()).await;
    let edges = cluster.edges();
    for posted_at in [0, 1] {
        let by = edges[posted_at].mcp_url().unwrap();
        let (mut events, messages) = old_client(edges[0], by).await;
        // Longer than a draining edge waits for resumable streams (`shutdown.streams`).
        let call = steps_once(&format!("at-{posted_at}"), 50);
        post_beside(by, &messages, &call).await;
        events.next().await.unwrap();
        let (ended, rest) = tokio::join!(edges[0].terminate(ORDERLY), events.rest());
        assert!(ended.unwrap().success());
        let answer = rest.last().unwrap();
        assert_eq!(text_of(answer), format!("at-{posted_at}"), "{answer}");
        edges[0].start_again().await.unwrap();
    }
    cluster.end().await;
}

#[tokio::test]
async fn a_draining_edge_takes_calls_while_it_waits_for_a_stream() {
    let cluster = start(small().setting("shutdown.calls", "60s")).await;
    let edges = cluster.edges();
    let by = edges[1].mcp_url().unwrap();
    let (mut events, messages) = old_client(edges[0], by).await;
    post_beside(by, &messages, &steps_once("beside", 50)).await;
    events.next().await.unwrap();
    let called = async {
        let url = edges[0].mcp_url().unwrap();
        let mut answers = Vec::new();
        while let Ok(answer) = modern_call(url, "echo", &json!({ "nonce": "late" })).await {
            answers.push(answer);
        }
        answers
    };
    let (ended, rest, answers) = tokio::join!(edges[0].terminate(ORDERLY), events.rest(), called);
    assert!(ended.unwrap().success());
    assert_eq!(text_of(rest.last().unwrap()), "beside");
    let refused = answers.iter().find(|answer| answer.contains("50301"));
    assert_eq!(refused, None, "{} answers", answers.len());
    assert!(answers.iter().any(|answer| answer.contains("late")));
    cluster.end().await;
}

#[tokio::test]
async fn a_call_that_outlasts_the_drain_of_its_only_stream_is_answered_first() {
    let cluster = start(small().setting("shutdown.calls", "500ms")).await;
    let edge = cluster.edges()[0];
    let url = edge.mcp_url().unwrap();
    let (mut events, messages) = old_client(edge, url).await;
    post_beside(url, &messages, &steps_once("long", 6_000)).await;
    events.next().await.unwrap();
    let (ended, rest) = tokio::join!(edge.terminate(ORDERLY), events.rest());
    assert!(ended.unwrap().success());
    let last = rest.last().unwrap();
    assert_eq!(
        (&last["id"], &last["error"]["code"]),
        (&json!(1), &json!(50_410)),
        "{last}"
    );
    cluster.end().await;
}

async fn old_client(edge: &Member, by: &str) -> (Events, String) {
    let (mut events, messages) = single_stream(edge.mcp_url().unwrap()).await;
    let params = json!({
        "protocolVersion": "2024-11-05",
        "capabilities": {},
        "clientInfo": { "name": "old", "version": "1" }
    });
    let opening = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    post_beside(by, &messages, &opening).await;
    assert_eq!(events.next().await.unwrap()["id"], 0);
    let opened = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    post_beside(by, &messages, &opened).await;
    (events, messages)
}

fn steps_once(nonce: &str, count: u32) -> Value {
    let params = json!({
        "name": "steps_once",
        "arguments": { "nonce": nonce, "count": count, "ms": 100 },
        "_meta": { "progressToken": 1 }
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

#[tokio::test]
async fn a_modern_call_that_outlasts_the_drain_of_its_edge_is_answered() {
    let cluster = start(small().setting("shutdown.calls", "500ms")).await;
    let (edge, node) = (cluster.edges()[0], cluster.sessions()[0].admin());
    for (tool, code) in [("steps", "50301"), ("steps_once", "50002")] {
        let asked = ask_for_long(edge, node, tool).await;
        edge.terminate(ORDERLY).await.unwrap();
        let told = asked.await.unwrap().unwrap();
        assert!(told.contains(code), "{tool}: {told}");
        assert!(told.contains("its edge was shut down"), "{tool}: {told}");
        node.wait_until_it_holds_nothing(ORDERLY).await.unwrap();
        edge.start_again().await.unwrap();
        edge.wait_until_ready(ORDERLY).await.unwrap();
    }
    cluster.end().await;
}

/// The edge's death breaks the client's connection, which cancels a modern call.
#[tokio::test]
async fn a_modern_call_of_an_edge_that_was_killed_is_cancelled() {
    let cluster = start(small().setting("cluster.rejoin", "1s")).await;
    let (edge, node) = (cluster.edges()[0], cluster.sessions()[0].admin());
    let asked = ask_for_long(edge, node, "steps_once").await;
    edge.kill().await.unwrap();
    let _ = asked.await.unwrap();
    node.wait_until_it_holds_nothing(ORDERLY).await.unwrap();
    cluster.end().await;
}

async fn ask_for_long(
    edge: &Member,
    node: &Admin,
    tool: &str,
) -> JoinHandle<reqwest::Result<String>> {
    let arguments = json!({ "nonce": "long", "count": 600, "ms": 1_000 });
    let asked = tokio::spawn(modern_call(edge.mcp_url().unwrap(), tool, &arguments));
    let busy = async {
        while node.held().await.unwrap().is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(ORDERLY, busy).await.unwrap();
    asked
}
