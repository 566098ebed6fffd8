pub(crate) mod member;
pub(crate) mod redis;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use member::{Member, Role};
use redis::Redis;
use serde_json::Value;

use super::get::get;
use super::spawned::{Environment, start};
use crate::target::Target;

const START_TIMEOUT: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) edges: usize,
    pub(crate) sessions: usize,
    /// Processes that are both edge and session node.
    pub(crate) combined: usize,
    pub(crate) workers: usize,
    pub(crate) environment: Environment,
    /// Without a directory, the logs are lost.
    pub(crate) logs: Option<PathBuf>,
}

impl Shape {
    pub(crate) fn smallest(environment: &Environment) -> Self {
        Self {
            edges: 1,
            sessions: 1,
            combined: 0,
            workers: 1,
            environment: environment.clone(),
            logs: None,
        }
    }

    pub(crate) fn combined(environment: &Environment) -> Self {
        Self {
            edges: 0,
            sessions: 0,
            combined: 1,
            ..Self::smallest(environment)
        }
    }
}

pub(crate) struct Cluster {
    pub(crate) url: String,
    /// Session nodes, then edges, then workers.
    pub(crate) members: Vec<Member>,
    pub(crate) redis: Redis,
    redis_process: Child,
}

impl Cluster {
    pub(crate) fn start(
        shoal: &Path,
        core: Option<usize>,
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        Self::start_as(shoal, core, &Shape::smallest(environment))
    }

    /// Waits until every process knows the others: earlier sessions would all go to the first
    /// nodes. Blocks.
    pub(crate) fn start_as(
        shoal: &Path,
        core: Option<usize>,
        shape: &Shape,
    ) -> anyhow::Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &port.to_string(), "--save", ""])
            .args(["--appendonly", "no"])
            // Set as docs/redis.md recommends.
            .args(["--hash-max-listpack-value", "1024"])
            .args(["--hash-max-listpack-entries", "32"])
            .stdout(Stdio::null());
        let mut cluster = Self {
            url: String::new(),
            members: Vec::new(),
            redis: Redis(format!("127.0.0.1:{port}")),
            redis_process: start(command, core)?,
        };
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > deadline {
                bail!("redis-server does not listen on port {port}");
            }
            std::thread::sleep(LOOK_EVERY);
        }
        cluster.start_members(shoal, core, shape)?;
        let edge = cluster.members.iter().find(|one| !one.url.is_empty());
        cluster.url = edge.context("a cluster needs an edge")?.url.clone();
        for member in &cluster.members {
            wait_until_ready(&member.admin)
                .with_context(|| format!("{} is not ready", member.name))?;
            wait_until_it_knows(member, shape)?;
        }
        Ok(cluster)
    }

    fn start_members(
        &mut self,
        shoal: &Path,
        core: Option<usize>,
        shape: &Shape,
    ) -> anyhow::Result<()> {
        let store = format!("redis://{}", self.redis.0);
        let roles = [
            (Role::Session, shape.sessions),
            (Role::Combined, shape.combined),
            (Role::Edge, shape.edges),
            (Role::Worker, shape.workers),
        ];
        for (role, count) in roles {
            for number in 1..=count {
                let mut command = Command::new(shoal);
                command
                    .args(["serve", "--roles", role.name(), "--admin", "127.0.0.1:0"])
                    .envs(shape.environment.clone());
                if role == Role::Worker {
                    command.arg("--demo");
                    for joined in self.members.iter().filter(|one| !one.joined_at.is_empty()) {
                        command.args(["--join", &joined.joined_at]);
                    }
                } else {
                    command.args(["--store", &store, "--cluster-listen", "127.0.0.1:0"]);
                }
                if matches!(role, Role::Edge | Role::Combined) {
                    command.args(["--listen", "127.0.0.1:0"]);
                }
                let logs = shape.logs.as_deref();
                let member = Member::start(role, number, command, core, logs)?;
                self.members.push(member);
            }
        }
        Ok(())
    }

    pub(crate) fn of(&self, role: Role) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |one| one.role == role)
    }

    /// Resolves the URLs of all edges.
    pub(crate) async fn targets(&self) -> anyhow::Result<Vec<Target>> {
        let edges = self.members.iter().filter(|one| !one.url.is_empty());
        let urls: Vec<String> = edges.map(|edge| edge.url.clone()).collect();
        Target::resolve_all(&urls).await
    }

    pub(crate) fn first_mut(&mut self, role: Role) -> Option<&mut Member> {
        self.members.iter_mut().find(|one| one.role == role)
    }

    /// The process ID of Redis is last.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let members = self.members.iter().map(Member::pid);
        members.chain([self.redis_process.id()]).collect()
    }

    pub(crate) fn redis_pid(&self) -> u32 {
        self.redis_process.id()
    }

    pub(crate) fn redis_commands(&self) -> anyhow::Result<Vec<(String, u64)>> {
        self.redis.commands()
    }
}

fn wait_until_ready(admin: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    while let Err(error) = get(admin, "/readyz") {
        if Instant::now() > deadline {
            return Err(error);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn wait_until_it_knows(member: &Member, shape: &Shape) -> anyhow::Result<()> {
    if member.role == Role::Worker {
        return Ok(());
    }
    let deadline = Instant::now() + START_TIMEOUT;
    let sessions = shape.sessions + shape.combined;
    loop {
        let status = member.status()?;
        let nodes = seen(&status["cluster"]["nodes"], "session");
        let pools = status["pools"].as_array();
        let workers = pools.map_or(0, |pools| {
            let of_pools = pools.iter().map(|pool| seen(&pool["workers"], "ready"));
            of_pools.min().unwrap_or(0)
        });
        if nodes >= sessions && workers >= shape.workers {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!(
                "{} sees {nodes} of {sessions} session nodes and {workers} of {} workers",
                member.name,
                shape.workers
            );
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn seen(list: &Value, what: &str) -> usize {
    let list = list.as_array().map_or(&[][..], Vec::as_slice);
    let seen = |one: &&Value| one["reachable"] == true && one[what] == true;
    list.iter().filter(seen).count()
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Redis ends last, because the others depend on it.
        self.members.clear();
        // Redis may have ended already.
        let _ = self.redis_process.kill();
        let _ = self.redis_process.wait();
    }
}
