use std::time::Duration;

use serde_json::json;
use shoal_testkit::clock::{SKEWS, WrongClock};
use shoal_testkit::cluster::{Cluster, Member};

use crate::client::{Client, text_of};
use crate::{small, start};

const ORDERLY: Duration = Duration::from_secs(30);

async fn shift(member: &Member, clock: WrongClock, seconds: i64) {
    member.terminate(ORDERLY).await.unwrap();
    for (name, value) in clock.variables(seconds) {
        member.variable(name, &value);
    }
    member.start_again().await.unwrap();
}

/// The worker may not have joined the edge yet.
async fn modern(cluster: &Cluster, nonce: &str) -> String {
    let deadline = tokio::time::Instant::now() + ORDERLY;
    loop {
        let answer = modern_once(cluster, nonce).await;
        let is_refused = answer.contains("\"code\":50301");
        if !is_refused || tokio::time::Instant::now() > deadline {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn modern_once(cluster: &Cluster, nonce: &str) -> String {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "steps_once",
        "arguments": { "nonce": nonce, "count": 2, "ms": 1 },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}
        }
    } });
    let post = reqwest::Client::new()
        .post(cluster.url())
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "steps_once")
        .timeout(ORDERLY);
    post.json(&call).send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn no_clock_decides_what_becomes_of_a_call() {
    let clock = WrongClock::find().unwrap();
    // The store timeouts derive from the lease.
    let cluster = start(small().edges(1).lease(Duration::from_secs(15))).await;
    let client = Client::open(cluster.url()).await;
    let (mut id, mut calls) = (1, 0);
    for seconds in SKEWS {
        for members in [cluster.edges(), cluster.sessions(), cluster.workers()] {
            for member in &members {
                shift(member, clock, seconds).await;
            }
            let role = members[0].name();
            client.echo_patiently(id).await;
            let nonce = format!("once-{id}");
            let arguments = json!({ "nonce": nonce, "count": 2, "ms": 1 });
            let mut events = client.stream(id + 1, "steps_once", &arguments).await;
            let rest = events.rest().await;
            let answer = rest.last().unwrap();
            assert_eq!(text_of(answer), nonce, "{role} by {seconds} s: {answer}");
            let nonce = format!("modern-{id}");
            let answer = modern(&cluster, &nonce).await;
            assert!(answer.contains(&nonce), "{role} by {seconds} s: {answer}");
            id += 2;
            calls += 2;
        }
    }
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    let once = ledger
        .lines()
        .filter(|line| line.contains("once-") || line.contains("modern-"));
    assert_eq!(once.count(), calls, "executed once: {ledger}");
}
