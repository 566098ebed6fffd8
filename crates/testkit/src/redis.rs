//! A real `redis-server` on its own port.

mod wire;

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};

use crate::directory::Directory;
use crate::free_port;
use crate::limits::{self, FILE_SIZE};
use crate::process::{Launch, Restartable, SOON};
use crate::wait::until;

pub use wire::{command, info};

/// Ignores `SIGXFSZ`, so that writes beyond the file size limit fail as on a full disk ([`Redis::fill_disk`]).
const START: &str = "trap '' XFSZ; exec redis-server \"$@\"";

const KEYS_AT_ONCE: &str = "1000";

/// Whether a restarted server keeps its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// The server has everything that it has acknowledged.
    Kept,
    /// The server is empty.
    Lost,
}

/// A Redis server, which syncs every command to disk before the reply.
#[derive(Debug)]
pub struct Redis {
    address: SocketAddr,
    launch: Launch,
    data: PathBuf,
    process: Restartable,
    directory: Directory,
}

impl Deref for Redis {
    type Target = Restartable;

    fn deref(&self) -> &Restartable {
        &self.process
    }
}

impl Redis {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// If `redis-server` is missing or does not answer.
    pub async fn start() -> anyhow::Result<Self> {
        Self::start_in(Directory::create("redis")?, "redis", &[], &[]).await
    }

    /// Starts a server with its log and data in `directory`.
    pub async fn start_in(
        directory: Directory,
        name: &str,
        options: &[&str],
        starter: &[OsString],
    ) -> anyhow::Result<Self> {
        let port = free_port::reserve()?;
        let data = directory.data(&format!("{name}-data"))?;
        let log = directory.file(&format!("{name}.log"));
        let (port_text, log_text) = (port.to_string(), log.to_string_lossy().into_owned());
        let launch = Launch::new(name, "sh", &log)
            .arguments(["-c", START, "redis-server"])
            .arguments(["--port", &port_text, "--bind", "127.0.0.1"])
            .arguments(["--logfile", &log_text, "--save", ""])
            .arguments(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
            .arguments([&data])
            .arguments(options)
            .under(starter);
        let redis = Self {
            address: (Ipv4Addr::LOCALHOST, port).into(),
            process: Restartable::start(&launch)?,
            launch,
            data,
            directory,
        };
        redis.wait_until_ready().await?;
        Ok(redis)
    }

    /// Returns the server's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the server's URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Returns the directory of the log and the data.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Sends a command, and returns its reply as text.
    ///
    /// # Errors
    ///
    /// If the server is unreachable, or the reply is an error.
    pub async fn command(&self, words: &[&str]) -> anyhow::Result<String> {
        command(self.address, words).await
    }

    /// Returns the keys that never expire.
    pub async fn keys_that_stay(&self) -> anyhow::Result<Vec<String>> {
        let script = "local stay, cursor = {}, '0' \
                      repeat local page = redis.call('SCAN', cursor, 'COUNT', ARGV[1]) cursor = page[1] \
                      for _, key in ipairs(page[2]) do if redis.call('PTTL', key) == -1 then stay[#stay + 1] = key end end \
                      until cursor == '0' return table.concat(stay, '\\n')";
        let keys = self.command(&["EVAL", script, "0", KEYS_AT_ONCE]).await?;
        Ok(keys.lines().map(str::to_owned).collect())
    }

    /// Sets the maximum memory in bytes; `0` means no limit.
    pub async fn limit_memory(&self, bytes: u64) -> anyhow::Result<()> {
        let bytes = bytes.to_string();
        self.command(&["CONFIG", "SET", "maxmemory", &bytes])
            .await?;
        Ok(())
    }

    /// Makes the server refuse writes until [`Redis::free_disk`], as on a full disk. Meanwhile the
    /// server syncs once a second, because otherwise it would exit.
    pub async fn fill_disk(&self) -> anyhow::Result<()> {
        self.command(&["CONFIG", "SET", "appendfsync", "everysec"])
            .await?;
        limits::set(self.pid(), FILE_SIZE, Some(1)).await?;
        until(SOON, async || {
            let written = self.command(&["SET", "fills", "x", "PX", "1"]).await;
            ensure!(written.is_err(), "{} writes on", self.launch.name);
            Ok(())
        })
        .await
    }

    /// Reverts [`Redis::fill_disk`].
    pub async fn free_disk(&self) -> anyhow::Result<()> {
        limits::set(self.pid(), FILE_SIZE, None).await?;
        self.wait_until_ready().await?;
        self.command(&["CONFIG", "SET", "appendfsync", "always"])
            .await
            .map(drop)
    }

    /// Starts the server again after [`kill`](Restartable::kill).
    pub async fn start_again(&self, data: Data) -> anyhow::Result<()> {
        self.start_again_with(data, &[]).await
    }

    /// Starts the server again with more options.
    pub async fn start_again_with(&self, data: Data, options: &[&str]) -> anyhow::Result<()> {
        if self.process().is_running() {
            bail!("{} is running", self.launch.name);
        }
        if data == Data::Lost {
            std::fs::remove_dir_all(&self.data).context("cannot remove the data")?;
            std::fs::create_dir_all(&self.data).context("cannot make the directory")?;
        }
        self.run_again(&self.launch.clone().arguments(options))?;
        self.wait_until_ready().await
    }

    async fn wait_until_ready(&self) -> anyhow::Result<()> {
        let answers = until(SOON, async || {
            let pong = self.command(&["PING"]).await?;
            ensure!(pong == "PONG", "{pong}");
            Ok(())
        });
        let log = || format!("{}: {}", self.launch.name, self.process().tail());
        answers.await.with_context(log)
    }

    pub(crate) async fn replication(&self) -> anyhow::Result<String> {
        self.command(&["INFO", "replication"]).await
    }

    pub(crate) async fn is_master(&self) -> anyhow::Result<bool> {
        Ok(self.replication().await?.contains("role:master"))
    }
}
