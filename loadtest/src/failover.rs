mod crowd;
mod edge;
mod session;
mod steady;
pub(crate) mod timeline;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cli::duration;
use crate::outcome::Outcome;
use crate::servers::cluster::Shape;

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
    /// Shoal binary [default: `shoal` next to this program, if it exists].
    #[arg(long)]
    shoal: Option<PathBuf>,
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
    /// File for the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

impl Failover {
    fn shape(&self) -> Shape {
        let lease = format!("{}ms", self.lease.as_millis());
        Shape {
            edges: self.edges,
            sessions: self.session_nodes,
            combined: 0,
            workers: 1,
            environment: vec![
                ("SHOAL_NODE__LEASE", lease),
                ("SHOAL_POOLS__DEMO__BACKEND", "demo".to_owned()),
                (
                    "SHOAL_POOLS__DEMO__CONCURRENCY",
                    (self.calls + self.steady + 64).to_string(),
                ),
            ],
            logs: self.logs.clone(),
        }
    }

    fn begin(&self, title: String) -> Outcome {
        let mut outcome = Outcome::begin("failover", title);
        for (name, value) in [
            ("calls", self.calls.to_string()),
            ("streams", self.streams.to_string()),
            ("steady", self.steady.to_string()),
            ("steady-rate", self.steady_rate.to_string()),
            ("lease", format!("{:?}", self.lease)),
            ("interval", format!("{:?}", self.interval)),
        ] {
            outcome.parameters.insert(name.to_owned(), value);
        }
        outcome
    }
}

pub(crate) async fn run(options: &Failover, progress: impl Fn(&str)) -> anyhow::Result<Outcome> {
    match options.kill {
        Kill::Session => session::run(options, progress).await,
        Kill::Edge => edge::run(options, progress).await,
    }
}
