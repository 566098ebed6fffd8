//! A Redis Cluster of three masters.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::directory::Directory;
use crate::free_port;
use crate::process::SOON;
use crate::redis::Redis;

/// The fewest that Redis makes a cluster of.
const NODES: usize = 3;

/// Three Redis servers that share the hash slots.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

impl RedisCluster {
    /// Starts three servers, joins them, and waits until each takes commands.
    ///
    /// # Errors
    /// When there is no `redis-server` or `redis-cli`, or they do not come together.
    pub async fn start() -> anyhow::Result<Self> {
        let directory = Directory::create("redis-cluster")?;
        let mut nodes = Vec::with_capacity(NODES);
        for number in 1..=NODES {
            let bus = free_port::reserve()?.to_string();
            let options = ["--cluster-enabled", "yes", "--cluster-port", &bus];
            let name = format!("redis-{number}");
            nodes.push(Redis::start_in(directory.clone(), &name, &options).await?);
        }
        let cluster = Self { nodes };
        cluster.join().await?;
        cluster.wait_until_ready().await?;
        Ok(cluster)
    }

    /// The servers.
    #[must_use]
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// Where they listen.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(Redis::address).collect()
    }

    async fn join(&self) -> anyhow::Result<()> {
        let output = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(self.addresses().iter().map(SocketAddr::to_string))
            .args(["--cluster-replicas", "0", "--cluster-yes"])
            .kill_on_drop(true)
            .output()
            .await
            .context("cannot run redis-cli")?;
        if !output.status.success() {
            bail!("no cluster: {}", String::from_utf8_lossy(&output.stdout));
        }
        Ok(())
    }

    /// Each node learns by gossip that all slots are served.
    async fn wait_until_ready(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + SOON;
        for node in &self.nodes {
            loop {
                let info = node.command(&["CLUSTER", "INFO"]).await?;
                if info.contains("cluster_state:ok") {
                    break;
                }
                if Instant::now() > deadline {
                    bail!("{} is not in its cluster: {info}", node.address());
                }
                sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }
}
