//! A Redis master, its replica, and a sentinel.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, ensure};

use crate::directory::Directory;
use crate::free_port;
use crate::process::{Launch, Process, SOON};
use crate::redis::{self, Data, Redis};
use crate::wait::until;

const NAME: &str = "main";

/// Longer than the replica needs to catch up.
const NO_WRITES_MS: &str = "30000";

/// A master, its replica, and a sentinel. Automatic failover is disabled, because a busy machine would trigger it.
#[derive(Debug)]
pub struct RedisSentinel {
    nodes: [Redis; 2],
    master: AtomicUsize,
    sentinel: SocketAddr,
    _watching: Process,
}

/// How a failover treats the newest writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newest {
    /// The replica has received the newest writes.
    Kept,
    /// The replica has not received all acknowledged writes.
    Lost,
}

impl RedisSentinel {
    /// Starts all three, and waits until the replica is in sync.
    ///
    /// # Errors
    ///
    /// If `redis-server` is missing, or the servers do not find one another.
    pub async fn start() -> anyhow::Result<Self> {
        let directory = Directory::create("redis-sentinel")?;
        let quick = ["--repl-diskless-sync-delay", "0"];
        let master = Redis::start_in(directory.clone(), "redis-1", &quick, &[]).await?;
        let of = format!("127.0.0.1 {}", master.address().port());
        let replica = [&quick[..], &["--replicaof", &of]].concat();
        let replica = Redis::start_in(directory.clone(), "redis-2", &replica, &[]).await?;
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
            nodes: [master, replica],
            master: AtomicUsize::new(0),
            sentinel: (Ipv4Addr::LOCALHOST, port).into(),
            _watching: Process::start(&launch)?,
        };
        until(SOON, async || {
            let known = redis::command(started.sentinel, &["SENTINEL", "REPLICAS", NAME]);
            ensure!(
                known.await? == "1",
                "the sentinel does not know the replica"
            );
            Ok(())
        })
        .await?;
        started.until_alike().await?;
        Ok(started)
    }

    /// Returns the current master.
    #[must_use]
    pub fn master(&self) -> &Redis {
        &self.nodes[self.master.load(Ordering::Relaxed)]
    }

    fn replica(&self) -> &Redis {
        &self.nodes[1 - self.master.load(Ordering::Relaxed)]
    }

    /// Returns the URL by which clients find the current master through the sentinel.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis+sentinel://{}/{NAME}", self.sentinel)
    }

    /// Cuts the replica off. The master still acknowledges writes.
    pub async fn cut_replica_off(&self) -> anyhow::Result<()> {
        self.hold_writes_until_alike().await?;
        // The replica must not reconnect to the master.
        self.replica().pause().await?;
        let cut = ["CLIENT", "KILL", "TYPE", "replica"];
        self.master().command(&cut).await?;
        self.master()
            .command(&["CLIENT", "UNPAUSE"])
            .await
            .map(drop)
    }

    /// Kills the master and promotes the replica. `newest` says whether the replica first gets the writes
    /// since [`RedisSentinel::cut_replica_off`].
    pub async fn fail_over(&self, newest: Newest) -> anyhow::Result<()> {
        let replica = self.replica();
        if newest == Newest::Kept {
            self.hold_writes_until_alike().await?;
        }
        self.master().kill().await?;
        if newest == Newest::Lost {
            replica.resume().await?;
        }
        // The sentinel refuses until it has heard of the replica again.
        until(SOON, async || {
            let promote = ["SENTINEL", "FAILOVER", NAME];
            redis::command(self.sentinel, &promote).await.map(drop)
        })
        .await?;
        until(SOON, async || {
            ensure!(replica.is_master().await?, "the replica is no master");
            Ok(())
        })
        .await?;
        let address = format!("address={}", replica.address());
        until(SOON, async || {
            let info = redis::command(self.sentinel, &["INFO", "sentinel"]).await?;
            ensure!(info.contains(&address), "the sentinel says: {info}");
            Ok(())
        })
        .await?;
        self.master.fetch_xor(1, Ordering::Relaxed);
        Ok(())
    }

    /// Starts the former master as the replica, and waits until it is in sync.
    pub async fn bring_back(&self) -> anyhow::Result<()> {
        let of = format!("127.0.0.1 {}", self.master().address().port());
        // Without this option, the server would start as a master.
        let options = ["--replicaof", &of];
        self.replica()
            .start_again_with(Data::Kept, &options)
            .await?;
        until(SOON, async || {
            let info = self.replica().replication().await?;
            let linked = info.contains("master_link_status:up");
            ensure!(linked, "the former master does not follow: {info}");
            Ok(())
        })
        .await
    }

    /// Holds clients' writes meanwhile.
    async fn hold_writes_until_alike(&self) -> anyhow::Result<()> {
        let pause = ["CLIENT", "PAUSE", NO_WRITES_MS, "WRITE"];
        self.master().command(&pause).await?;
        self.until_alike().await
    }

    async fn until_alike(&self) -> anyhow::Result<()> {
        let offset = |info: &str| {
            let mut lines = info.lines();
            let line = lines.find(|line| line.starts_with("master_repl_offset"));
            line.map(str::to_owned)
        };
        until(SOON, async || {
            let replica = self.replica().replication().await?;
            let master = self.master().replication().await?;
            let linked = replica.contains("master_link_status:up");
            let alike = linked && offset(&replica) == offset(&master);
            ensure!(alike, "the replica lacks writes: {replica}");
            Ok(())
        })
        .await
    }
}
