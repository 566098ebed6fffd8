//! A chaos run starts a cluster and clients, injects one kind of fault repeatedly, and checks all histories against
//! the ledger of executions.

mod counters;
mod deed;
mod fault;
mod held;
mod inject;
mod pauses;
mod report;
mod store;

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

pub use counters::Counters;
pub use deed::{Deed, Injected};
pub use fault::Fault;
pub use pauses::{Pauses, delays};
pub use report::Report;

use self::fault::Trait;
use self::inject::Injector;
use self::store::Store;
use crate::arguments::{milliseconds, seconds};
use crate::check::{self, Ledger, Rules, Verdict, Violation};
use crate::clock::WrongClock;
use crate::cluster::{Cluster, Member, Tools, setting};
use crate::history::History;
use crate::load::{Calls, Clients, Load};

const UNANSWERED: &str = "45s";

/// The parameters of a run.
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// The kind of fault.
    #[arg(skip)]
    pub fault: Fault,
    /// Duration of the faults, for each kind, in seconds.
    #[arg(long = "seconds", value_parser = seconds, default_value = "60")]
    pub time: Duration,
    /// Average time between the end of a fault and the next one.
    #[arg(skip = Duration::from_secs(3))]
    pub peace: Duration,
    /// Number of clients of 2025-11-25, each with a session.
    #[arg(long, default_value_t = 200)]
    pub sessions: usize,
    /// Number of clients of 2026-07-28.
    #[arg(long, default_value_t = 50)]
    pub modern: usize,
    /// Number of clients of 2026-07-28 whose calls become tasks.
    #[arg(long, default_value_t = 0)]
    pub tasks: usize,
    /// Seed of all random decisions, but not of the timing [default: a random one, which is printed].
    #[arg(long, hide_default_value = true, default_value_t = rand::random())]
    pub seed: u64,
    /// Number of edges.
    #[arg(long, default_value_t = 3)]
    pub edges: usize,
    /// Number of session nodes.
    #[arg(long = "sessions-nodes", default_value_t = 3)]
    pub session_nodes: usize,
    /// Number of workers.
    #[arg(long, default_value_t = 2)]
    pub workers: usize,
    /// Time for which a node owns its sessions without renewing its lease, in milliseconds.
    #[arg(long = "lease-ms", value_parser = milliseconds, default_value = "3000")]
    pub lease: Duration,
    /// Silence after which a connection between two members counts as broken, in milliseconds. Shorter than the lease,
    /// so that a fault can exceed only this time.
    #[arg(long = "silence-ms", value_parser = milliseconds, default_value = "1500")]
    pub silence: Duration,
    /// Maximum time for open requests to finish after the last fault, in seconds.
    #[arg(long, value_parser = seconds, default_value = "60")]
    pub settle: Duration,
    /// Maximum pause of a client between two calls, in milliseconds.
    #[arg(long = "thinking-ms", value_parser = milliseconds, default_value = "1500")]
    pub thinking: Duration,
    /// Run everything in one process on its embedded store; only with --fault none.
    #[arg(long)]
    pub one_process: bool,
    /// Setting of every member, such as logging.level=debug; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Self::parse_from(["chaos"])
    }
}

impl Options {
    fn clients(&self) -> Clients {
        Clients {
            sessions: self.sessions,
            modern: self.modern,
            tasks: self.tasks,
            thinking: self.thinking,
            calls: match self.fault.has(Trait::ShortCalls) {
                true => Calls::MostlyShort,
                false => Calls::Mixed,
            },
        }
    }
}

/// Makes one run.
///
/// # Errors
///
/// If the cluster cannot be started. The report has later failures.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    let store = Store::start(options.fault).await;
    let store = store.context("cannot start Redis")?;
    let cluster = start(options, &store).await;
    let cluster = cluster.context("cannot start the cluster")?;
    let mut dice = StdRng::seed_from_u64(options.seed);
    let began = Instant::now();
    let load = Load::start(cluster.url(), 0, options.clients(), began, &mut dice)?;
    let injector_dice = StdRng::seed_from_u64(dice.random());
    let mut injector = Injector::new(&cluster, &store, options, began, injector_dice);
    let over = CancellationToken::new();
    let course = async {
        let injected = injector.run().await;
        let took = began.elapsed();
        cluster.heal();
        // Gives clients time to reconnect before the load ends.
        sleep(options.peace).await;
        let last_wipe = injector.outages(Deed::WIPED).last().map(|wipe| wipe.until);
        let histories = load.settle(options.settle, last_wipe).await;
        over.cancel();
        (injected, took, histories)
    };
    let watch = Counters::watch(&cluster, over.cancelled());
    let ((injected, took, histories), counters) = tokio::join!(course, watch);
    let histories = [histories.as_slice(), &injector.histories].concat();
    let mut verdict = judge(&cluster, options, &injector, &histories)?;
    if let Err(error) = injected {
        verdict.find(None, Violation::Misbehaved, format!("{error:#}"));
    }
    if options.fault.has(Trait::KeepsOwners) && counters.taken_over() > 0 {
        let detail = format!(
            "{} sessions changed their owner, and every node lived",
            counters.taken_over()
        );
        verdict.find(None, Violation::Misbehaved, detail);
    }
    look_at(cluster.members(), &mut verdict).await;
    held::check(&cluster, &store, options.settle, &mut verdict).await;
    let report = Report {
        options: options.clone(),
        took,
        disturbed: cluster.disturbed(),
        counters,
        pauses: Pauses::after(&injector.injected, &histories, options),
        injected: injector.injected,
        verdict,
        kept: None,
    };
    let report = report.keep(&cluster, &histories)?;
    cluster.end().await;
    Ok(report)
}

async fn start(options: &Options, store: &Store) -> anyhow::Result<Cluster> {
    let fault = options.fault;
    let tools = match fault.has(Trait::SplitPools) {
        true => Tools::SplitChaos,
        false => Tools::Chaos,
    };
    let mut builder = Cluster::builder()
        .edges(options.edges)
        .sessions(options.session_nodes)
        .workers(options.workers)
        .lease(options.lease)
        .tools(tools)
        .setting("cluster.learning", "5s")
        .setting("calls.timeout", UNANSWERED)
        .setting("calls.input_timeout", UNANSWERED)
        .setting("streams.retry", "200ms")
        .setting("streams.retry_spread", "500ms")
        .setting("session.passivate_after", "300ms")
        .setting("session.sweep_every", "100ms")
        .setting("tasks.after", "50ms");
    if fault.has(Trait::Proxies) {
        builder = builder.fault_proxies();
    }
    if fault.has(Trait::ShortDrains) {
        builder = builder.setting("shutdown.calls", "2s");
    }
    if fault.has(Trait::WrongClocks) {
        builder = builder.wrong_clocks(WrongClock::find()?);
    }
    if let Some(url) = store.url() {
        builder = builder.store(&url);
    }
    if options.one_process {
        builder = builder.one_process();
    } else {
        let silence = |time: Duration| format!("{}ms", time.as_millis());
        let all = match fault.has(Trait::KeepsOwners) {
            true => options.lease * 3,
            false => options.silence,
        };
        builder = builder.setting("cluster.silence", &silence(all));
        if fault.has(Trait::LatePings) {
            builder = builder.worker_setting("cluster.silence", &silence(options.lease * 3));
        }
    }
    for (name, value) in fault.settings() {
        builder = builder.setting(name, value);
    }
    builder.settings(options.settings.clone()).start().await
}

fn judge(
    cluster: &Cluster,
    options: &Options,
    injector: &Injector<'_>,
    histories: &[History],
) -> anyhow::Result<Verdict> {
    let breaks = cluster.breaks().into_iter();
    let broke_at: HashMap<_, _> = breaks.map(|broken| (broken.tag, broken.edge)).collect();
    let rules = Rules {
        outages: injector.outages(Deed::KILLED),
        wipes: injector.outages(Deed::WIPED),
        lost_writes: injector.outages(Deed::LOST_WRITES),
        broke_at,
        ..options.fault.rules()
    };
    let ledger = Ledger::read(&cluster.ledger())?;
    Ok(check::check(histories, &ledger, &rules))
}

async fn look_at(members: &[Member], verdict: &mut Verdict) {
    for member in members {
        if !member.is_running() {
            let detail = format!("{} has ended by itself", member.name());
            verdict.find(None, Violation::Misbehaved, detail);
        }
        let log = std::fs::read_to_string(member.log()).unwrap_or_default();
        if let Some(line) = log.lines().find(|line| line.contains("panicked at")) {
            let detail = format!("{}: {line}", member.name());
            verdict.find(None, Violation::Misbehaved, detail);
        }
    }
}
