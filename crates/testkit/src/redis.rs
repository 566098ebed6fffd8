//! A real `redis-server` on a port of its own.

mod wire;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use nix::sys::signal::Signal;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::directory::Directory;
use crate::free_port;
use crate::limits::{self, Resource};
use crate::process::{Launch, Process, SOON};

pub(crate) use wire::command;

/// The server, with what follows as its arguments. Where a file may not grow, its writes fail as on a full disk, rather than
/// end it ([`Redis::fill_disk`]).
const START: &str = "trap '' XFSZ; exec redis-server \"$@\"";

/// Keys that are looked at in one go.
const KEYS_AT_ONCE: &str = "1000";

/// Whether a restarted server still has what was written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// It has everything that it has ever acknowledged.
    Kept,
    /// It has nothing.
    Lost,
}

/// A Redis server. It writes every command to disk before it acknowledges it, so that even a crash loses
/// nothing; what is lost is lost on purpose.
#[derive(Debug)]
pub struct Redis {
    address: SocketAddr,
    launch: Launch,
    data: PathBuf,
    process: Mutex<Process>,
    directory: Directory,
}

impl Redis {
    /// Starts a server.
    ///
    /// # Errors
    /// When there is no `redis-server`, or it does not answer.
    pub async fn start() -> anyhow::Result<Self> {
        Self::start_in(Directory::create("redis")?, "redis", &[]).await
    }

    /// Starts a server that keeps log and data in `directory`, under `name`.
    ///
    /// # Errors
    /// When there is no `redis-server`, or it does not answer.
    pub async fn start_in(
        directory: Directory,
        name: &str,
        options: &[&str],
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
            .arguments(options);
        let redis = Self {
            address: (Ipv4Addr::LOCALHOST, port).into(),
            process: Mutex::new(Process::start(&launch)?),
            launch,
            data,
            directory,
        };
        redis.wait_until_ready().await?;
        Ok(redis)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Where its log and its data are.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Sends a command, and returns its reply as text.
    ///
    /// # Errors
    /// When the server cannot be reached, or the reply is an error.
    pub async fn command(&self, words: &[&str]) -> anyhow::Result<String> {
        command(self.address, words).await
    }

    /// Its keys that never expire.
    ///
    /// # Errors
    /// When it does not say.
    pub async fn keys_that_stay(&self) -> anyhow::Result<Vec<String>> {
        let script = "local stay, cursor = {}, '0' \
                      repeat local page = redis.call('SCAN', cursor, 'COUNT', ARGV[1]) cursor = page[1] \
                      for _, key in ipairs(page[2]) do if redis.call('PTTL', key) == -1 then stay[#stay + 1] = key end end \
                      until cursor == '0' return table.concat(stay, '\\n')";
        let keys = self.command(&["EVAL", script, "0", KEYS_AT_ONCE]).await?;
        Ok(keys.lines().map(str::to_owned).collect())
    }

    /// Sets how much it may hold; `0` is no limit. Beyond it, writes are refused.
    ///
    /// # Errors
    /// When it cannot be told.
    pub async fn limit_memory(&self, bytes: u64) -> anyhow::Result<()> {
        let bytes = bytes.to_string();
        self.command(&["CONFIG", "SET", "maxmemory", &bytes])
            .await?;
        Ok(())
    }

    /// Lets its files grow no further. Until [`Redis::free_disk`] it refuses what writes, as on a full disk, and as a server that
    /// syncs once a second: one that syncs always would end itself.
    ///
    /// # Errors
    /// When it cannot be told, or is not found to refuse.
    pub async fn fill_disk(&self) -> anyhow::Result<()> {
        self.command(&["CONFIG", "SET", "appendfsync", "everysec"])
            .await?;
        self.limit_files(Some(1)).await?;
        let deadline = Instant::now() + SOON;
        while self
            .command(&["SET", "fills", "x", "PX", "1"])
            .await
            .is_ok()
        {
            if Instant::now() > deadline {
                bail!("{} writes on", self.launch.name);
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Ends that, and waits until it writes again.
    ///
    /// # Errors
    /// When it does not.
    pub async fn free_disk(&self) -> anyhow::Result<()> {
        self.limit_files(None).await?;
        self.wait_until_ready().await?;
        self.command(&["CONFIG", "SET", "appendfsync", "always"])
            .await
            .map(drop)
    }

    async fn limit_files(&self, bytes: Option<u64>) -> anyhow::Result<()> {
        let process = self.process.lock().await;
        let pid = process.pid().context("it has ended")?;
        limits::set(pid, Resource::FileSize, bytes).await
    }

    /// Stops it where it stands (SIGSTOP): connections stay open and nothing is answered.
    ///
    /// # Errors
    /// When it is not running.
    pub async fn pause(&self) -> anyhow::Result<()> {
        self.process.lock().await.signal(Signal::SIGSTOP)
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// When it is not running.
    pub async fn resume(&self) -> anyhow::Result<()> {
        self.process.lock().await.signal(Signal::SIGCONT)
    }

    /// Kills it.
    ///
    /// # Errors
    /// When it does not go.
    pub async fn kill(&self) -> anyhow::Result<()> {
        self.process.lock().await.kill().await
    }

    /// Starts it again, on the same port, after [`Redis::kill`].
    ///
    /// # Errors
    /// When it does not come back.
    pub async fn start_again(&self, data: Data) -> anyhow::Result<()> {
        self.start_again_with(data, &[]).await
    }

    /// The same, with more options.
    ///
    /// # Errors
    /// When it does not come back.
    pub async fn start_again_with(&self, data: Data, options: &[&str]) -> anyhow::Result<()> {
        let mut process = self.process.lock().await;
        if process.is_running() {
            bail!("{} is running", self.launch.name);
        }
        if data == Data::Lost {
            std::fs::remove_dir_all(&self.data).context("cannot remove the data")?;
            std::fs::create_dir_all(&self.data).context("cannot make the directory")?;
        }
        *process = Process::start(&self.launch.clone().arguments(options))?;
        drop(process);
        self.wait_until_ready().await
    }

    async fn wait_until_ready(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + SOON;
        loop {
            match self.command(&["PING"]).await {
                Ok(pong) if pong == "PONG" => return Ok(()),
                _ if Instant::now() < deadline => sleep(Duration::from_millis(10)).await,
                Ok(other) => bail!("{}: {other}", self.launch.name),
                Err(error) => {
                    let log = self.process.lock().await.tail();
                    return Err(error).with_context(|| format!("{}: {log}", self.launch.name));
                }
            }
        }
    }
}

/// Waits until something holds of some servers.
///
/// # Errors
/// When that takes too long; what failed last is part of the error.
pub(crate) async fn until(
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
