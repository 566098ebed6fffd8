use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use tokio::time::sleep;

use crate::cluster::{Cluster, Member};

const EVERY: Duration = Duration::from_millis(500);

/// The nodes' counters of take-overs in `/status`, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sessions taken over from other nodes.
    pub taken_over: u64,
    /// Calls resumed that another node had begun.
    pub resumed_calls: u64,
    /// Messages redelivered after the connection to the owner broke.
    pub redelivered: u64,
    /// Streams reattached after a broken connection.
    pub reattached: u64,
    /// Streams that could not be reattached.
    pub lost_streams: u64,
    /// Messages and streams that waited for an owner.
    pub waited: u64,
    /// The median wait for an owner, at the slowest node.
    pub p50_ms: u64,
    /// The 99th percentile of these waits, at the slowest node.
    pub p99_ms: u64,
    /// The longest of these waits.
    pub max_ms: u64,
}

#[derive(Debug, Default)]
pub(super) struct Watch {
    nodes: HashMap<String, Counters>,
}

impl Watch {
    pub(super) async fn run(cluster: &Cluster, over: impl Future<Output = ()>) -> Counters {
        let mut watch = Self::default();
        tokio::pin!(over);
        loop {
            watch.look(cluster.members()).await;
            tokio::select! {
                () = &mut over => break,
                () = sleep(EVERY) => {}
            }
        }
        watch.look(cluster.members()).await;
        let nodes = watch.nodes.into_values();
        nodes.fold(Counters::default(), Counters::with)
    }

    async fn look(&mut self, members: &[Member]) {
        let statuses = join_all(members.iter().map(|member| member.admin().status())).await;
        for status in statuses.into_iter().flatten() {
            if let Some(node) = status["node"].as_str() {
                self.nodes.insert(node.to_owned(), Counters::of(&status));
            }
        }
    }
}

impl Counters {
    fn of(status: &Value) -> Self {
        let number = |path| status.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        Self {
            taken_over: number("/sessions/taken_over"),
            resumed_calls: number("/sessions/resumed_calls"),
            redelivered: number("/cluster/routing/redelivered"),
            reattached: number("/cluster/routing/reattached"),
            lost_streams: number("/cluster/routing/lost_streams"),
            waited: number("/cluster/routing/takeovers/count"),
            p50_ms: number("/cluster/routing/takeovers/p50_ms"),
            p99_ms: number("/cluster/routing/takeovers/p99_ms"),
            max_ms: number("/cluster/routing/takeovers/max_ms"),
        }
    }

    fn with(self, other: Self) -> Self {
        Self {
            taken_over: self.taken_over + other.taken_over,
            resumed_calls: self.resumed_calls + other.resumed_calls,
            redelivered: self.redelivered + other.redelivered,
            reattached: self.reattached + other.reattached,
            lost_streams: self.lost_streams + other.lost_streams,
            waited: self.waited + other.waited,
            p50_ms: self.p50_ms.max(other.p50_ms),
            p99_ms: self.p99_ms.max(other.p99_ms),
            max_ms: self.max_ms.max(other.max_ms),
        }
    }
}
