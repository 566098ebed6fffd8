use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use shoal_testkit::cluster::{Cluster, Member};
use shoal_testkit::fault_proxy::Fault;
use tokio::time::sleep;

use crate::client::{Client, progress_of, text_of};
use crate::evidence::taken_over;
use crate::{small, start};

const LONG: Duration = Duration::from_secs(120);
const CLIENTS: u64 = 4;
const CALLS: u64 = 9;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

async fn reaches_all(node: &Member) -> bool {
    let status = node.admin().status().await.unwrap();
    let pools = status["pools"].as_array().unwrap().iter();
    let workers = pools.flat_map(|pool| pool["workers"].as_array().unwrap());
    workers.filter(|worker| worker["reachable"] == true).count() == 4
}

async fn reset(cluster: &Cluster, done: &AtomicBool) -> usize {
    let nodes = [cluster.edges(), cluster.sessions()].concat();
    let mut resets = 0;
    for pause in [20, 200, 80, 140].into_iter().cycle() {
        for node in &nodes {
            while !reaches_all(node).await {
                sleep(LOOK_AGAIN).await;
            }
        }
        sleep(Duration::from_millis(pause)).await;
        if done.load(Ordering::Relaxed) {
            break;
        }
        for node in &nodes {
            for worker in cluster.workers() {
                cluster.between(node, worker, Fault::Cut);
            }
        }
        sleep(Duration::from_millis(30)).await;
        cluster.heal();
        resets += 1;
    }
    resets
}

async fn call(cluster: &Cluster, lane: u64) -> Vec<String> {
    let client = Client::open(cluster.url()).await;
    let mut nonces = Vec::new();
    for id in 1..=CALLS {
        let nonce = format!("c{lane}-{id}");
        let (tool, arguments) = match (id + lane) % 3 {
            0 => (
                "steps_once",
                json!({ "nonce": nonce, "count": 20, "ms": 20 }),
            ),
            1 => ("record", json!({ "nonce": nonce, "ms": 700 })),
            _ => ("ask", json!({ "nonce": nonce })),
        };
        let mut events = client.stream(id, tool, &arguments).await;
        let mut messages: Vec<Value> = Vec::new();
        while let Some(message) = events.next().await {
            if message["method"] == "elicitation/create" {
                sleep(Duration::from_millis(150)).await;
                let result = json!({ "action": "accept", "content": { "text": "yes" } });
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                assert_eq!(client.post(&answer).await.status, 202);
            }
            messages.push(message);
        }
        let said = text_of(messages.last().expect("an answer"));
        let expected = match tool {
            "ask" => format!("{nonce} yes"),
            _ => nonce.clone(),
        };
        assert_eq!(said, expected);
        if tool == "steps_once" {
            assert_eq!(
                progress_of(&messages),
                Vec::from_iter(1..=20),
                "{messages:?}"
            );
        }
        nonces.push(nonce);
    }
    nonces
}

#[tokio::test]
async fn no_call_is_lost_or_run_twice_while_the_links_of_workers_are_reset() {
    let patient = small().workers(2).lease(LONG).fault_proxies();
    let cluster = start(patient.setting("cluster.rejoin", "120s")).await;
    let done = AtomicBool::new(false);
    let calls = async {
        let called = join_all((0..CLIENTS).map(|lane| call(&cluster, lane))).await;
        done.store(true, Ordering::Relaxed);
        called.concat()
    };
    let (called, resets) = tokio::join!(calls, reset(&cluster, &done));
    assert!(resets > 4, "{resets}");
    assert!(
        cluster.disturbed() > 8 * resets as u64,
        "{}",
        cluster.disturbed()
    );
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    let mut runs: HashMap<&str, u64> = HashMap::new();
    for nonce in ledger.lines() {
        *runs.entry(nonce).or_default() += 1;
    }
    for nonce in &called {
        assert_eq!(runs.remove(nonce.as_str()), Some(1), "{nonce}");
    }
    assert!(runs.is_empty(), "nobody called {runs:?}");
    assert_eq!(taken_over(&cluster).await, 0);
    cluster.end().await;
}
