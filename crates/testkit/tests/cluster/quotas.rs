use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::cluster::Cluster;
use tokio::time::{sleep, timeout};

use crate::client::{Client, within};
use crate::{small, start};

/// A quota of two concurrent calls of a tool that continues after its client hangs up.
const TWO: &str = "[{ name = 'two', per = 'principal', tools = ['record'], concurrent = 2 }]";
const CALLS: usize = 6;
const PATIENCE: Duration = Duration::from_millis(200);

const META: &str = "io.modelcontextprotocol";

async fn two() -> Cluster {
    let builder = small().edges(1).setting("tasks.after", "50ms");
    start(builder.setting("quotas", TWO)).await
}

fn call(id: usize) -> Value {
    let arguments = json!({ "nonce": format!("n{id}"), "ms": 1_500 });
    let params = json!({ "name": "record", "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

fn modern(url: &str, mut call: Value, declared: Value) -> reqwest::RequestBuilder {
    call["params"]["_meta"] = json!({
        format!("{META}/protocolVersion"): "2026-07-28",
        format!("{META}/clientCapabilities"): declared,
    });
    let post = reqwest::Client::new().post(url).json(&call);
    post.header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "record")
}

fn legacy(client: &Client, call: &Value) -> reqwest::RequestBuilder {
    let post = reqwest::Client::new().post(client.url()).json(call);
    post.header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .header("mcp-session-id", client.session())
}

async fn running(cluster: &Cluster) -> u64 {
    let status = cluster.workers()[0].admin().status().await.unwrap();
    let pools = status["pools"].as_array().unwrap().iter();
    let workers = pools.flat_map(|pool| pool["workers"].as_array().unwrap());
    workers
        .map(|worker| worker["running"].as_u64().unwrap())
        .sum()
}

fn begun(cluster: &Cluster) -> usize {
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap_or_default();
    ledger.lines().count()
}

async fn never_more_than_two(
    cluster: &Cluster,
    request: impl Fn(usize) -> reqwest::RequestBuilder,
) {
    let before = begun(cluster);
    let (mut id, mut refused, mut most) = (1_000, 0, 0);
    within(async {
        while begun(cluster) - before < CALLS {
            id += 1;
            if let Ok(answer) = timeout(PATIENCE, request(id).send()).await {
                let answer = answer.unwrap();
                refused += usize::from(answer.status() == 429);
                assert!([200, 429].contains(&answer.status().as_u16()), "{answer:?}");
            }
            most = most.max(running(cluster).await);
        }
        while running(cluster).await > 0 {
            most = most.max(running(cluster).await);
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!((1..=2).contains(&most), "{most}");
    assert!(refused > 0);
}

#[tokio::test]
async fn calls_whose_clients_hang_up_keep_their_places() {
    let cluster = two().await;
    let client = Client::open(cluster.url()).await;
    client.echo_patiently(1).await;
    never_more_than_two(&cluster, |id| legacy(&client, &call(id))).await;
    cluster.end().await;
}

#[tokio::test]
async fn tasks_keep_the_places_of_their_calls() {
    let cluster = two().await;
    let client = Client::open(cluster.url()).await;
    client.echo_patiently(1).await;
    never_more_than_two(&cluster, |id| {
        let mut call = call(id);
        call["params"]["task"] = json!({});
        legacy(&client, &call)
    })
    .await;
    let declared = json!({ "extensions": { format!("{META}/tasks"): {} } });
    never_more_than_two(&cluster, |id| {
        modern(cluster.url(), call(id), declared.clone())
    })
    .await;
    cluster.end().await;
}
