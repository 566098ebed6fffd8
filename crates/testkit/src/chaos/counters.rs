use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use tokio::time::sleep;

use crate::cluster::Cluster;

const EVERY: Duration = Duration::from_millis(500);

/// Counters in `/status`, with their names in the report. The first is [`Counters::taken_over`].
const SUMS: [(&str, &str); 6] = [
    ("sessions taken over", "/sessions/taken_over"),
    ("calls resumed", "/sessions/resumed_calls"),
    ("redelivered", "/cluster/routing/redelivered"),
    ("reattached", "/cluster/routing/reattached"),
    ("lost streams", "/cluster/routing/lost_streams"),
    ("waits for an owner", "/cluster/routing/takeovers/count"),
];

/// The longest waits for an owner, in milliseconds.
const LONGEST: [(&str, &str); 3] = [
    ("p50", "/cluster/routing/takeovers/p50_ms"),
    ("p99", "/cluster/routing/takeovers/p99_ms"),
    ("longest", "/cluster/routing/takeovers/max_ms"),
];

/// The last `/status` of every node that has lived, by the node's id.
#[derive(Clone, Debug, Default)]
pub struct Counters(HashMap<String, Value>);

impl Counters {
    /// Reads the counters repeatedly, because a killed node loses its own.
    pub(super) async fn watch(cluster: &Cluster, over: impl Future<Output = ()>) -> Self {
        let mut counters = Self::default();
        tokio::pin!(over);
        let mut is_over = false;
        while !is_over {
            is_over = tokio::select! {
                () = &mut over => true,
                () = sleep(EVERY) => false,
            };
            let members = cluster.members().iter();
            let statuses = join_all(members.map(|member| member.admin().status())).await;
            for status in statuses.into_iter().flatten() {
                if let Some(node) = status["node"].as_str() {
                    counters.0.insert(node.to_owned(), status);
                }
            }
        }
        counters
    }

    /// Returns the number of sessions that nodes took over from others.
    pub(super) fn taken_over(&self) -> u64 {
        self.of(SUMS[0].1).sum()
    }

    fn of<'a>(&'a self, path: &'a str) -> impl Iterator<Item = u64> + 'a {
        let number = |status: &'a Value| status.pointer(path)?.as_u64();
        self.0.values().filter_map(number)
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, path)) in SUMS.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let sum: u64 = self.of(path).sum();
            write!(out, "{comma}{name} {sum}")?;
        }
        for (name, path) in LONGEST {
            let longest = self.of(path).max().unwrap_or_default();
            write!(out, ", {name} {longest} ms")?;
        }
        Ok(())
    }
}
