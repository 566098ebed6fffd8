//! What processes still hold when nobody asks for anything any more.
//!
//! Whatever a request took has an owner that ends, also where its client hung up, its edge was killed or the way broke. So
//! after a run every count of what is under way is zero again, in every process, and every key in Redis expires.

use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, sleep};

use crate::check::{Verdict, Violation};
use crate::cluster::{Cluster, Member};
use crate::redis::Redis;

/// How often processes are asked.
const EVERY: Duration = Duration::from_millis(200);

/// Keys that are looked at in one go.
const KEYS: &str = "1000";

/// Waits until nothing is held any more; what still is after that time is found.
pub(super) async fn check(cluster: &Cluster, within: Duration, verdict: &mut Verdict) {
    let deadline = Instant::now() + within;
    loop {
        let held: Vec<String> = join_all(cluster.members().iter().map(held_by))
            .await
            .concat();
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
    match member.admin().held().await {
        Ok(held) => (held.iter())
            .map(|(what, count)| format!("{}: {what} is {count}", member.name()))
            .collect(),
        Err(error) => vec![format!("{} says nothing: {error:#}", member.name())],
    }
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
