//! A server process that lives as long as the value that stands for it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::{LISTENING, PATH};
use crate::affinity;

/// How long a server may take until it listens.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A running server; dropping it kills the process.
pub(crate) struct Spawned {
    /// The endpoint.
    pub(crate) url: String,
    child: Child,
}

impl Spawned {
    /// Starts one of this program's own servers.
    ///
    /// # Errors
    ///
    /// Where it does not start.
    pub(crate) fn own(arguments: &[&str], core: Option<usize>) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("could not find this program")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped());
        let mut server = Self {
            url: String::new(),
            child: start(command, core)?,
        };
        let output = server.child.stdout.take().context("no output to read")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        match line.trim_end().strip_prefix(LISTENING) {
            Some(url) => server.url = url.to_owned(),
            None => bail!("the server {} did not start", arguments.join(" ")),
        }
        Ok(server)
    }

    /// Starts Shoal with its demo tools on a free port.
    ///
    /// # Errors
    ///
    /// Where it does not start or does not listen in time.
    pub(crate) fn shoal(program: &Path, core: Option<usize>) -> anyhow::Result<Self> {
        // Found by binding port 0 and letting go again; taken by another process in between, the
        // start fails, which is said.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let listen = format!("127.0.0.1:{port}");
        let arguments = [
            "serve",
            "--listen",
            &listen,
            "--admin",
            "127.0.0.1:0",
            "--demo",
        ];
        let mut command = Command::new(program);
        command
            .args(arguments.map(OsString::from))
            .stdout(Stdio::null());
        let mut server = Self {
            url: format!("http://{listen}{PATH}"),
            child: start(command, core)?,
        };
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(&listen).is_err() {
            if let Some(status) = server.child.try_wait()? {
                bail!("{} ended before it listened: {status}", program.display());
            }
            if Instant::now() > deadline {
                bail!("{} does not listen on {listen}", program.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        // It may have ended by itself; either way it must not outlive the measurement or stay a zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `command`, on `core` where one is given.
pub(super) fn start(mut command: Command, core: Option<usize>) -> anyhow::Result<Child> {
    let what = format!("could not start {}", command.get_program().display());
    // A thread of its own: what it starts inherits its affinity, and this one keeps its own.
    let starter = std::thread::spawn(move || {
        if let Some(core) = core {
            affinity::pin(core)?;
        }
        command.stdin(Stdio::null()).spawn()
    });
    let child = starter
        .join()
        .ok()
        .context("the starting thread ended early")?;
    child.context(what)
}
