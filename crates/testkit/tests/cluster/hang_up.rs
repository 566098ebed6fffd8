use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::client::{Client, text_of};
use crate::{small, start};

const LANES: u64 = 16;
const ROUNDS: u64 = 25;
const SOON: Duration = Duration::from_secs(60);

const LONG: Duration = Duration::from_secs(30);

fn call(round: u64) -> (&'static str, Value) {
    let nonce = format!("r{round}");
    match round % 3 {
        0 => ("echo", json!({ "nonce": nonce })),
        1 => ("steps_once", json!({ "nonce": nonce, "count": 2, "ms": 1 })),
        _ => ("steps", json!({ "nonce": nonce, "count": 2, "ms": 3 })),
    }
}

fn patience(lane: u64, round: u64) -> Duration {
    Duration::from_micros(500 + (lane * 7_919 + round * 10_473) % 19_500)
}

#[tokio::test]
async fn clients_that_give_up_leave_nothing_in_any_process() {
    let cluster = start(small().lease(LONG)).await;
    let edges = cluster.edges();
    let mut lanes = Vec::new();
    let mut clients = Vec::new();
    for edge in &edges {
        let client = Arc::new(Client::open(edge.mcp_url().unwrap()).await);
        client.echo_patiently(1).await;
        for lane in 0..LANES {
            let client = client.clone();
            lanes.push(tokio::spawn(async move {
                for round in 0..ROUNDS {
                    let (tool, arguments) = call(lane + round);
                    let id = 1_000 + lane * ROUNDS + round;
                    let after = patience(lane, round);
                    client.hang_up(id, tool, &arguments, after).await;
                }
            }));
        }
        clients.push(client);
    }
    for lane in join_all(lanes).await {
        lane.unwrap();
    }
    for member in cluster.members() {
        let nothing = member.admin().wait_until_it_holds_nothing(SOON).await;
        nothing.unwrap_or_else(|error| panic!("{}: {error}", member.name()));
    }
    for client in &clients {
        client.echo_patiently(1_000).await;
        client.echo_patiently(2).await;
        client.close().await;
    }
    cluster.end().await;
}

/// The node is silent for less than its lease, so it stays the owner and must answer.
#[tokio::test]
async fn what_comes_to_a_node_that_sleeps_for_a_while_is_answered_when_it_wakes() {
    let builder = small().edges(1).sessions(1).lease(LONG);
    let cluster = start(builder.setting("cluster.silence", "1s")).await;
    let client = Arc::new(Client::open(cluster.url()).await);
    client.echo_patiently(1).await;
    let (edge, node) = (cluster.edges()[0], cluster.sessions()[0]);
    node.pause().await.unwrap();
    let calls = (0..LANES).map(|lane| {
        let client = client.clone();
        tokio::spawn(async move {
            let (nonce, id) = (format!("n{lane}"), 100 + lane);
            let once = json!({ "nonce": nonce, "ms": 1 });
            if lane % 2 == 0 {
                let text = client.text(id, "echo", &json!({ "nonce": nonce })).await;
                assert_eq!(text, nonce);
                return 0;
            }
            let told = client.answered(id, "record", &once).await;
            let answer = told.last().unwrap();
            // The worker may not have reconnected to the node yet.
            if answer["error"]["code"] == 50301 {
                return 0;
            }
            assert_eq!(text_of(answer), nonce);
            1
        })
    });
    let calls = Vec::from_iter(calls);
    let deadline = tokio::time::Instant::now() + LONG / 3;
    loop {
        let status = edge.admin().status().await.unwrap();
        let again = status["cluster"]["routing"]["redelivered"].as_u64();
        if again.is_some_and(|again| again >= LANES) || tokio::time::Instant::now() > deadline {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    node.resume().await.unwrap();
    let answered = join_all(calls).await.into_iter().map(Result::unwrap);
    let executed: usize = answered.sum();
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    assert_eq!(ledger.lines().count(), executed, "each once: {ledger}");
    for member in cluster.members() {
        let nothing = member.admin().wait_until_it_holds_nothing(SOON).await;
        nothing.unwrap_or_else(|error| panic!("{}: {error}", member.name()));
    }
    cluster.end().await;
}

#[tokio::test]
async fn calls_of_a_session_that_its_client_ends_are_told_to_stop() {
    let cluster = start(small().lease(LONG)).await;
    for round in 0..8 {
        let edges = cluster.edges();
        let client = Client::open(edges[round % edges.len()].mcp_url().unwrap()).await;
        let mut streams = Vec::new();
        for id in 1..=(1 + round as u64 % 3) {
            let arguments = json!({ "nonce": format!("r{round}-{id}"), "count": 600, "ms": 1_000 });
            streams.push(client.stream(id, "steps_once", &arguments).await);
        }
        if round % 2 == 0 {
            streams.clear();
        }
        client.close().await;
    }
    for member in cluster.members() {
        let nothing = member.admin().wait_until_it_holds_nothing(SOON).await;
        nothing.unwrap_or_else(|error| panic!("{}: {error}", member.name()));
    }
    cluster.end().await;
}
