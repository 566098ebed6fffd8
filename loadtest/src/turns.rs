//! Cases that are measured in turns, each with processes of its own, so that a slow minute affects all cases.

mod comparison;
pub(crate) mod proof;
mod row;
pub(crate) mod setup;
mod verdict;

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use shoal_testkit::admin::Admin;

use crate::affinity::Cores;
use crate::cli::duration;
use crate::engine::call::Echo;
use crate::engine::mix::{Kind, Mix};
use crate::engine::{self, Plan};
use crate::mcp::Mode;
use crate::peers::{Peer, Variant};
use crate::report::RunReport;
use crate::servers::collector::{Collector, Conduct};
use crate::servers::{Running, cluster, one_process};
pub(crate) use comparison::{Column, Comparison, write_table};
pub(crate) use row::{Row, number, percent};
use setup::{Features, Setup};
pub(crate) use verdict::Bar;

/// Minimum calls of a session, so that slow servers have figures too.
const LEAST_CALLS_OF_A_SESSION: u64 = 10;

const PEER_TIMEOUT: Duration = Duration::from_secs(300);

/// The metrics are read so often that short rounds include a reading.
const READ_EVERY: Duration = Duration::from_secs(1);

const DROPPED: &str = "shoal_telemetry_dropped_total";
const OF_TRACES: &str = r#"shoal_telemetry_signal="traces""#;

/// Options for cases that are measured in turns.
#[derive(Debug, Args)]
pub(crate) struct Turns {
    /// Shoal binary [default: `shoal` next to this program, if it exists].
    #[arg(long)]
    pub(crate) shoal: Option<PathBuf>,
    /// Number of sessions that call at the same time.
    #[arg(long, default_value_t = 64)]
    pub(crate) sessions: usize,
    /// Time to measure each case in each round, in seconds.
    #[arg(long, default_value_t = 10)]
    pub(crate) seconds: u64,
    /// Time under load before the measurement.
    #[arg(long, default_value = "2s", value_parser = duration)]
    pub(crate) warmup: Duration,
    /// Number of turns of each case.
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// File for the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Server {
    /// A server of this program, with its arguments.
    Own(&'static [&'static str]),
    Shoal,
    /// An edge, a session node and a worker, with Redis.
    Cluster,
    Combined,
    /// A server from a registry. A gateway stands in front of [`BEHIND_GATEWAYS`].
    Peer(&'static Peer, &'static Variant),
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl PartialEq for Variant {
    fn eq(&self, other: &Self) -> bool {
        self.row == other.row
    }
}

pub(crate) const FLOOR: Server = Server::Own(&["serve-floor"]);

pub(crate) const BEHIND_GATEWAYS: &[&str] =
    &["serve-rmcp", "--stateful", "true", "--json", "false"];

impl Server {
    pub(crate) fn is_shoal(self) -> bool {
        matches!(self, Self::Shoal | Self::Cluster | Self::Combined)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// Name of the case that this case is compared with. The case of the same era counts, if there is one.
    pub(crate) base: String,
    pub(crate) mode: Mode,
    pub(crate) server: Server,
    pub(crate) kind: Kind,
    pub(crate) tool: &'static str,
    pub(crate) features: Features,
}

/// One measurement of a case.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) report: RunReport,
    pub(crate) spans_received: u64,
    /// Known only if the server is one process with metrics.
    pub(crate) spans_lost: Option<u64>,
}

/// How cases are measured.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) shoal: Option<PathBuf>,
    pub(crate) cores: Option<Cores>,
    /// Directory of the installed peers.
    pub(crate) peers: PathBuf,
    pub(crate) sessions: usize,
    pub(crate) warmup: Duration,
    pub(crate) time: Duration,
    pub(crate) rounds: usize,
    /// Keeps the generator's thread awake. In a virtual machine, waking it costs the server more than the rest of an
    /// answer, and a slow server would wake it more often.
    pub(crate) awake: bool,
}

impl Bench {
    /// Pins this process to its core.
    pub(crate) fn of(turns: &Turns, shoal: Option<PathBuf>) -> anyhow::Result<Self> {
        Ok(Self {
            shoal,
            cores: crate::pinned()?,
            peers: PathBuf::new(),
            sessions: turns.sessions,
            warmup: turns.warmup,
            time: Duration::from_secs(turns.seconds),
            rounds: turns.rounds,
            awake: false,
        })
    }

    /// Returns the cases' rows, and why cases were left out, with `left_out` before. Fails if a server does not start, unless it is a peer
    /// from a registry.
    pub(crate) async fn measure(
        &self,
        cases: &[Case],
        mut left_out: Vec<String>,
    ) -> anyhow::Result<(Vec<Row>, Vec<String>)> {
        let mut turns = vec![Vec::new(); cases.len()];
        for round in 0..self.rounds {
            for index in order(round, cases.len()) {
                let case = &cases[index];
                turns[index].push(match self.bounded_turn(case, round).await {
                    Ok(turn) => Some(turn),
                    Err(error) => {
                        let why = format!("{}: {error:#}", case.name);
                        left_out.push(match case.server {
                            Server::Peer(peer, _) => {
                                format!("{why}; its log is {}", peer.log(&self.peers).display())
                            }
                            server if server.is_shoal() && self.shoal.is_none() => why,
                            _ => return Err(error.context(format!("case {}", case.name))),
                        });
                        None
                    }
                });
            }
        }
        left_out.sort();
        left_out.dedup();
        Ok((row::rows(cases, &turns), left_out))
    }

    async fn bounded_turn(&self, case: &Case, round: usize) -> anyhow::Result<Turn> {
        let turn = self.turn(case, round);
        let Server::Peer(..) = case.server else {
            return turn.await;
        };
        let limit = self.warmup + self.time + PEER_TIMEOUT;
        let done = tokio::time::timeout(limit, turn).await;
        done.with_context(|| format!("it was not done within {} s", limit.as_secs()))?
    }

    /// Fails if the case's features do not work.
    async fn turn(&self, case: &Case, round: usize) -> anyhow::Result<Turn> {
        let setup = Setup::of(&case.features, self.cores.map(|cores| cores.collector)).await?;
        let server = self.start(case, &setup).await?;
        let tools = match case.server.is_shoal() {
            true => proof::of(case, &server.url, server.admin(), &setup).await?,
            false => proof::tools(case.mode, &server.url).await?,
        };
        ensure!(
            tools.iter().any(|tool| tool == case.tool),
            "the server has no tool {}",
            case.tool
        );
        let admin = server.admin().filter(|_| case.features.metrics);
        let plan = Plan::of(&server, case.mode, self.sessions).await?;
        let mut plan = Plan {
            warmup: self.warmup,
            duration: self.time,
            least_calls: LEAST_CALLS_OF_A_SESSION * self.sessions as u64,
            mix: Mix::of(case.kind),
            echo: Echo::by(case.tool),
            label: format!(
                "round {}/{} {} {}: ",
                round + 1,
                self.rounds,
                case.mode.name(),
                case.name
            ),
            ..plan
        };
        plan.targets[0]
            .authorization
            .clone_from(&setup.authorization);
        let report = tokio::select! {
            report = engine::run(plan) => report?,
            failed = read_metrics(admin) => match failed? {},
            never = stay_awake(), if self.awake => match never {},
        };
        let spans_received = setup.collector.as_ref().map_or(0, Collector::spans);
        let spans_lost = match admin {
            Some(admin) => Some(admin.metric(DROPPED, OF_TRACES).await? as u64),
            None => None,
        };
        let traced = (case.features.traces).is_some_and(|(_, conduct)| conduct == Conduct::Answers);
        ensure!(
            !traced || spans_received > 0,
            "no span reached the collector; measure for longer (--seconds)"
        );
        Ok(Turn {
            report,
            spans_received,
            spans_lost,
        })
    }

    async fn start(&self, case: &Case, setup: &Setup) -> anyhow::Result<Running> {
        let core = self.cores.map(|cores| cores.server);
        let shoal = || self.shoal.as_deref().context("no shoal binary");
        let builder = match case.server {
            Server::Own(arguments) => return Running::own(arguments, core).await,
            Server::Shoal => one_process(shoal()?, core),
            Server::Cluster => cluster(shoal()?, core),
            Server::Combined => cluster(shoal()?, core).combined(1),
            Server::Peer(peer, variant) => {
                // The log may be of an earlier turn.
                let _ = std::fs::remove_file(peer.log(&self.peers));
                let start = async |behind| {
                    let launch = peer.launch(variant, &self.peers, behind);
                    let started = Running::launched(launch, core).await;
                    started.context("it did not start")
                };
                if !variant.is_gateway {
                    return start(None).await;
                }
                let behind = Running::own(BEHIND_GATEWAYS, core).await?;
                return Ok(start(Some(&behind.url)).await?.before(behind));
            }
        };
        Running::shoal(builder.settings(setup.settings.clone())).await
    }
}

/// The first case runs on an idle machine, so rounds start with different cases.
fn order(round: usize, cases: usize) -> impl Iterator<Item = usize> {
    let first = round * cases / 2 + round.div_ceil(2);
    (first..first + cases).map(move |turn| turn % cases)
}

async fn stay_awake() -> Infallible {
    loop {
        tokio::task::yield_now().await;
    }
}

async fn read_metrics(admin: Option<&Admin>) -> anyhow::Result<Infallible> {
    loop {
        tokio::time::sleep(READ_EVERY).await;
        if let Some(admin) = admin {
            admin.metrics().await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::order;

    #[test]
    fn every_round_has_every_case_and_begins_with_another() {
        for count in [6, 7, 8, 14] {
            let rounds: Vec<Vec<usize>> =
                (0..4).map(|round| order(round, count).collect()).collect();
            for round in &rounds {
                let cases: HashSet<usize> = round.iter().copied().collect();
                assert_eq!((round.len(), cases.len()), (count, count));
            }
            let first: HashSet<usize> = rounds.iter().map(|round| round[0]).collect();
            assert_eq!(first.len(), rounds.len(), "{count} cases");
        }
    }
}
