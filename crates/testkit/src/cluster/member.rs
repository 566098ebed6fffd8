use std::collections::HashSet;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep};

use super::Role;
use super::announced::Announced;
use super::plan::{Gates, variable};
use crate::admin::Admin;
use crate::dialers::Dialers;
use crate::fault_proxy::{Fault, FaultProxy};
use crate::process::{Launch, Process, Restartable, SOON};
use crate::round_robin::Edge;

const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A process of a cluster, which keeps its ports when it is restarted.
#[derive(Debug)]
pub struct Member {
    role: Role,
    launch: Launch,
    settings: Mutex<Vec<(String, String)>>,
    process: Restartable,
    announced: Announced,
    gates: Gates,
    dialers: Dialers,
}

impl Deref for Member {
    type Target = Restartable;

    fn deref(&self) -> &Restartable {
        &self.process
    }
}

impl Member {
    pub(super) async fn start(
        role: Role,
        launch: Launch,
        gates: Gates,
        dialers: Dialers,
    ) -> anyhow::Result<Self> {
        let process = Restartable::start(&launch)?;
        let running = process.process();
        note(&dialers, &running, &launch);
        let announced = Announced::by(&running, role).await?;
        Ok(Self {
            role,
            launch,
            settings: Mutex::default(),
            process,
            announced,
            gates,
            dialers,
        })
    }

    /// Returns the name: role and number, such as `session-2`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.launch.name
    }

    /// Returns the role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns a client for the member's admin port.
    #[must_use]
    pub fn admin(&self) -> &Admin {
        &self.announced.admin
    }

    /// Returns the URL of the member's own MCP endpoint, without the balancer.
    #[must_use]
    pub fn mcp_url(&self) -> Option<&str> {
        self.announced.mcp.as_ref().map(reqwest::Url::as_str)
    }

    /// Returns the address at which other members dial this one.
    #[must_use]
    pub fn dialled_at(&self) -> Option<SocketAddr> {
        let gate = self.gates.own.as_ref().map(FaultProxy::address);
        gate.or(self.announced.cluster)
    }

    /// Returns the path of the log file.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.launch.log
    }

    /// Changes a setting for the next start.
    pub fn set(&self, name: &str, value: &str) {
        self.variable(&variable(name), value);
    }

    /// Reverts [`set`](Self::set) for the next start.
    pub fn unset(&self, name: &str) {
        let variable = variable(name);
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        settings.retain(|(known, _)| *known != variable);
    }

    /// Changes an environment variable for the next start.
    pub fn variable(&self, name: &str, value: &str) {
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        settings.push((name.to_owned(), value.to_owned()));
    }

    /// Waits until the member is ready.
    ///
    /// # Errors
    ///
    /// The member's log, if that takes too long.
    pub async fn wait_until_ready(&self, within: Duration) -> anyhow::Result<()> {
        let waited = self.announced.admin.wait_until_ready(within).await;
        let log = || format!("{}: {}", self.name(), crate::process::tail(self.log()));
        waited.with_context(log)
    }

    /// Waits until the member can place sessions on this many nodes and calls on this many workers.
    ///
    /// # Errors
    ///
    /// The member's view of the cluster, if that takes too long.
    pub async fn wait_until_it_knows(
        &self,
        nodes: usize,
        workers: usize,
        within: Duration,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + within;
        loop {
            let status = self.announced.admin.status().await?;
            if nodes_that_take_sessions(&status) >= nodes && reachable_workers(&status) >= workers {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "{} does not know {nodes} session nodes and {workers} workers: {status}",
                    self.name()
                );
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Terminates the process (SIGTERM). Fails if the process does not end in time.
    pub async fn terminate(&self, within: Duration) -> anyhow::Result<ExitStatus> {
        let process = self.process();
        process.signal(Signal::SIGTERM)?;
        process.exit(within).await
    }

    /// Terminates the process, starts it again, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// If the process does not exit cleanly in time, or does not come back.
    pub async fn restart(&self, within: Duration) -> anyhow::Result<()> {
        let status = self.terminate(within).await?;
        if !status.success() {
            bail!(
                "{} ended with {status} when it was asked to end",
                self.name()
            );
        }
        self.bring_back().await
    }

    /// Starts the process again after its end, and waits until it is ready.
    pub async fn bring_back(&self) -> anyhow::Result<()> {
        self.start_again().await?;
        self.wait_until_ready(SOON).await
    }

    /// Starts the process again after its end.
    pub async fn start_again(&self) -> anyhow::Result<()> {
        self.start_as(self.next_launch()).await
    }

    /// Starts the process again with a full, unread pipe for its log.
    pub async fn start_again_unread(&self) -> anyhow::Result<()> {
        let mut launch = self.next_launch();
        launch.is_unread = true;
        self.start_as(launch).await
    }

    async fn start_as(&self, launch: Launch) -> anyhow::Result<()> {
        let process = self.run_again(&launch)?;
        note(&self.dialers, &process, &launch);
        Announced::by(&process, self.role).await.map(drop)
    }

    /// Terminates the process, and kills it if it does not end in time.
    pub async fn end(self, within: Duration) {
        self.process().end(within).await;
    }

    fn next_launch(&self) -> Launch {
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let set = |launch: Launch, (name, value): &(String, String)| launch.variable(name, value);
        settings.iter().fold(self.launch.clone(), set)
    }

    /// Describes the member to a balancer, if it serves MCP.
    #[must_use]
    pub fn as_edge(&self) -> Option<Edge> {
        let address = self.announced.mcp.as_ref()?.socket_addrs(|| None).ok()?;
        Some(Edge {
            name: self.name().to_owned(),
            address: *address.first()?,
            admin: Some(self.announced.admin.clone()),
        })
    }

    pub(super) fn mcp_path(&self) -> Option<&str> {
        self.announced.mcp.as_ref().map(reqwest::Url::path)
    }

    pub(super) fn set_fault_for(&self, dialer: &str, fault: Fault) {
        if let Some(gate) = &self.gates.own {
            gate.set_for(dialer, fault);
        }
    }

    pub(super) fn set_redis_fault(&self, fault: Fault) {
        if let Some(gate) = &self.gates.redis {
            gate.set(fault);
        }
    }

    pub(super) fn disturbed(&self) -> u64 {
        let gates = self.gates.own.iter().chain(&self.gates.redis);
        gates.map(FaultProxy::disturbed).sum()
    }

    pub(super) fn heal(&self) {
        for gate in self.gates.own.iter().chain(&self.gates.redis) {
            gate.heal();
        }
    }
}

fn nodes_that_take_sessions(status: &serde_json::Value) -> usize {
    let nodes = status["cluster"]["nodes"].as_array();
    let takes = |node: &&serde_json::Value| {
        let takes = node["draining"] == false && node["starting"] != true;
        node["session"] == true && node["present"] == true && takes
    };
    nodes.map_or(0, |nodes| nodes.iter().filter(takes).count())
}

fn reachable_workers(status: &serde_json::Value) -> usize {
    let pools = status["pools"].as_array().into_iter().flatten();
    let workers = pools.flat_map(|pool| pool["workers"].as_array().into_iter().flatten());
    let ids = workers.filter(|worker| worker["reachable"] == true);
    ids.map(|worker| worker["id"].to_string())
        .collect::<HashSet<_>>()
        .len()
}

fn note(dialers: &Dialers, process: &Process, launch: &Launch) {
    dialers.add(process.pid(), &launch.name);
}
