//! Shoal as a cluster: Redis, a session node, an edge and a worker, each a process of its own.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::get::get;
use super::spawned::{Environment, announced, start};

/// How long the processes may take until calls can be served.
const START_TIMEOUT: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What a node prints before the address at which other processes reach it.
const CLUSTER: &str = "shoal: cluster on ";

/// Running processes; dropping it kills them.
pub(crate) struct Cluster {
    /// The edge's endpoint.
    pub(crate) url: String,
    /// The endpoints of all edges.
    pub(crate) urls: Vec<String>,
    processes: Vec<Child>,
    /// What each of them is: `redis`, `session-1`, `edge-1`, `worker`.
    names: Vec<String>,
    redis: u16,
}

/// How many processes there are of a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) edges: usize,
    pub(crate) session_nodes: usize,
}

/// One of each.
const SMALLEST: Layout = Layout {
    edges: 1,
    session_nodes: 1,
};

impl Cluster {
    /// Starts all of them on loopback, on `core` where one is given; `environment` is for those of Shoal.
    ///
    /// # Errors
    ///
    /// Where one does not start in time, `redis-server` being the first that is looked for.
    pub(crate) fn start(
        shoal: &Path,
        core: Option<usize>,
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        Self::start_as(SMALLEST, shoal, core, environment)
    }

    /// Like [`start`](Self::start), with several edges and session nodes.
    pub(crate) fn start_as(
        layout: Layout,
        shoal: &Path,
        core: Option<usize>,
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        let redis = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let mut cluster = Self {
            url: String::new(),
            urls: Vec::new(),
            processes: Vec::new(),
            names: vec!["redis".to_owned()],
            redis,
        };
        let port = redis.to_string();
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &port, "--save", "", "--appendonly", "no"])
            .stdout(Stdio::null());
        cluster.processes.push(start(command, core)?);
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, redis)).is_err() {
            if Instant::now() > deadline {
                bail!("redis-server does not listen on port {redis}");
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let store = format!("redis://127.0.0.1:{redis}");
        let node = |roles: &str| {
            let mut command = Command::new(shoal);
            command.args(["serve", "--roles", roles, "--admin", "127.0.0.1:0"]);
            command.stderr(Stdio::null()).envs(environment.clone());
            command
        };
        let shared = ["--store", &store, "--cluster-listen", "127.0.0.1:0"];
        for number in 1..=layout.session_nodes {
            let mut session = node("session");
            session.args(shared);
            cluster.member(format!("session-{number}"), session, core, CLUSTER)?;
        }
        let mut join = Vec::new();
        for number in 1..=layout.edges {
            let mut edge = node("edge");
            edge.args(shared).args(["--listen", "127.0.0.1:0"]);
            let said = cluster.member(format!("edge-{number}"), edge, core, CLUSTER)?;
            let after = |prefix: &str| said.iter().find_map(|line| line.strip_prefix(prefix));
            let url = after("shoal: serving MCP on ");
            let url = url.context("the edge did not say where it serves")?;
            cluster.urls.push(url.to_owned());
            let address = after(CLUSTER).context("the edge did not say where it is joined")?;
            join.push(address.to_owned());
        }
        cluster.url = cluster.urls.first().context("no edge")?.clone();
        let mut worker = node("worker");
        worker.args(["--demo", "--join", &join.join(",")]);
        let said = cluster.member("worker".to_owned(), worker, core, "shoal: admin on ")?;
        let admin = said
            .iter()
            .find_map(|line| line.strip_prefix("shoal: admin on http://"));
        wait_until_ready(admin.context("the worker did not say where its admin port is")?)?;
        // Joined to one node, it is told of the other.
        std::thread::sleep(Duration::from_secs(2));
        Ok(cluster)
    }

    /// Starts a process and reads what it prints up to the line that begins with `last`.
    fn member(
        &mut self,
        name: String,
        mut command: Command,
        core: Option<usize>,
        last: &str,
    ) -> anyhow::Result<Vec<String>> {
        let what = command
            .get_args()
            .map(OsStr::to_string_lossy)
            .collect::<Vec<_>>()
            .join(" ");
        command.stdout(Stdio::piped());
        let mut child = start(command, core)?;
        let lines = announced(&mut child, last);
        self.processes.push(child);
        self.names.push(name);
        lines.with_context(|| format!("{what} ended before it served"))
    }

    /// All processes, Redis included.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(Child::id).collect()
    }

    /// All processes with what they are, numbered within a kind that there can be several of: `edge-1`.
    pub(crate) fn named_pids(&self) -> impl Iterator<Item = (&str, u32)> {
        let pids = self.processes.iter().map(Child::id);
        self.names.iter().map(String::as_str).zip(pids)
    }

    /// Where Redis listens.
    pub(crate) fn redis_address(&self) -> String {
        format!("127.0.0.1:{}", self.redis)
    }

    /// Commands that Redis has carried out since it started, by name (`INFO commandstats`), but for this
    /// question.
    ///
    /// # Errors
    ///
    /// Where Redis does not answer.
    pub(crate) fn redis_commands(&self) -> anyhow::Result<Vec<(String, u64)>> {
        let mut redis = TcpStream::connect((Ipv4Addr::LOCALHOST, self.redis))?;
        redis.set_read_timeout(Some(START_TIMEOUT))?;
        redis.write_all(b"INFO commandstats\r\nQUIT\r\n")?;
        let mut text = String::new();
        redis.read_to_string(&mut text)?;
        Ok(text.lines().filter_map(command_count).collect())
    }
}

/// Reads `cmdstat_evalsha:calls=12,usec=…`.
fn command_count(line: &str) -> Option<(String, u64)> {
    let (name, stats) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
    let calls = stats.split(',').next()?.parse().ok()?;
    (name != "info" && name != "quit").then(|| (name.to_owned(), calls))
}

fn wait_until_ready(admin: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    while let Err(error) = get(admin, "/readyz") {
        if Instant::now() > deadline {
            return Err(error.context("the worker is not ready"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // It may have ended by itself; either way it must not outlive the measurement.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::command_count;

    #[test]
    fn command_statistics_are_read() {
        let line = "cmdstat_evalsha:calls=12,usec=99,usec_per_call=8.25,rejected_calls=0";
        assert_eq!(command_count(line), Some(("evalsha".to_owned(), 12)));
        assert_eq!(command_count("cmdstat_info:calls=1,usec=9"), None);
        assert_eq!(command_count("# Commandstats"), None);
    }
}
