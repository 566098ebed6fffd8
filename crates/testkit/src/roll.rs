//! A rolling restart of everything, which the clients must not notice.
//!
//! [`run`] starts a cluster behind a balancer like a Kubernetes Service, and replaces every process in turn, like a
//! Deployment with `maxSurge: 1` and `maxUnavailable: 0`. With a URL, [`run`] only starts the clients, and counts every
//! failure that an ordinary client would show its user.

mod report;
mod rollout;
mod tally;

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Parser;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::time::{Instant, sleep};

pub use report::{Latency, Report};
pub use rollout::Restart;
pub use tally::{Failure, Sample, Tally};

use crate::arguments::{milliseconds, seconds};
use crate::check::Ledger;
use crate::client::target::Target;
use crate::cluster::{Cluster, Tools, behind, setting};
use crate::load::{Calls, Clients, Load};
use crate::service::{Probing, Service};

const SETTLE: Duration = Duration::from_secs(40);

/// The parameters of a rolling restart.
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// Endpoint of a running server with the demo pool, on this machine or in a private network.
    #[arg(long)]
    pub url: Option<String>,
    /// Duration of a run with --url, in seconds.
    #[arg(long, value_parser = seconds, default_value = "60", requires = "url")]
    pub seconds: Duration,
    /// Number of clients of 2025-11-25, each with a session, an open stream, long calls and short calls.
    #[arg(long, default_value_t = 500)]
    pub sessions: usize,
    /// Number of clients of 2026-07-28 [default: a tenth of --sessions].
    #[arg(long)]
    pub modern: Option<usize>,
    /// Maximum pause of a client between two calls, in milliseconds.
    #[arg(long = "thinking-ms", value_parser = milliseconds, default_value = "4000")]
    pub thinking: Duration,
    /// Maximum duration of a long call, in milliseconds.
    #[arg(long = "longest-ms", value_parser = milliseconds, default_value = "10000")]
    pub longest: Duration,
    /// Seed of all random decisions of the clients.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of processes of each role.
    #[arg(long, default_value_t = 2)]
    pub replicas: usize,
    /// Time under load before the first restart and after the last, in seconds.
    #[arg(long, value_parser = seconds, default_value = "15")]
    pub calm: Duration,
    /// Setting of every process, such as logging.level=debug; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// When the balancer adds and removes edges.
    #[arg(skip)]
    pub probing: Probing,
}

impl Default for Options {
    fn default() -> Self {
        Self::parse_from(["roll"])
    }
}

impl Options {
    fn modern(&self) -> usize {
        self.modern.unwrap_or(self.sessions / 10)
    }

    fn load(&self, url: &str, demo: bool, began: Instant) -> anyhow::Result<Load> {
        let longest = self.longest;
        let clients = Clients {
            sessions: self.sessions,
            modern: self.modern(),
            tasks: 0,
            thinking: self.thinking,
            calls: Calls::Patient { demo, longest },
        };
        let mut dice = StdRng::seed_from_u64(self.seed);
        Load::start(url, 0, clients, began, &mut dice)
    }
}

/// Makes one run.
///
/// # Errors
///
/// If the URL is outside this machine and private networks, or a process does not get ready. Failures of clients are in
/// the report.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    let Some(url) = &options.url else {
        return replace_everything(options).await;
    };
    expect_private(url)?;
    let began = Instant::now();
    let load = options.load(url, true, began)?;
    sleep(options.seconds).await;
    let took = began.elapsed();
    let histories = load.settle(SETTLE, None).await;
    let tally = Tally::of(&histories, options.sessions, &Ledger::default());
    Ok(Report::new(options, took, Vec::new(), tally))
}

async fn replace_everything(options: &Options) -> anyhow::Result<Report> {
    let builder = Cluster::builder()
        .edges(options.replicas)
        .sessions(options.replicas)
        .workers(options.replicas)
        .tools(Tools::Chaos)
        .without_balancer()
        .setting("shutdown.balancer_delay", "5s");
    let cluster = builder.settings(options.settings.clone()).start().await;
    let mut cluster = cluster.context("cannot start the cluster")?;
    let service = Service::start(options.probing).await?;
    for edge in cluster.edges() {
        service.add(edge.as_edge().context("an edge without an address")?);
    }
    let url = behind(service.address(), cluster.url())?;
    while service.ready() < options.replicas {
        sleep(Duration::from_millis(20)).await;
    }
    let began = Instant::now();
    let load = options.load(&url, false, began)?;
    sleep(options.calm).await;
    let mut restarts = Vec::new();
    let restarted = rollout::run(&mut cluster, &service, began, &mut restarts).await;
    sleep(options.calm).await;
    let took = began.elapsed();
    let histories = load.settle(SETTLE, None).await;
    let ledger = Ledger::read(&cluster.ledger())?;
    let mut tally = Tally::of(&histories, options.sessions, &ledger);
    let refused = service.refused();
    if refused > 0 {
        let what = format!("the balancer had nowhere to send {refused} connections to");
        tally.violations.push(what);
    }
    let mut report = Report::new(options, took, restarts, tally);
    if restarted.is_err() || !report.is_clean() {
        report.kept = Some(cluster.directory().keep().to_owned());
    }
    restarted?;
    cluster.end().await;
    Ok(report)
}

/// A typing mistake must not put load on somebody else's server.
fn expect_private(url: &str) -> anyhow::Result<()> {
    let address = Target::of(url)?.address;
    let near = match address.ip() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local(),
    };
    if !near {
        bail!(
            "{url} is {address}, which is neither on this machine nor in a private network: such servers are not driven"
        );
    }
    Ok(())
}
