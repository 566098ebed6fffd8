use serde_json::json;

use crate::client::{Client, progress_of, text_of};
use crate::{small, start};

#[tokio::test]
async fn a_stream_is_resumed_at_another_edge_while_its_call_runs_on() {
    let cluster = start(small()).await;
    let [first, second] = cluster.edges()[..] else {
        panic!("two edges")
    };
    let client = Client::open(first.mcp_url().unwrap()).await;
    let arguments = json!({ "nonce": "once", "count": 20, "ms": 100 });
    let mut before = client.stream(1, "steps_once", &arguments).await;
    let mut messages = vec![before.next().await.unwrap(), before.next().await.unwrap()];
    first.kill().await.unwrap();
    while let Some(message) = before.next().await {
        messages.push(message);
    }
    let elsewhere = client.at(second.mcp_url().unwrap());
    let mut after = elsewhere.resume(&before.last_id).await;
    messages.extend(after.rest().await);
    assert_eq!(progress_of(&messages), (1..=20).collect::<Vec<_>>());
    assert_eq!(text_of(messages.last().unwrap()), "once");
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    assert_eq!(ledger.lines().count(), 1, "executed once: {ledger}");
}

#[tokio::test]
async fn a_call_is_cancelled_from_any_edge() {
    let cluster = start(small()).await;
    let [first, second] = cluster.edges()[..] else {
        panic!("two edges")
    };
    let client = Client::open(first.mcp_url().unwrap()).await;
    let arguments = json!({ "nonce": "long", "ms": 60_000 });
    let mut events = client.stream(1, "long", &arguments).await;
    events.primed().await;
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 }
    });
    let elsewhere = client.at(second.mcp_url().unwrap());
    assert_eq!(elsewhere.post(&cancel).await.status, 202);
    let rest = events.rest().await;
    assert_eq!(rest.last().unwrap()["error"]["code"], -32800, "{rest:?}");
}
