//! What processes still hold when nobody asks for anything any more.
//!
//! Whatever a request took has an owner that ends, also where its client hung up, its edge was killed or the way broke. So
//! after a run every count of what is under way is zero again, in every process, and every key in Redis expires.

use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::check::{Verdict, Violation};
use crate::cluster::{Cluster, Member};
use crate::redis::Redis;

/// How often processes are asked.
const EVERY: Duration = Duration::from_millis(200);

/// Counts of `/status` that are zero when nothing is under way.
const COUNTS: [&str; 5] = [
    "/edge/requests",
    "/edge/streams",
    "/sessions/in_flight",
    "/sessions/streams",
    "/parked",
];

/// Keys that are looked at in one go.
const KEYS: &str = "1000";

/// Waits until nothing is held any more; what still is after that time is found.
pub(super) async fn check(cluster: &Cluster, within: Duration, verdict: &mut Verdict) {
    let deadline = Instant::now() + within;
    loop {
        let held: Vec<String> = join_all(cluster.members().iter().map(held_by)).await.concat();
        if held.is_empty() {
            break;
        }
        if Instant::now() > deadline {
            for held in held {
                verdict.find(None, Violation::Held, held);
            }
            break;
        }
        sleep(EVERY).await;
    }
    if let Some(redis) = cluster.redis() {
        match keys_that_stay(redis).await {
            Ok(keys) => {
                for key in keys {
                    verdict.find(None, Violation::Held, format!("{key} never expires"));
                }
            }
            Err(error) => verdict.find(None, Violation::Misbehaved, format!("{error:#}")),
        }
    }
}

async fn held_by(member: &Member) -> Vec<String> {
    match member.admin().status().await {
        Ok(status) => (held_in(&status).into_iter())
            .map(|held| format!("{}: {held}", member.name()))
            .collect(),
        Err(error) => vec![format!("{} says nothing: {error:#}", member.name())],
    }
}

/// What a process holds by its own word.
fn held_in(status: &Value) -> Vec<String> {
    let mut held = Vec::new();
    let mut count = |what: &str, count: &Value| {
        if count.as_u64().is_some_and(|count| count > 0) {
            held.push(format!("{what} is {count}"));
        }
    };
    for path in COUNTS {
        count(path, status.pointer(path).unwrap_or(&Value::Null));
    }
    let pools = status["pools"].as_array().into_iter().flatten();
    for worker in pools.filter_map(|pool| pool["workers"].as_array()).flatten() {
        for what in ["running", "queued"] {
            count(&format!("{what} at {}", worker["id"]), &worker[what]);
        }
    }
    held
}

/// Keys without a time at which they go.
async fn keys_that_stay(redis: &Redis) -> anyhow::Result<Vec<String>> {
    let script = "local stay, cursor = {}, '0' \
                  repeat local page = redis.call('SCAN', cursor, 'COUNT', ARGV[1]) cursor = page[1] \
                  for _, key in ipairs(page[2]) do if redis.call('PTTL', key) == -1 then stay[#stay + 1] = key end end \
                  until cursor == '0' return table.concat(stay, '\\n')";
    let keys = redis.command(&["EVAL", script, "0", KEYS]).await?;
    Ok(keys.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::held_in;

    #[test]
    fn every_count_is_looked_at() {
        let status = json!({
            "edge": { "requests": 1, "streams": 0 },
            "sessions": { "in_flight": 2, "streams": 0 },
            "parked": 3,
            "pools": [{ "workers": [{ "id": "w", "running": 4, "queued": 5 }] }],
        });
        assert_eq!(
            held_in(&status),
            [
                "/edge/requests is 1",
                "/sessions/in_flight is 2",
                "/parked is 3",
                "running at \"w\" is 4",
                "queued at \"w\" is 5",
            ]
        );
    }

    #[test]
    fn a_process_without_the_roles_holds_nothing() {
        assert!(held_in(&json!({ "edge": null, "sessions": null, "pools": [] })).is_empty());
    }
}
