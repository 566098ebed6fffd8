use serde_json::{Value, json};
use shoal_testkit::cluster::Tools;
use shoal_testkit::redis::Redis;

use crate::client::{Answer, Client};
use crate::{journaling, start};

/// So many calls that one script for each would show.
const CALLS: u64 = 300;

async fn ran(redis: &Redis, commands: &[&str]) -> u64 {
    let stats = redis.command(&["INFO", "commandstats"]).await.unwrap();
    let count = |command: &&str| {
        let head = format!("cmdstat_{command}:calls=");
        let calls = stats.lines().find_map(|line| line.strip_prefix(&head))?;
        calls.split(',').next()?.parse::<u64>().ok()
    };
    commands.iter().filter_map(count).sum()
}

/// Only appends use these commands.
pub(crate) async fn appended(redis: &Redis) -> u64 {
    ran(redis, &["rpush", "rpushx"]).await
}

async fn scripts(redis: &Redis) -> u64 {
    ran(redis, &["eval", "evalsha", "fcall"]).await
}

async fn refuse(client: &Client, tool: &str, arguments: &Value, said: &str) {
    for id in 1..=CALLS {
        let Answer { status, body, .. } = client.call(id, tool, arguments).await;
        assert_eq!(status, 200, "{body}");
        assert!(body.to_string().contains(said), "{body}");
    }
}

#[tokio::test]
async fn invalid_arguments_and_unknown_tools_cost_redis_nothing() {
    let cluster = start(journaling().tools(Tools::Demo)).await;
    let redis = cluster.redis().unwrap();
    let client = Client::open(cluster.url()).await;
    let before = appended(redis).await;
    let counted = client.call(1, "echo_once", &json!({"text": "x"})).await;
    assert!(counted.body["result"].is_object(), "{counted:?}");
    assert!(appended(redis).await > before, "a journaled call is seen");

    for (tool, arguments, said) in [
        ("echo_once", json!({"text": 1}), "Invalid arguments"),
        ("no_such_tool", json!({}), "unknown tool"),
        ("echo_once", json!([1]), "must be an object"),
    ] {
        let before = (appended(redis).await, scripts(redis).await);
        refuse(&client, tool, &arguments, said).await;
        let after = (appended(redis).await, scripts(redis).await);
        assert_eq!(after.0, before.0, "{tool} is in the log");
        let ran = after.1 - before.1;
        assert!(ran < CALLS, "{tool}: {ran} scripts for {CALLS} calls");
    }
}
