//! When all requests have ended, no member may hold anything for clients, and every key in Redis
//! must expire.

use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, sleep};

use super::store::Store;
use crate::check::{Verdict, Violation};
use crate::cluster::{Cluster, Member};

const EVERY: Duration = Duration::from_millis(200);

pub(super) async fn check(
    cluster: &Cluster,
    store: &Store,
    within: Duration,
    verdict: &mut Verdict,
) {
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
    match keys_that_stay(cluster, store).await {
        Ok(keys) => {
            for key in keys {
                verdict.find(None, Violation::Held, format!("{key} never expires"));
            }
        }
        Err(error) => verdict.find(None, Violation::Misbehaved, format!("{error:#}")),
    }
}

async fn keys_that_stay(cluster: &Cluster, store: &Store) -> anyhow::Result<Vec<String>> {
    let mut keys = Vec::new();
    for redis in store.masters(cluster).await? {
        keys.extend(redis.keys_that_stay().await?);
    }
    Ok(keys)
}

async fn held_by(member: &Member) -> Vec<String> {
    match member.admin().held().await {
        Ok(held) => (held.iter())
            .map(|(what, count)| format!("{}: {what} is {count}", member.name()))
            .collect(),
        Err(error) => vec![format!("{} says nothing: {error:#}", member.name())],
    }
}
