//! Calls that end within the hold cost no Redis writes, and still survive the loss of their session's node.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::cluster::Cluster;
use shoal_testkit::redis::Redis;

use crate::client::{Answer, Client, text_of, within};
use crate::planning::appended;
use crate::session::owner;
use crate::{small, start};

const CALLS: u64 = 100;
const LONG: &str = "30s";
const SOON: Duration = Duration::from_secs(60);

fn work(nonce: &str, ms: u64) -> Value {
    json!({ "nonce": nonce, "ms": ms })
}

async fn held_for(hold: &str) -> Cluster {
    start(small().setting("streams.hold", hold)).await
}

fn ledger(cluster: &Cluster) -> String {
    std::fs::read_to_string(cluster.ledger()).unwrap_or_default()
}

async fn has_begun(cluster: &Cluster, nonce: &str) {
    within(async {
        while !ledger(cluster).contains(nonce) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

async fn begin(
    cluster: &Cluster,
    client: &Arc<Client>,
    nonce: &'static str,
    ms: u64,
) -> tokio::task::JoinHandle<Answer> {
    let client = client.clone();
    let call = tokio::spawn(async move { client.call(1, "record", &work(nonce, ms)).await });
    has_begun(cluster, nonce).await;
    call
}

async fn journaled(cluster: &Cluster) -> u64 {
    let mut journaled = 0;
    for node in cluster.sessions() {
        let status = node.admin().status().await.unwrap();
        journaled += status["sessions"]["journaled"].as_u64().unwrap();
    }
    journaled
}

async fn hold_nothing(cluster: &Cluster) {
    for member in cluster.members() {
        let nothing = member.admin().wait_until_it_holds_nothing(SOON).await;
        nothing.unwrap_or_else(|error| panic!("{}: {error}", member.name()));
    }
}

#[tokio::test]
async fn a_short_call_costs_redis_nothing() {
    let cluster = held_for(LONG).await;
    let redis: &Redis = cluster.redis().unwrap();
    let client = Client::open(cluster.url()).await;
    client.echo_patiently(1).await;
    let before = appended(redis).await;
    for id in 0..CALLS {
        let nonce = format!("short-{id}");
        let answer = client.call(id, "record", &work(&nonce, 1)).await;
        assert_eq!(text_of(&answer.body), nonce);
    }
    assert_eq!(appended(redis).await, before, "a short call is in the log");
    let (mut answered, mut begun) = (0.0, 0.0);
    for node in cluster.sessions() {
        let metric = async |name, attribute| node.admin().metric(name, attribute).await.unwrap();
        answered += metric("shoal_journal_holds_total", "answered").await;
        begun += metric("shoal_journal_begin_duration_seconds_count", "begun").await;
    }
    assert_eq!((answered, begun), (CALLS as f64, 0.0));
    assert_eq!(ledger(&cluster).lines().count() as u64, CALLS);
    hold_nothing(&cluster).await;
}

#[tokio::test]
async fn a_call_that_outlasts_the_hold_is_in_the_journal() {
    let cluster = held_for("20ms").await;
    let client = Client::open(cluster.url()).await;
    let mut events = client.stream(1, "record", &work("long", 2_000)).await;
    events.primed().await;
    assert_eq!(journaled(&cluster).await, 1);
    assert_eq!(text_of(events.rest().await.last().unwrap()), "long");
    assert_eq!(ledger(&cluster), "long\n");
    hold_nothing(&cluster).await;
}

#[tokio::test]
async fn a_call_whose_owner_is_killed_within_the_hold_is_answered_and_ran_once() {
    let cluster = held_for(LONG).await;
    let client = Arc::new(Client::open(cluster.url()).await);
    client.echo_patiently(7).await;
    let call = begin(&cluster, &client, "owner", 1_500).await;
    assert_eq!(journaled(&cluster).await, 0);
    owner(&cluster).await.kill().await.unwrap();
    let answer = within(call).await.unwrap();
    assert_eq!(text_of(&answer.body), "owner");
    assert_eq!(ledger(&cluster), "owner\n");
    client.echo_patiently(2).await;
}

/// The worker keeps the result until the session's next owner fetches it.
#[tokio::test]
async fn a_call_that_ended_while_its_session_had_no_owner_is_answered() {
    let cluster = held_for(LONG).await;
    let client = Arc::new(Client::open(cluster.url()).await);
    client.echo_patiently(7).await;
    let call = begin(&cluster, &client, "paused", 300).await;
    let paused = owner(&cluster).await;
    paused.pause().await.unwrap();
    let answer = within(call).await.unwrap();
    assert_eq!(text_of(&answer.body), "paused");
    paused.resume().await.unwrap();
    assert_eq!(ledger(&cluster), "paused\n");
    client.echo_patiently(2).await;
}

#[tokio::test]
async fn a_call_whose_edge_is_killed_within_the_hold_runs_once_and_its_retry_is_another() {
    let cluster = held_for(LONG).await;
    let [first, second] = cluster.edges()[..] else {
        panic!("two edges")
    };
    let client = Arc::new(Client::open(first.mcp_url().unwrap()).await);
    let elsewhere = client.at(second.mcp_url().unwrap());
    elsewhere.echo_patiently(7).await;
    let call = begin(&cluster, &client, "edge", 1_500).await;
    first.kill().await.unwrap();
    assert!(within(call).await.is_err(), "its connection broke");
    // A new POST is a new request, even with the same id.
    let again = within(elsewhere.call(1, "record", &work("again", 1))).await;
    assert_eq!(text_of(&again.body), "again");
    assert_eq!(ledger(&cluster), "edge\nagain\n");
}

#[tokio::test]
async fn a_call_whose_client_hung_up_within_the_hold_can_be_cancelled() {
    let cluster = held_for(LONG).await;
    let client = Arc::new(Client::open(cluster.url()).await);
    let call = begin(&cluster, &client, "hung-up", 600_000).await;
    call.abort();
    let gone = within(call).await;
    assert!(gone.unwrap_err().is_cancelled());
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 }
    });
    assert_eq!(client.post(&cancel).await.status, 202);
    client.close().await;
    hold_nothing(&cluster).await;
    assert_eq!(ledger(&cluster), "hung-up\n");
}

#[tokio::test]
async fn while_redis_is_away_short_calls_are_answered() {
    let cluster = held_for(LONG).await;
    let redis: &Redis = cluster.redis().unwrap();
    let client = Client::open(cluster.url()).await;
    client.echo_patiently(1).await;
    redis.pause().await.unwrap();
    for id in 2..10 {
        let nonce = format!("away-{id}");
        let answer = client.call(id, "record", &work(&nonce, 1)).await;
        assert_eq!(text_of(&answer.body), nonce);
    }
    redis.resume().await.unwrap();
    assert_eq!(ledger(&cluster).lines().count(), 8);
}
