//! A Redis with a replica that takes its place, when Sentinel is told to see to that.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::{Instant, sleep};

use crate::directory::Directory;
use crate::free_port;
use crate::process::{Launch, Process, SOON};
use crate::redis::{self, Redis};

/// What Sentinel calls the master.
const NAME: &str = "main";

/// A master, its replica, and a sentinel. It finds nobody down by itself: on a busy machine it would find so at any time.
#[derive(Debug)]
pub struct RedisSentinel {
    master: Redis,
    replica: Redis,
    sentinel: SocketAddr,
    _watching: Process,
}

/// What becomes of the newest writes in a failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newest {
    /// The replica has got them.
    Kept,
    /// They were acknowledged, and the replica never got them.
    Lost,
}

impl RedisSentinel {
    /// Starts all three, and waits until the sentinel knows the replica, which has everything.
    ///
    /// # Errors
    /// When there is no `redis-server`, or they do not come together.
    pub async fn start() -> anyhow::Result<Self> {
        let directory = Directory::create("redis-sentinel")?;
        let quick = ["--repl-diskless-sync-delay", "0"];
        let master = Redis::start_in(directory.clone(), "redis-1", &quick).await?;
        let of = format!("127.0.0.1 {}", master.address().port());
        let replica = [&quick[..], &["--replicaof", &of]].concat();
        let replica = Redis::start_in(directory.clone(), "redis-2", &replica).await?;
        let port = free_port::reserve()?;
        let file = directory.file("sentinel.conf");
        let text = format!(
            "port {port}\n\
             bind 127.0.0.1\n\
             sentinel monitor {NAME} {of} 1\n\
             sentinel down-after-milliseconds {NAME} 600000\n\
             sentinel failover-timeout {NAME} 3000\n"
        );
        std::fs::write(&file, text).context("cannot write sentinel.conf")?;
        let log = directory.file("sentinel.log");
        let launch = Launch::new("sentinel", "redis-server", &log)
            .arguments([file.as_os_str()])
            .arguments(["--sentinel", "--logfile"])
            .arguments([log.as_os_str()]);
        let started = Self {
            master,
            replica,
            sentinel: (Ipv4Addr::LOCALHOST, port).into(),
            _watching: Process::start(&launch)?,
        };
        started
            .until("the sentinel knows the replica", async || {
                let known = redis::command(started.sentinel, &["SENTINEL", "REPLICAS", NAME]);
                Ok(known.await? == "1")
            })
            .await?;
        started.until_alike().await?;
        Ok(started)
    }

    /// The URL of whoever is the master.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis+sentinel://{}/{NAME}", self.sentinel)
    }

    /// From now on the replica gets nothing; what is written is acknowledged all the same.
    ///
    /// # Errors
    /// When the servers cannot be told.
    pub async fn cut_replica_off(&self) -> anyhow::Result<()> {
        self.until_alike().await?;
        // Stopped, it does not come back to the master that has closed its connection.
        self.replica.pause().await?;
        let cut = ["CLIENT", "KILL", "TYPE", "replica"];
        self.master.command(&cut).await.map(drop)
    }

    /// Kills the master, and waits until the replica has taken its place. The newest writes are those since the replica was
    /// cut off, if it was.
    ///
    /// # Errors
    /// When it does not come to that.
    pub async fn fail_over(&self, newest: Newest) -> anyhow::Result<()> {
        if newest == Newest::Kept {
            self.until_alike().await?;
        }
        self.master.kill().await?;
        if newest == Newest::Lost {
            self.replica.resume().await?;
        }
        // It refuses until it has heard of the replica again.
        self.until("the sentinel promotes the replica", async || {
            let promote = ["SENTINEL", "FAILOVER", NAME];
            redis::command(self.sentinel, &promote).await?;
            Ok(true)
        })
        .await?;
        self.until("the replica is the master", async || {
            let info = self.replica.command(&["INFO", "replication"]).await?;
            Ok(info.contains("role:master"))
        })
        .await?;
        let address = format!("address={}", self.replica.address());
        self.until("the sentinel names the replica", async || {
            let info = redis::command(self.sentinel, &["INFO", "sentinel"]).await?;
            Ok(info.contains(&address))
        })
        .await
    }

    async fn until_alike(&self) -> anyhow::Result<()> {
        let offset = async |redis: &Redis| -> anyhow::Result<Option<String>> {
            let info = redis.command(&["INFO", "replication"]).await?;
            let line = info
                .lines()
                .find(|line| line.starts_with("master_repl_offset"));
            let linked = info.contains("role:master") || info.contains("master_link_status:up");
            Ok(line.filter(|_| linked).map(str::to_owned))
        };
        self.until("the replica has everything", async || {
            let there = offset(&self.replica).await?;
            Ok(there.is_some() && there == offset(&self.master).await?)
        })
        .await
    }

    async fn until(
        &self,
        what: &str,
        holds: impl AsyncFn() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + SOON;
        loop {
            match holds().await {
                Ok(true) => return Ok(()),
                _ if Instant::now() < deadline => sleep(Duration::from_millis(20)).await,
                Ok(false) => bail!("never: {what}"),
                Err(error) => return Err(error).with_context(|| format!("never: {what}")),
            }
        }
    }
}
