//! A Redis Cluster of three masters.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::time::sleep;

use crate::directory::Directory;
use crate::free_port;
use crate::process::{self, SOON};
use crate::redis::{Data, Redis};
use crate::wait::until;

const MASTERS: usize = 3;

/// Longer than an election takes.
const VOTED_SOON: Duration = Duration::from_millis(700);

/// Three Redis masters with a replica each. Automatic failover is disabled, because a busy machine would trigger it.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
}

impl RedisCluster {
    /// Starts all servers, and waits until the replicas are in sync.
    ///
    /// # Errors
    ///
    /// If `redis-server` or `redis-cli` is missing, or the servers do not form a cluster.
    pub async fn start() -> anyhow::Result<Self> {
        let directory = Directory::create("redis-cluster")?;
        let mut nodes = Vec::new();
        for number in 1..=MASTERS * 2 {
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
        let addresses = cluster.addresses();
        let mut join = vec!["--cluster", "create"];
        join.extend(addresses.iter().map(String::as_str));
        join.extend(["--cluster-replicas", "1", "--cluster-yes"]);
        process::output("redis-cli", &join).await?;
        cluster.wait_until_replicated().await?;
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
        format!("redis+cluster://{}", self.addresses().join(","))
    }

    fn addresses(&self) -> Vec<String> {
        let addresses = self.nodes.iter().map(Redis::address);
        addresses.map(|address| address.to_string()).collect()
    }

    /// Returns the current masters.
    pub async fn masters(&self) -> anyhow::Result<Vec<&Redis>> {
        let mut masters = Vec::new();
        for node in &self.nodes {
            if node.is_master().await? {
                masters.push(node);
            }
        }
        Ok(masters)
    }

    /// Makes a replica take its master's place. The master agrees, so no write is lost.
    pub async fn fail_over(&self, master: &Redis) -> anyhow::Result<()> {
        let replica = self.replica_of(master).await?;
        until(SOON, async || {
            if !replica.is_master().await? {
                // The replica silently ignores this command just after a vote for another replica.
                replica.command(&["CLUSTER", "FAILOVER"]).await?;
                sleep(VOTED_SOON).await;
            }
            ensure!(replica.is_master().await?, "the replica is not voted for");
            Ok(())
        })
        .await?;
        self.wait_until_promoted(replica).await?;
        self.wait_until_replicated().await
    }

    /// Kills a master, makes its replica take over without a vote, and starts the old master as the replica.
    pub async fn lose(&self, master: &Redis) -> anyhow::Result<()> {
        let replica = self.replica_of(master).await?;
        master.kill().await?;
        let take_over = ["CLUSTER", "FAILOVER", "TAKEOVER"];
        replica.command(&take_over).await?;
        self.wait_until_promoted(replica).await?;
        master.start_again(Data::Kept).await?;
        self.wait_until_replicated().await
    }

    async fn replica_of(&self, master: &Redis) -> anyhow::Result<&Redis> {
        let info = master.replication().await?;
        let is_its = |node: &&Redis| info.contains(&format!(",port={},", node.address().port()));
        let replica = self.nodes.iter().find(is_its);
        replica.context("a master without a replica")
    }

    async fn wait_until_promoted(&self, replica: &Redis) -> anyhow::Result<()> {
        let port = format!(":{}@", replica.address().port());
        until(SOON, async || {
            for node in &self.nodes {
                // Tries the next server, because a former master may be down.
                let Ok(text) = node.command(&["CLUSTER", "NODES"]).await else {
                    continue;
                };
                let line = text.lines().find(|line| line.contains(&port));
                let promoted = line.is_some_and(|line| line.contains("master"));
                ensure!(promoted, "the replica is no master: {text}");
            }
            Ok(())
        })
        .await
    }

    async fn wait_until_replicated(&self) -> anyhow::Result<()> {
        until(SOON, async || {
            for node in &self.nodes {
                let state = node.command(&["CLUSTER", "INFO"]).await?;
                let info = node.replication().await?;
                let linked = match info.contains("role:master") {
                    true => "state=online",
                    false => "master_link_status:up",
                };
                let fine = state.contains("cluster_state:ok") && info.contains(linked);
                ensure!(fine, "a server of the cluster is not in sync: {info}");
            }
            let masters = self.masters().await?.len();
            ensure!(masters == MASTERS, "{masters} masters have a replica");
            Ok(())
        })
        .await
    }
}
