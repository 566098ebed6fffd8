use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};

use super::LISTENING;
use crate::affinity;

pub(super) const ADMIN: &str = "shoal: admin on http://";

/// Interpreters load their packages first, and the machine may be busy.
const START_TIMEOUT: Duration = Duration::from_secs(180);

/// Added to the variables of this process.
pub(crate) type Environment = Vec<(&'static str, String)>;

pub(crate) struct Spawned {
    pub(crate) url: String,
    pub(crate) admin: String,
    child: Child,
}

impl Spawned {
    /// The server ends with this process, even if this process is killed.
    pub(crate) fn own(arguments: &[&str], core: Option<usize>) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("could not find this program")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args(["--listen", "127.0.0.1:0", "--while-input"]);
        Self::heard(command, core, Stdio::piped())
            .with_context(|| format!("the server {} did not start", arguments.join(" ")))
    }

    pub(crate) fn announcing(command: Command, core: Option<usize>) -> anyhow::Result<Self> {
        Self::heard(command, core, Stdio::null())
    }

    fn heard(mut command: Command, core: Option<usize>, input: Stdio) -> anyhow::Result<Self> {
        command.stdout(Stdio::piped());
        let mut server = Self {
            url: String::new(),
            admin: String::new(),
            child: start_reading(command, core, input)?,
        };
        let output = server.child.stdout.take().context("no output to read")?;
        let (sender, first) = mpsc::channel();
        // A read cannot be cancelled, so it has its own thread.
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(output).read_line(&mut line);
            // The receiver may have timed out.
            let _ = sender.send(read.map(|_| line));
        });
        let Ok(line) = first.recv_timeout(START_TIMEOUT) else {
            bail!("it did not listen within {} s", START_TIMEOUT.as_secs());
        };
        match line?.trim_end().strip_prefix(LISTENING) {
            Some(url) => server.url = url.to_owned(),
            None => bail!("it ended, or did not say where it listens"),
        }
        Ok(server)
    }

    pub(crate) fn shoal(
        program: &Path,
        core: Option<usize>,
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        Self::shoal_by(Command::new(program), core, environment)
    }

    /// `command` starts Shoal, perhaps under a profiler, and lacks only Shoal's arguments.
    pub(crate) fn shoal_by(
        mut command: Command,
        core: Option<usize>,
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        let program = PathBuf::from(command.get_program());
        command
            .args(["serve", "--demo", "--listen", "127.0.0.1:0"])
            .args(["--admin", "127.0.0.1:0"])
            .envs(environment.clone())
            .stdout(Stdio::piped());
        let mut server = Self {
            url: String::new(),
            admin: String::new(),
            child: start(command, core)?,
        };
        let said = announced(&mut server.child, ADMIN)
            .with_context(|| format!("{} ended before it served", program.display()))?;
        let after = |prefix: &str| said.iter().find_map(|line| line.strip_prefix(prefix));
        let url = after("shoal: serving MCP on ").context("Shoal did not say where it serves")?;
        server.url = url.to_owned();
        let admin = after(ADMIN).context("Shoal did not say where its admin port is")?;
        server.admin = admin.to_owned();
        Ok(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        // The server must not stay a zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn announced(shoal: &mut Child, last: &str) -> anyhow::Result<Vec<String>> {
    let output = shoal.stdout.take().context("no output to read")?;
    let mut output = BufReader::new(output).lines();
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.starts_with(last)) {
        lines.push(output.next().context("its output ended")??);
    }
    Ok(lines)
}

/// Returns the named binary, else the one next to this program.
pub(crate) fn shoal_binary(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let found = named
        .map(Path::to_path_buf)
        .or_else(crate::table::sibling_shoal);
    found.context("no shoal binary next to this program; name one with --shoal")
}

pub(super) fn start(command: Command, core: Option<usize>) -> anyhow::Result<Child> {
    start_reading(command, core, Stdio::null())
}

fn start_reading(mut command: Command, core: Option<usize>, input: Stdio) -> anyhow::Result<Child> {
    let what = format!("could not start {}", command.get_program().display());
    // The new process inherits the affinity of this thread.
    let starter = std::thread::spawn(move || {
        if let Some(core) = core {
            affinity::pin(core)?;
        }
        command.stdin(input).spawn()
    });
    let child = starter
        .join()
        .ok()
        .context("the starting thread ended early")?;
    child.context(what)
}
