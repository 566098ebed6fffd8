//! Computes costs for `loadtest model` from the CPU time of a cluster's processes under several
//! loads.

mod fit;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use shoal_testkit::cluster::Cluster;

use crate::affinity::Cores;
use crate::connection::Reply;
use crate::engine::call::{Caller, Echo};
use crate::engine::mix::{Kind, Mix};
use crate::engine::{self, Plan, Shared};
use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::job::Job;
use crate::model::costs::{COUNTED, Costs, Counted, Held, ROLES, by_role, fitted};
use crate::process;
use crate::servers::{self, redis, shoal_binary};
use crate::target::Target;

const CROWD: usize = 1000;

const AT_ONCE: usize = 32;

/// Events of a call with progress.
const STEPS: usize = 10;

/// The server writes comments often enough for a measurable cost.
const KEEP_ALIVE: Duration = Duration::from_millis(500);

/// `loadtest cost`.
#[derive(Debug, Args)]
pub(crate) struct Cost {
    /// Shoal binary [default: `shoal` next to this program].
    #[arg(long)]
    shoal: Option<PathBuf>,
    /// Time to measure each load, in seconds.
    #[arg(long, default_value_t = 8)]
    seconds: u64,
    /// File for the costs in TOML, for `loadtest model --costs`.
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub(crate) struct Sample {
    what: String,
    seconds: f64,
    counts: Vec<(Counted, f64)>,
    cpu_us: Vec<f64>,
    rss_kib: Vec<f64>,
    redis_commands: f64,
}

struct Look {
    at: Instant,
    usage: Vec<process::Usage>,
    redis_commands: f64,
}

impl Look {
    async fn take(cluster: &Cluster) -> anyhow::Result<Self> {
        let look = |pids: Vec<u32>| process::measure(&pids);
        let redis = cluster.redis().context("no Redis")?.address();
        let commands = redis::commands(redis).await?;
        Ok(Self {
            redis_commands: commands.values().map(|count| *count as f64).sum(),
            usage: ROLES
                .iter()
                .map(|role| look(role_of(cluster, role)))
                .collect::<Result<_, _>>()?,
            at: Instant::now(),
        })
    }

    async fn until_now(
        &self,
        cluster: &Cluster,
        what: &str,
        counts: Vec<(Counted, f64)>,
    ) -> anyhow::Result<Sample> {
        let now = Self::take(cluster).await?;
        let pairs = || now.usage.iter().zip(&self.usage);
        Ok(Sample {
            what: what.to_owned(),
            seconds: (now.at - self.at).as_secs_f64(),
            counts,
            cpu_us: pairs()
                .map(|(now, then)| now.cpu.saturating_sub(then.cpu).as_secs_f64() * 1e6)
                .collect(),
            rss_kib: pairs()
                .map(|(now, then)| now.rss_kib as f64 - then.rss_kib as f64)
                .collect(),
            redis_commands: now.redis_commands - self.redis_commands,
        })
    }
}

pub(crate) fn execute(cost: &Cost) -> anyhow::Result<String> {
    let cores = crate::pinned()?;
    crate::runtime(Some(1))?.block_on(run(cost, cores))
}

/// Returns the costs as TOML. Fails if an answer is wrong.
async fn run(cost: &Cost, cores: Option<Cores>) -> anyhow::Result<String> {
    let shoal = shoal_binary(cost.shoal.as_deref())?;
    let keep_alive = format!("{}ms", KEEP_ALIVE.as_millis());
    let builder = servers::cluster(&shoal, cores.map(|cores| cores.server));
    let cluster = builder
        .setting("streams.keep_alive", &keep_alive)
        .start()
        .await?;
    let at_first: Vec<f64> = Look::take(&cluster)
        .await?
        .usage
        .iter()
        .map(|usage| usage.rss_kib as f64)
        .collect();
    let seconds = Duration::from_secs(cost.seconds);
    let mut samples = Vec::new();
    let mut push = |sample: Sample| {
        crate::progress(&sample.to_string());
        samples.push(sample);
    };

    let look = Look::take(&cluster).await?;
    tokio::time::sleep(seconds).await;
    push(look.until_now(&cluster, "idle", vec![]).await?);
    let (opened, streams, crowd) = crowd(&cluster, seconds).await?;
    let each = |grown: f64| (grown.max(0.0) / CROWD as f64 * 100.0).round() / 100.0;
    let memory_kib = by_role(|at| Held {
        process: at_first[at],
        session: each(opened.rss_kib[at]),
        stream: each(streams.rss_kib[at]),
    });
    push(opened);
    push(streams);
    push(crowd);
    let echo = Kind::Payload(32);
    let progress = Kind::Progress(Job::burst(STEPS));
    for (counted, mode, kind, tool, crowds) in [
        (
            Counted::Legacy,
            Mode::Legacy,
            echo,
            "echo",
            &[16, 64, 256][..],
        ),
        (Counted::Modern, Mode::Modern, echo, "echo", &[16, 64, 256]),
        (
            Counted::Journaled,
            Mode::Legacy,
            echo,
            "echo_once",
            &[16, 64, 256],
        ),
        (
            Counted::Journaled,
            Mode::Legacy,
            progress,
            "long_job",
            &[64],
        ),
    ] {
        for &sessions in crowds {
            let plan = Plan {
                duration: seconds,
                mix: Mix::of(kind),
                echo: Echo::by(tool),
                ..Plan::at(cluster.url(), mode, sessions).await?
            };
            let look = Look::take(&cluster).await?;
            let report = engine::run(plan).await?;
            anyhow::ensure!(
                report.wrong + report.failed == 0,
                "{} calls of {tool} were answered wrongly and {} not at all",
                report.wrong,
                report.failed
            );
            let calls = report.calls as f64;
            let mut counts = vec![(counted, calls)];
            if kind == progress {
                counts.push((Counted::Event, calls * STEPS as f64));
            } else if mode == Mode::Legacy {
                counts.push((Counted::Open, sessions as f64));
            }
            push(
                look.until_now(&cluster, &format!("{tool} {sessions}"), counts)
                    .await?,
            );
        }
    }

    let rows: Vec<Vec<f64>> = samples.iter().map(Sample::row).collect();
    let fit = |of: &dyn Fn(&Sample) -> f64| {
        let values: Vec<f64> = samples.iter().map(of).collect();
        let fit = fit::least_squares(&rows, &values);
        fit.context("the loads do not tell the costs apart")
    };
    let cpu: Vec<Vec<f64>> = (0..ROLES.len())
        .map(|role| fit(&|sample| sample.cpu_us[role]))
        .collect::<Result<_, _>>()?;
    let text = toml::to_string(&Costs {
        provenance: String::new(),
        cpu_us: by_role(|at| fitted(&cpu[at])),
        redis_commands: fitted(&fit(&|sample| sample.redis_commands)?),
        memory_kib,
    })?;
    if let Some(path) = &cost.out {
        std::fs::write(path, &text)
            .with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(text)
}

async fn crowd(cluster: &Cluster, seconds: Duration) -> anyhow::Result<(Sample, Sample, Sample)> {
    let crowd = CROWD as f64;
    let look = Look::take(cluster).await?;
    let shared = Shared::new(Plan::at(cluster.url(), Mode::Legacy, CROWD).await?)?;
    let callers = shared.open_all().await?;
    let opened = look
        .until_now(cluster, "open sessions", vec![(Counted::Open, crowd)])
        .await?;
    let look = Look::take(cluster).await?;
    let streams = listen(&shared.plan.targets[0], &callers).await?;
    let listened = look
        .until_now(cluster, "open streams", vec![(Counted::Stream, crowd)])
        .await?;
    let look = Look::take(cluster).await?;
    let began = Instant::now();
    tokio::time::sleep(seconds).await;
    let comments = crowd * began.elapsed().as_secs_f64() / KEEP_ALIVE.as_secs_f64();
    let idle = look
        .until_now(
            cluster,
            "idle streams",
            vec![(Counted::KeepAlive, comments)],
        )
        .await?;
    drop(streams);
    Ok((opened, listened, idle))
}

async fn listen(target: &Target, callers: &[Caller]) -> anyhow::Result<Vec<Reply>> {
    let opening = callers
        .iter()
        .map(|caller| caller.client.stream(target, None));
    let opened = stream::iter(opening).buffer_unordered(AT_ONCE);
    let opened: Result<_, Failure> = opened.try_collect().await;
    opened.context("could not open a stream")
}

fn role_of(cluster: &Cluster, role: &str) -> Vec<u32> {
    let members = cluster.members().iter();
    let members = members.map(|member| (member.role().as_str(), member.pid()));
    let redis = cluster.redis().map(|redis| ("redis", redis.pid()));
    let of_role = members.chain(redis).filter(|(name, _)| *name == role);
    of_role.map(|(_, pid)| pid).collect()
}

impl Sample {
    fn row(&self) -> Vec<f64> {
        let count = |what: &Counted| {
            let known = self.counts.iter().filter(|(counted, _)| counted == what);
            known.map(|(_, count)| count).sum()
        };
        let counts = COUNTED[1..].iter().map(count);
        std::iter::once(self.seconds).chain(counts).collect()
    }
}

impl std::fmt::Display for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.counts.first().map_or(0.0, |(_, count)| *count);
        write!(
            f,
            "{:14} {:5.1} s {count:9.0}, CPU ms:",
            self.what, self.seconds
        )?;
        for (role, cpu) in ROLES.iter().zip(&self.cpu_us) {
            write!(f, " {role} {:.0}", cpu / 1000.0)?;
        }
        Ok(())
    }
}
