use std::collections::HashSet;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::Role;
use super::plan::{Gates, variable};
use crate::admin::Admin;
use crate::dialers::Dialers;
use crate::process::{Launch, Process, Restartable, SOON};
use crate::round_robin::Edge;
use crate::wait::until;

/// A process of a cluster, which keeps its ports when it is restarted.
#[derive(Debug)]
pub struct Member {
    role: Role,
    launch: Launch,
    settings: Mutex<Vec<(String, String)>>,
    process: Restartable,
    mcp: Option<reqwest::Url>,
    admin: Admin,
    pub(super) gates: Gates,
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
        admin: Admin,
        gates: Gates,
        dialers: Dialers,
    ) -> anyhow::Result<Self> {
        let process = Restartable::start(&launch)?;
        let running = process.process();
        wait_until_it_listens(&running, &launch, &dialers).await?;
        let mcp = match role.serves_clients() {
            true => Some(running.announced("shoal: serving MCP on ").await?.parse()?),
            false => None,
        };
        Ok(Self {
            role,
            launch,
            settings: Mutex::default(),
            process,
            mcp,
            admin,
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
        &self.admin
    }

    /// Returns the URL of the member's own MCP endpoint, without the balancer.
    #[must_use]
    pub fn mcp_url(&self) -> Option<&str> {
        self.mcp.as_ref().map(reqwest::Url::as_str)
    }

    /// Returns the address at which other members dial this one.
    #[must_use]
    pub fn dialled_at(&self) -> Option<SocketAddr> {
        self.gates.dialled_at
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
        let waited = self.admin.wait_until_ready(within).await;
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
        let name = self.name();
        until(within, async || {
            let status = self.admin.status().await?;
            ensure!(
                nodes_that_take_sessions(&status) >= nodes && reachable_workers(&status) >= workers,
                "{name} does not know {nodes} session nodes and {workers} workers: {status}"
            );
            Ok(())
        })
        .await
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
        let (name, status) = (self.name(), self.terminate(within).await?);
        ensure!(
            status.success(),
            "{name} ended with {status} when it was asked to end"
        );
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
        wait_until_it_listens(&process, &launch, &self.dialers).await
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
        let address = self.mcp.as_ref()?.socket_addrs(|| None).ok()?;
        Some(Edge {
            name: self.name().to_owned(),
            address: *address.first()?,
            admin: Some(self.admin.clone()),
        })
    }
}

fn nodes_that_take_sessions(status: &Value) -> usize {
    let nodes = status["cluster"]["nodes"].as_array();
    let takes = |node: &&Value| {
        let takes = node["draining"] == false && node["starting"] != true;
        node["session"] == true && node["present"] == true && takes
    };
    nodes.map_or(0, |nodes| nodes.iter().filter(takes).count())
}

fn reachable_workers(status: &Value) -> usize {
    let pools = status["pools"].as_array().into_iter().flatten();
    let workers = pools.flat_map(|pool| pool["workers"].as_array().into_iter().flatten());
    let ids = workers.filter(|worker| worker["reachable"] == true);
    ids.map(|worker| worker["id"].to_string())
        .collect::<HashSet<_>>()
        .len()
}

async fn wait_until_it_listens(
    process: &Process,
    launch: &Launch,
    dialers: &Dialers,
) -> anyhow::Result<()> {
    dialers.add(process.pid(), &launch.name);
    // The last address that a process prints.
    process.announced("shoal: admin on ").await.map(drop)
}
