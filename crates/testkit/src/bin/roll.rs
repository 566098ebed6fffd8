//! Replaces every process of a cluster under load and reports what the clients noticed.
#![expect(clippy::print_stdout, reason = "the report is what it is for")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use shoal_testkit::cluster::{Role, setting};
use shoal_testkit::roll::{self, Clients, Options, Report, Toolset};
use shoal_testkit::service::Probing;

/// Restart every process of a cluster while clients work, and count the failures that they notice.
///
/// With --url, only the clients run: they work against that server for --seconds while you restart it. Without it,
/// Redis, edges, session nodes and workers run as processes behind a balancer. Like a Kubernetes Service, the balancer
/// picks a ready edge for each connection. Every process is replaced as by a Deployment with maxSurge 1 and
/// maxUnavailable 0.
///
/// The exit code is 0 if all requests succeeded, all sessions survived, each event arrived exactly once, and each call
/// ran once. The `shoal` binary is TEST_SHOAL_BIN, else the one beside this program.
#[derive(Debug, Parser)]
struct Arguments {
    /// Endpoint of a running server with the demo pool, on this machine or in a private network.
    #[arg(long)]
    url: Option<String>,
    /// Duration of a run with --url, in seconds.
    #[arg(long, default_value_t = 60, requires = "url")]
    seconds: u64,
    /// Number of clients of 2025-11-25, each with a session, an open stream, long calls and short calls.
    #[arg(long, default_value_t = 500)]
    sessions: usize,
    /// Number of clients of 2026-07-28 [default: a tenth of --sessions].
    #[arg(long)]
    modern: Option<usize>,
    /// Maximum pause of a client between two calls, in milliseconds.
    #[arg(long, default_value_t = 4000)]
    thinking_ms: u64,
    /// Maximum duration of a long call, in milliseconds.
    #[arg(long, default_value_t = 10_000)]
    longest_ms: u64,
    /// Set of tools to call.
    #[arg(long, value_enum, default_value_t = Toolset::Demo)]
    tools: Toolset,
    /// Seed of all random decisions of the clients.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Roles to restart, in this order.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "session,edge,worker"
    )]
    roles: Vec<Replaced>,
    /// Number of processes of each role.
    #[arg(long, default_value_t = 2)]
    replicas: usize,
    /// Setting `shutdown.balancer_delay` of the processes, in milliseconds.
    #[arg(long, default_value_t = 5000)]
    balancer_delay_ms: u64,
    /// Time between two readiness probes, in milliseconds.
    #[arg(long, default_value_t = 2000)]
    probe_period_ms: u64,
    /// Number of consecutive failed probes after which an edge is not ready.
    #[arg(long, default_value_t = 2)]
    probe_failures: u32,
    /// Time for which a terminating edge still receives connections, in milliseconds.
    #[arg(long, default_value_t = 2000)]
    propagation_ms: u64,
    /// Time after which a terminating process is killed, in seconds.
    #[arg(long, default_value_t = 60)]
    grace: u64,
    /// Time under load before the first restart and after the last, in seconds.
    #[arg(long, default_value_t = 15)]
    calm: u64,
    /// Setting of every process, such as logging.level=debug; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// File for the report as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Replaced {
    Edge,
    Session,
    Worker,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let report = match &arguments.url {
        Some(url) => {
            let time = Duration::from_secs(arguments.seconds);
            roll::drive(url, &arguments.clients(), time).await?
        }
        None => roll::run(&arguments.options()).await?,
    };
    println!("{report}");
    if let Some(path) = &arguments.json {
        write(&report, path)?;
    }
    Ok(match report.is_clean() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

impl Arguments {
    fn clients(&self) -> Clients {
        Clients {
            legacy: self.sessions,
            modern: self.modern.unwrap_or(self.sessions / 10),
            tools: self.tools,
            thinking: Duration::from_millis(self.thinking_ms),
            longest: Duration::from_millis(self.longest_ms),
            seed: self.seed,
        }
    }

    fn options(&self) -> Options {
        let delay = format!("{}ms", self.balancer_delay_ms);
        let mut settings = vec![("shutdown.balancer_delay".to_owned(), delay)];
        settings.extend(self.settings.iter().cloned());
        Options {
            clients: self.clients(),
            roles: self.roles.iter().map(|role| (*role).into()).collect(),
            replicas: self.replicas,
            calm: Duration::from_secs(self.calm),
            between: Duration::from_secs(1),
            probing: Probing {
                period: Duration::from_millis(self.probe_period_ms),
                successes: 1,
                failures: self.probe_failures,
                propagation: Duration::from_millis(self.propagation_ms),
            },
            grace: Duration::from_secs(self.grace),
            settings,
        }
    }
}

impl From<Replaced> for Role {
    fn from(role: Replaced) -> Self {
        match role {
            Replaced::Edge => Self::Edge,
            Replaced::Session => Self::Session,
            Replaced::Worker => Self::Worker,
        }
    }
}

fn write(report: &Report, path: &std::path::Path) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}
