use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use shoal_testkit::cluster::{Cluster, Tools};
use shoal_testkit::redis::Redis;

use crate::client::{Client, within};
use crate::{small, start};

const SESSIONS: usize = 20;

async fn call_modern(cluster: &Cluster, tool: &str) {
    let message = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": tool,
            "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {}
            }
        }
    });
    let post = reqwest::Client::new().post(cluster.url()).json(&message);
    let post = post
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool);
    let answer = within(post.send()).await.unwrap();
    let (status, text) = (answer.status(), within(answer.text()).await.unwrap());
    assert!(
        status == 200 && text.contains("\"result\""),
        "{status}: {text}"
    );
}

/// Counts the appends to event logs, each of which is one `RPUSH`.
async fn appended(redis: &Redis) -> u64 {
    let stats = redis.command(&["INFO", "commandstats"]).await.unwrap();
    let calls = stats.lines().find_map(|line| {
        let rest = line.strip_prefix("cmdstat_rpush:calls=")?;
        rest.split(',').next()?.parse().ok()
    });
    calls.unwrap_or_default()
}

fn is_change(message: &Value) -> bool {
    message["method"] == "notifications/tools/list_changed"
}

#[tokio::test]
async fn a_changed_list_is_told_to_all_who_listen_and_written_for_none() {
    let cluster = start(small().tools(Tools::Demo)).await;
    let redis = cluster.redis().unwrap();
    let clients = join_all((0..SESSIONS).map(|_| Client::open(cluster.url()))).await;
    let mut streams = join_all(clients.iter().map(Client::listen)).await;
    for stream in &mut streams {
        stream.primed().await;
    }
    let before = appended(redis).await;
    call_modern(&cluster, "toggle_bonus_tool").await;
    for stream in &mut streams {
        let id = stream.last_id.clone();
        let told = stream.next().await.unwrap();
        assert!(is_change(&told), "{told}");
        assert_eq!(stream.last_id, id, "there is nothing to resume after");
    }
    assert_eq!(appended(redis).await, before, "nothing was appended");

    // A client that resumes without having fetched the list hears of the change again, from the
    // log.
    let (unsure, knows) = (&clients[0], &clients[1]);
    let listing = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {} });
    assert_eq!(knows.post(&listing).await.status, 200);
    let mut again = unsure.resume(&streams[0].last_id).await;
    let told = again.next().await.unwrap();
    assert!(is_change(&told), "{told}");
    assert_eq!(appended(redis).await, before + 1);
    let mut quiet = knows.resume(&streams[1].last_id).await;
    assert_eq!(appended(redis).await, before + 1);

    for client in &clients {
        client.close().await;
    }
    assert!(quiet.rest().await.is_empty());
    for stream in &mut streams {
        let rest = tokio::time::timeout(Duration::from_secs(40), stream.rest()).await;
        let rest = rest.expect("the stream ends with its session");
        assert!(!rest.iter().any(is_change), "told once: {rest:?}");
    }
}
