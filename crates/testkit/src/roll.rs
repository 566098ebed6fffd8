//! A rolling restart of everything, which the clients must not notice.
//!
//! [`drive`] runs only the clients, and counts every failure that an ordinary client would show its user. [`run`]
//! also starts a cluster behind a balancer like a Kubernetes Service, and replaces every process in turn, like a
//! Deployment with `maxSurge: 1` and `maxUnavailable: 0`.

mod latency;
mod load;
mod modern;
mod report;
mod rollout;
mod tally;
mod toolset;

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::{Instant, sleep};

pub use latency::Latency;
pub use load::Clients;
pub use report::{Report, Row};
pub use rollout::{HandOver, Restart};
pub use tally::{Failure, Sample, Tally};
pub use toolset::Toolset;

use self::load::Load;
use self::rollout::Rollout;
use crate::check::Ledger;
use crate::client::target::Target;
use crate::cluster::{Cluster, Role, Tools};
use crate::service::{Probing, Service};

const SETTLE: Duration = Duration::from_secs(40);

const ROOM: usize = 4096;

/// The parameters of a rolling restart.
#[derive(Clone, Debug)]
pub struct Options {
    /// The parameters of the clients.
    pub clients: Clients,
    /// The roles whose processes are replaced, in this order.
    pub roles: Vec<Role>,
    /// Number of processes of each role.
    pub replicas: usize,
    /// How long clients work before the first restart and after the last.
    pub calm: Duration,
    /// The time between two restarts.
    pub between: Duration,
    /// How the balancer adds and removes endpoints.
    pub probing: Probing,
    /// How long a process may take to end (`terminationGracePeriodSeconds`).
    pub grace: Duration,
    /// Settings of all processes.
    pub settings: Vec<(String, String)>,
}

/// Runs clients against the server at `url`.
///
/// # Errors
///
/// If `url` is outside this machine and private networks, or the HTTP client cannot be built. Later failures
/// are in the report.
pub async fn drive(url: &str, clients: &Clients, time: Duration) -> anyhow::Result<Report> {
    expect_private(url)?;
    let began = Instant::now();
    let load = Load::start(url, clients, began)?;
    sleep(time).await;
    let took = began.elapsed();
    let seen = load.settle(SETTLE).await;
    let tally = Tally::of(&seen, &Ledger::default());
    Ok(Report::new(clients, took, Vec::new(), tally))
}

/// Starts a cluster, and replaces every process under load.
///
/// # Errors
///
/// If a process does not get ready. Failures of clients are in the report.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    let cluster = start(options).await.context("cannot start the cluster")?;
    let service = Service::start(options.probing).await?;
    for edge in cluster.edges() {
        service.add(edge.as_edge().context("an edge without an address")?);
    }
    let ledger = cluster.ledger();
    let path = cluster.path();
    let url = format!("http://{}{path}", service.address());
    while service.ready() < options.replicas {
        sleep(Duration::from_millis(20)).await;
    }
    let began = Instant::now();
    let load = Load::start(&url, &options.clients, began)?;
    sleep(options.calm).await;
    let mut rollout = Rollout::new(cluster, &service, options, began);
    let restarted = rollout.run().await;
    sleep(options.calm).await;
    let took = began.elapsed();
    let seen = load.settle(SETTLE).await;
    let (cluster, restarts) = rollout.end();
    let mut tally = Tally::of(&seen, &Ledger::read(&ledger)?);
    let refused = service.refused();
    if refused > 0 {
        let what = format!("the balancer had nowhere to send {refused} connections to");
        tally.violations.push(what);
    }
    let mut report = Report::new(&options.clients, took, restarts, tally);
    if restarted.is_err() || !report.is_clean() {
        report.keep(cluster.directory().keep());
    }
    restarted?;
    cluster.end().await;
    Ok(report)
}

async fn start(options: &Options) -> anyhow::Result<Cluster> {
    let tools = match options.clients.tools {
        Toolset::Chaos => Tools::Chaos,
        Toolset::Demo => Tools::Configured(format!(
            "[pools.demo]\nbackend = \"demo\"\nconcurrency = {ROOM}\n"
        )),
    };
    let builder = Cluster::builder()
        .edges(options.replicas)
        .sessions(options.replicas)
        .workers(options.replicas)
        .tools(tools);
    builder.settings(options.settings.clone()).start().await
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
