use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use shoal_testkit::cluster::Cluster;
use shoal_testkit::fault_proxy::Fault;
use shoal_testkit::process::SOON;
use shoal_testkit::redis::Redis;

use crate::client::{Client, Events, within};
use crate::{journaling, small, start};

/// Codes with which the cluster may answer here: a limit, not executed, or an unknown outcome.
const HONEST: [i64; 3] = [50300, 50301, 50002];
const SESSIONS: u64 = 3;
const CALLS: u64 = 6;

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    results: usize,
    refusals: usize,
}

async fn call_all(clients: &[Client], round: u64, size: usize) -> Tally {
    let calls = clients.iter().enumerate().flat_map(|(place, client)| {
        (0..CALLS).map(move |call| async move {
            let id = round * CALLS + call + 1;
            let nonce = format!("{round}-{place}-{call}-{}", "x".repeat(size));
            let tool = ["steps_once", "record"][usize::from(call % 3 == 0)];
            let arguments = json!({ "nonce": nonce, "count": 5, "ms": 20 });
            answer_of(client.answered(id, tool, &arguments).await, id, &nonce)
        })
    });
    let mut tally = Tally::default();
    for answered in join_all(calls).await {
        match answered {
            true => tally.results += 1,
            false => tally.refusals += 1,
        }
    }
    tally
}

fn answer_of(messages: Vec<Value>, id: u64, nonce: &str) -> bool {
    let answers: Vec<_> = messages
        .iter()
        .filter(|message| message.get("method").is_none())
        .collect();
    let [answer] = answers[..] else {
        panic!("one answer to {id}: {messages:?}")
    };
    assert_eq!(answer["id"], id, "{answer}");
    match answer["error"]["code"].as_i64() {
        Some(code) => {
            assert!(HONEST.contains(&code), "{answer}");
            false
        }
        None => {
            assert_eq!(crate::client::text_of(answer), nonce);
            true
        }
    }
}

async fn open_all(cluster: &Cluster) -> Vec<Client> {
    join_all((0..SESSIONS).map(|_| Client::open(cluster.url()))).await
}

async fn nothing_is_left(cluster: &Cluster, clients: &[Client]) {
    for member in cluster.members() {
        let admin = member.admin();
        admin.wait_until_it_holds_nothing(SOON).await.unwrap();
    }
    let redis = cluster.redis().unwrap();
    let lasting = redis.keys_that_stay().await.unwrap();
    assert!(lasting.is_empty(), "keys that never expire: {lasting:?}");
    for client in clients {
        client.close().await;
    }
    let sessions = "return table.concat(redis.call('KEYS', '*}:s*'), ' ')";
    assert_eq!(eval(redis, sessions).await, "", "keys of ended sessions");
}

async fn eval(redis: &Redis, script: &str) -> String {
    redis.command(&["EVAL", script, "0"]).await.unwrap()
}

fn slow_down(cluster: &Cluster, by: Duration) {
    for member in cluster.members() {
        cluster.to_redis(member, Fault::Delay(by));
    }
}

#[tokio::test]
async fn a_slow_redis_delays_calls_and_a_very_slow_one_refuses_some() {
    let cluster = start(small().fault_proxies()).await;
    let clients = open_all(&cluster).await;
    let all = usize::try_from(SESSIONS * CALLS).unwrap();
    slow_down(&cluster, Duration::from_millis(40));
    let slow = call_all(&clients, 1, 1).await;
    assert_eq!(slow.results + slow.refusals, all);
    // Delays each direction by more than the store timeout.
    slow_down(&cluster, Duration::from_millis(1200));
    let very_slow = call_all(&clients, 2, 1).await;
    assert_eq!(very_slow.results + very_slow.refusals, all);
    assert!(cluster.disturbed() > 0, "nothing was held up");
    cluster.heal();
    // The leases have lapsed. The nodes must notice this, and serve again.
    for (id, client) in (100..).zip(&clients) {
        client.echo_patiently(id).await;
    }
    let healed = Tally {
        results: all,
        refusals: 0,
    };
    within(async {
        let mut round = 3;
        while call_all(&clients, round, 1).await != healed {
            round += 1;
        }
    })
    .await;
    nothing_is_left(&cluster, &clients).await;
}

#[tokio::test]
async fn a_redis_that_fills_up_under_calls_refuses_new_ones_and_ends_those_that_run() {
    let cluster = start(journaling()).await;
    let redis = cluster.redis().unwrap();
    let clients = open_all(&cluster).await;
    let mut running: Vec<Events> = Vec::new();
    for client in &clients {
        let arguments = json!({ "nonce": "runs", "count": 30, "ms": 100 });
        running.push(client.stream(1, "steps_once", &arguments).await);
    }
    let used = "return tostring(redis.call('INFO', 'memory'):match('used_memory:(%d+)'))";
    let used: u64 = eval(redis, used).await.parse().unwrap();
    redis.limit_memory(used + (256 << 10)).await.unwrap();
    let mut refused = 0;
    for round in 1..20 {
        let tally = call_all(&clients, round, 8 << 10).await;
        refused += tally.refusals;
        if refused > 0 {
            break;
        }
    }
    assert!(refused > 0, "it never filled up");
    for mut events in running {
        assert!(
            answer_of(events.rest().await, 1, "runs"),
            "what ran has its result"
        );
    }
    redis.limit_memory(0).await.unwrap();
    let all = usize::try_from(SESSIONS * CALLS).unwrap();
    let room = Tally {
        results: all,
        refusals: 0,
    };
    assert_eq!(call_all(&clients, 30, 1).await, room);
    nothing_is_left(&cluster, &clients).await;
}
