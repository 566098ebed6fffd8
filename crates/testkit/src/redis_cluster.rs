//! A Redis Cluster of three masters.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::process::Command;
use tokio::time::sleep;

use crate::directory::Directory;
use crate::free_port;
use crate::redis::{self, Data, Redis};

const MASTERS: usize = 3;

/// Longer than an election takes.
const VOTED_SOON: Duration = Duration::from_millis(700);

/// Three Redis masters with their replicas. Automatic failover is disabled, because a busy machine would trigger it.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

impl RedisCluster {
    /// Starts three masters.
    ///
    /// # Errors
    ///
    /// If `redis-server` or `redis-cli` is missing, or the servers do not form a cluster.
    pub async fn start() -> anyhow::Result<Self> {
        Self::start_with(0).await
    }

    /// Starts three masters with this many replicas each.
    pub async fn start_with(replicas: usize) -> anyhow::Result<Self> {
        let directory = Directory::create("redis-cluster")?;
        let mut nodes = Vec::new();
        for number in 1..=MASTERS * (1 + replicas) {
            let bus = free_port::reserve()?.to_string();
            let options = [
                ["--cluster-enabled", "yes"],
                ["--cluster-port", &bus],
                // The masters' timeout. A master votes at most once in twice this time.
                ["--cluster-node-timeout", "3000"],
                ["--cluster-require-full-coverage", "no"],
                ["--cluster-replica-no-failover", "yes"],
                ["--repl-diskless-sync-delay", "0"],
            ]
            .concat();
            let name = format!("redis-{number}");
            nodes.push(Redis::start_in(directory.clone(), &name, &options, &[]).await?);
        }
        let cluster = Self { nodes };
        cluster.join(replicas).await?;
        cluster.wait_until_ready().await?;
        if replicas > 0 {
            cluster.wait_until_replicated().await?;
        }
        Ok(cluster)
    }

    /// Returns all servers.
    #[must_use]
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// Returns the URL with the addresses of all servers.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<String> = self.addresses().iter().map(SocketAddr::to_string).collect();
        format!("redis+cluster://{}", addresses.join(","))
    }

    /// Returns all addresses.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(Redis::address).collect()
    }

    /// Returns the current masters.
    pub async fn masters(&self) -> anyhow::Result<Vec<&Redis>> {
        let mut masters = Vec::new();
        for node in &self.nodes {
            if is_master(node).await? {
                masters.push(node);
            }
        }
        Ok(masters)
    }

    /// Makes a replica take its master's place. The master agrees, so no write is lost.
    pub async fn fail_over(&self, master: &Redis) -> anyhow::Result<()> {
        let replica = self.replica_of(master).await?;
        redis::until("the replica is voted for", async || {
            if is_master(replica).await? {
                return Ok(true);
            }
            // The replica silently ignores this command just after a vote for another replica.
            replica.command(&["CLUSTER", "FAILOVER"]).await?;
            sleep(VOTED_SOON).await;
            Ok(false)
        })
        .await?;
        self.wait_until_promoted(replica).await?;
        self.wait_until_replicated().await
    }

    /// Kills a master, makes its replica take over without a vote, and starts the old master as the replica.
    pub async fn lose(&self, master: &Redis) -> anyhow::Result<()> {
        let replica = self.replica_of(master).await?;
        master.kill().await?;
        replica
            .command(&["CLUSTER", "FAILOVER", "TAKEOVER"])
            .await?;
        self.wait_until_promoted(replica).await?;
        master.start_again(Data::Kept).await?;
        self.wait_until_replicated().await
    }

    async fn replica_of(&self, master: &Redis) -> anyhow::Result<&Redis> {
        let info = master.command(&["INFO", "replication"]).await?;
        let is_its = |node: &&Redis| info.contains(&format!(",port={},", node.address().port()));
        let replica = self.nodes.iter().find(is_its);
        replica.context("a master without a replica")
    }

    async fn wait_until_promoted(&self, replica: &Redis) -> anyhow::Result<()> {
        let port = format!(":{}@", replica.address().port());
        redis::until("the replica is the master", async || {
            for node in &self.nodes {
                // Tries the next server, because a former master may be down.
                let Ok(text) = node.command(&["CLUSTER", "NODES"]).await else {
                    continue;
                };
                let line = text.lines().find(|line| line.contains(&port));
                if !line.is_some_and(|line| line.contains("master")) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await
    }

    async fn wait_until_replicated(&self) -> anyhow::Result<()> {
        redis::until("every master has a replica", async || {
            let mut masters = 0;
            for node in &self.nodes {
                let info = node.command(&["INFO", "replication"]).await?;
                let is_master = info.contains("role:master");
                masters += usize::from(is_master);
                let fine = match is_master {
                    true => info.contains("state=online"),
                    false => info.contains("master_link_status:up"),
                };
                if !fine {
                    return Ok(false);
                }
            }
            Ok(masters == MASTERS)
        })
        .await
    }

    async fn join(&self, replicas: usize) -> anyhow::Result<()> {
        let output = Command::new("redis-cli")
            .args(["--cluster", "create"])
            .args(self.addresses().iter().map(SocketAddr::to_string))
            .args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"])
            .kill_on_drop(true)
            .output()
            .await
            .context("cannot run redis-cli")?;
        if !output.status.success() {
            bail!("no cluster: {}", String::from_utf8_lossy(&output.stdout));
        }
        Ok(())
    }

    async fn wait_until_ready(&self) -> anyhow::Result<()> {
        redis::until("every node is in its cluster", async || {
            for node in &self.nodes {
                let info = node.command(&["CLUSTER", "INFO"]).await?;
                if !info.contains("cluster_state:ok") {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await
    }
}

async fn is_master(node: &Redis) -> anyhow::Result<bool> {
    let info = node.command(&["INFO", "replication"]).await?;
    Ok(info.contains("role:master"))
}
