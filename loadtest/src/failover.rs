mod crowd;
mod edge;
mod session;
mod timeline;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use shoal_testkit::cluster::Cluster;

use crate::cli::duration;
use crate::outcome::Outcome;
use crate::scenario::{Finished, Scenario, Subject};
use crate::servers;

/// The process that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kill {
    /// A session node, with calls in flight.
    Session,
    /// An edge, with open streams.
    Edge,
}

/// The arguments of `loadtest failover`.
#[derive(Debug, Args)]
pub(crate) struct Failover {
    /// Process to kill (SIGKILL).
    #[arg(long, value_enum)]
    kill: Kill,
    #[command(flatten)]
    subject: Subject,
    /// Number of calls in flight when a session node is killed.
    #[arg(long, default_value_t = 1_000)]
    calls: usize,
    /// Number of open streams on the killed edge.
    #[arg(long, default_value_t = 5_000)]
    streams: usize,
    /// Number of clients that call continuously, on the processes that survive or beside the calls in flight.
    #[arg(long, default_value_t = 32)]
    steady: usize,
    /// Calls a second of all these clients together.
    #[arg(long, default_value_t = 200.0)]
    steady_rate: f64,
    /// Number of edges.
    #[arg(long, default_value_t = 2)]
    edges: usize,
    /// Number of session nodes.
    #[arg(long, default_value_t = 2)]
    session_nodes: usize,
    /// Time for which a node owns its sessions without renewing its lease (`node.lease`).
    #[arg(long, default_value = "6s", value_parser = duration)]
    lease: Duration,
    /// Time under load before the kill.
    #[arg(long, default_value = "5s", value_parser = duration)]
    before: Duration,
    /// Time under load after the kill.
    #[arg(long, default_value = "15s", value_parser = duration)]
    after: Duration,
    /// Time between two messages of a call in flight.
    #[arg(long, default_value = "500ms", value_parser = duration)]
    interval: Duration,
    /// Directory for the logs of the processes [default: none, logs are discarded].
    #[arg(long)]
    logs: Option<PathBuf>,
}

impl Failover {
    async fn cluster(&self) -> anyhow::Result<Cluster> {
        let concurrency = (self.calls + self.steady + 64).to_string();
        let builder = servers::cluster(&self.subject.shoal()?, None)
            .edges(self.edges)
            .sessions(self.session_nodes)
            .logs(self.logs.clone())
            .lease(self.lease)
            .setting("pools.demo.backend", "demo")
            .setting("pools.demo.concurrency", &concurrency);
        builder.start().await
    }

    fn begin(&self, title: String) -> Outcome {
        let mut outcome = Outcome::begin("failover", title);
        outcome.parameters(&[
            ("calls", &self.calls),
            ("streams", &self.streams),
            ("steady", &self.steady),
            ("steady-rate", &self.steady_rate),
            ("lease", &format!("{:?}", self.lease)),
            ("interval", &format!("{:?}", self.interval)),
        ]);
        outcome
    }
}

impl Scenario for Failover {
    fn json(&self) -> Option<&Path> {
        self.subject.json()
    }

    async fn run(&self) -> anyhow::Result<impl Finished> {
        match self.kill {
            Kill::Session => session::run(self).await,
            Kill::Edge => edge::run(self).await,
        }
    }
}
