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
use crate::process::{Launch, Process, SOON};

pub(crate) use wire::command;

const PROGRAM: &str = "redis-server";

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
        let data = directory.file(&format!("{name}-data"));
        let log = directory.file(&format!("{name}.log"));
        let (port_text, log_text) = (port.to_string(), log.to_string_lossy().into_owned());
        let launch = Launch::new(name, PROGRAM, &log)
            .arguments(["--port", &port_text, "--bind", "127.0.0.1"])
            .arguments(["--logfile", &log_text, "--save", ""])
            .arguments(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
            .arguments([&data])
            .arguments(options);
        std::fs::create_dir_all(&data)
            .with_context(|| format!("cannot make {}", data.display()))?;
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
        let mut process = self.process.lock().await;
        if process.is_running() {
            bail!("{} is running", self.launch.name);
        }
        if data == Data::Lost {
            std::fs::remove_dir_all(&self.data).context("cannot remove the data")?;
            std::fs::create_dir_all(&self.data).context("cannot make the directory")?;
        }
        *process = Process::start(&self.launch)?;
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
