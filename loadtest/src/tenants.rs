//! A hostile tenant exhausts one resource after the other, and a good tenant must not notice.

mod bound;
mod hostile;
mod item;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum as _};
use shoal_testkit::cluster::{Cluster, Member, Role, setting};
use tokio::time::{interval, sleep};

use self::bound::Limits;
use self::hostile::{Hostile, Tally};
use self::item::{Gauge, Item};
use crate::arrivals::{self, Done, Pool};
use crate::cli::duration;
use crate::engine::mix::Kind;
use crate::mcp::{Mode, bearer, token_entry};
use crate::outcome::Outcome;
use crate::process;
use crate::scenario::Subject;
use crate::servers;
use crate::target::Target;
use crate::times;

const EDGES: usize = 2;
const WORKERS: usize = 2;
const WARM_UP: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Maximum ratio of the good tenant's p99 to its baseline.
const SLOWER: f64 = 3.0;

/// Limits that a few connections reach. A principal's share is at most half of a node's limit.
const SETTINGS: &str = "
    server.websocket=true limits.connections=1024
    limits.requests=256 limits.requests_per_principal=40
    limits.bodies_in_flight_bytes=33554432 limits.bodies_in_flight_bytes_per_principal=8388608
    limits.answers_waiting_bytes=33554432 limits.answers_waiting_bytes_per_principal=8388608
    limits.streams=128 limits.streams_per_principal=32
    limits.sessions_per_node=1000 limits.sessions_per_principal=200
    limits.stored_bytes=67108864 limits.stored_bytes_per_principal=8388608
    limits.subscriptions_per_session=100 calls.waiting=400 calls.waiting_per_principal=50
    pools.demo.backend=demo pools.demo.queue=16
    pools.demo.concurrency=32 pools.demo.concurrency_per_principal=16
    pools.demo.asking=64 pools.demo.asking_per_principal=16 auth.mode=tokens";

const HEADER: &str = "\
| item | held at most | may hold | refused | good p99, baseline → beside | × | failed | RSS at most / bound | CPU/s |
|---|--:|---|---|--:|--:|--:|---|---|";

/// The arguments of `loadtest tenants`.
#[derive(Debug, Args)]
pub(crate) struct Tenants {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Resources that the hostile tenant exhausts, one after the other, separated by commas [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Item>,
    /// Duration of each attack, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Time to measure the baseline before each attack, in seconds.
    #[arg(long, default_value_t = 30)]
    baseline_seconds: u64,
    /// Number of connections of the hostile tenant.
    #[arg(long, default_value_t = 100)]
    connections: usize,
    /// Pause of each connection between two attempts, and between two echo calls in the baseline.
    #[arg(long, default_value = "500ms", value_parser = duration)]
    pace: Duration,
    /// Calls of the good tenant a second.
    #[arg(long, default_value_t = 40.0)]
    rate: f64,
    /// Number of session nodes.
    #[arg(long, default_value_t = 1)]
    session_nodes: usize,
    /// Setting of all processes that overrides this scenario's, such as pools.demo.concurrency_per_principal=0; may be
    /// repeated.
    #[arg(long = "set", value_name = "SETTING=VALUE")]
    settings: Vec<String>,
}

impl Tenants {
    pub(crate) async fn run(&self) -> anyhow::Result<Outcome> {
        ensure!(self.rate > 0.0, "some calls must come");
        ensure!(self.connections > 0, "the hostile tenant needs connections");
        let shoal = self.subject.shoal()?;
        let tokens = [(); 2].map(|()| format!("{:032x}", rand::random::<u128>()));
        let settings = settings(&tokens, &self.settings)?;
        let limits = Limits::read(&shoal, &settings)?;
        let mut bounds = Vec::new();
        for role in [Role::Edge, Role::Session, Role::Worker] {
            bounds.push((role, limits.kib_above_idle(role, EDGES)?));
        }
        let Self {
            connections, rate, ..
        } = self;
        let title = format!(
            "{connections} connections of a hostile tenant beside {rate} calls/s of a good one, p99 at most {SLOWER} × the baseline"
        );
        let mut outcome = Outcome::begin("tenants", title);
        outcome.table.push(HEADER.to_owned());
        let items = match self.only.is_empty() {
            true => Item::value_variants(),
            false => &self.only,
        };
        for &item in items {
            let builder = self
                .subject
                .cluster()?
                .edges(EDGES)
                .sessions(self.session_nodes)
                .workers(WORKERS)
                .settings(settings.clone());
            let cluster = builder.start().await?;
            let plain = servers::targets(&cluster).await?;
            let [good, hostile] = [0, 1].map(|tenant| {
                let authorization = Some(bearer(&tokens[tenant]));
                let shown = |target: &Target| Target {
                    authorization: authorization.clone(),
                    ..target.clone()
                };
                plain.iter().map(shown).collect::<Vec<_>>()
            });
            let scene = Scene {
                options: self,
                good: pools(&good),
                cluster,
                hostile,
            };
            let measured = scene.measure(item, &limits, &bounds, &mut outcome).await;
            measured.with_context(|| item.to_string())?;
        }
        outcome.seconds = (self.seconds * items.len() as u64) as f64;
        Ok(outcome)
    }
}

/// Each entry of `changed` (`SETTING=VALUE`) replaces a setting.
fn settings(tokens: &[String; 2], changed: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let entries = [
        token_entry("good", &tokens[0]),
        token_entry("hostile", &tokens[1]),
    ];
    let tokens = format!("auth.tokens=[{}]", entries.join(","));
    let settings = SETTINGS.split_whitespace().chain([tokens.as_str()]);
    let settings = settings.chain(changed.iter().map(String::as_str));
    // The last value wins.
    let split = settings.map(|text| setting(text).map_err(anyhow::Error::msg));
    split.collect()
}

struct Scene<'a> {
    options: &'a Tenants,
    cluster: Cluster,
    /// The good tenant calls `echo` in the modern era. In the legacy era, it calls `echo_once`, which must not be repeated.
    good: Vec<(Arc<Pool>, Kind)>,
    hostile: Vec<Target>,
}

struct Worked {
    calls: u64,
    failed: u64,
    /// The first failure.
    example: String,
    p99: Duration,
}

fn pools(targets: &[Target]) -> Vec<(Arc<Pool>, Kind)> {
    let kinds = [(Mode::Modern, Kind::Echo), (Mode::Legacy, Kind::Journaled)];
    let of_target =
        |target: &Target| kinds.map(|(mode, kind)| (Pool::new(target.clone(), mode), kind));
    targets.iter().flat_map(of_target).collect()
}

/// The events of the time in which both tenants worked.
struct Phase {
    worked: Worked,
    refused: String,
    /// The highest measurement of the gauge.
    held: u64,
    /// CPU seconds of all processes per second.
    cpu: f64,
}

impl Scene<'_> {
    async fn measure(
        &self,
        item: Item,
        limits: &Limits,
        bounds: &[(Role, u64)],
        outcome: &mut Outcome,
    ) -> anyhow::Result<()> {
        let warm = self.work(WARM_UP).await;
        ensure!(
            warm.failed == 0,
            "alone, the good tenant fails: {}",
            warm.example
        );
        let mut bounds_kib = Vec::new();
        for member in self.cluster.members() {
            let bound = bounds.iter().find(|(role, _)| *role == member.role());
            let idle_kib = process::measure(&[member.pid()])?.rss_kib;
            bounds_kib.push(idle_kib + bound.map_or(0, |&(_, kib)| kib));
        }
        let calm = self.phase(None, self.options.baseline_seconds).await?;
        let baseline = &calm.worked;
        ensure!(
            baseline.failed == 0,
            "the baseline has failures: {}",
            baseline.example
        );
        let busy = self.phase(Some(item), self.options.seconds).await?;
        let (role, settings, _) = item.share();
        let mut limit = self.of(role).count() as u64;
        for setting in settings {
            limit *= limits.number(setting)?;
        }
        let (held, refused, beside) = (busy.held, busy.refused, &busy.worked);
        let ratio = beside.p99.as_secs_f64() / baseline.p99.as_secs_f64().max(f64::EPSILON);
        outcome.lower(format!("{item}: p99, × baseline"), ratio, "");
        outcome.plain(format!("{item}: held"), held as f64, "");
        let mut fullest = (0.0, String::new());
        for (member, bound) in self.cluster.members().iter().zip(bounds_kib) {
            let (name, most) = (member.name(), process::peak_rss_kib(member.pid())?);
            outcome.lower(format!("{item}: RSS of {name}"), most as f64, "KiB");
            let example = format!("{item}: {name} {most} KiB of {bound}");
            let over = u64::from(most > bound);
            outcome.violation("more memory than the configuration says", over, &example);
            let share = most as f64 / bound as f64;
            if share > fullest.0 {
                fullest = (
                    share,
                    format!("{name} {} / {} MiB", most >> 10, bound >> 10),
                );
            }
        }
        let example = format!("{item}: {}", beside.example);
        outcome.violation("a call of the good tenant failed", beside.failed, &example);
        let example = format!("{item}: p99 {ratio:.1} × the baseline");
        outcome.violation(
            "the good tenant noticed",
            u64::from(ratio > SLOWER),
            &example,
        );
        let row = format!(
            "| {item} | {held} | {limit} ({}) | {refused} | {:.1?} → {:.1?} | {ratio:.2} | {} of {} | {} | {:.2} → {:.2} |",
            settings.join(" × "),
            baseline.p99,
            beside.p99,
            beside.failed,
            beside.calls,
            fullest.1,
            calm.cpu,
            busy.cpu,
        );
        crate::progress(&row);
        outcome.table.push(row);
        Ok(())
    }

    async fn work(&self, time: Duration) -> Worked {
        let done = arrivals::calls(&self.good, self.options.rate, time, None).await;
        let failures = done.iter().filter_map(|done| done.result.as_ref().err());
        let failures: Vec<String> = failures.map(ToString::to_string).collect();
        let right = done.iter().filter(|done| done.result.is_ok());
        Worked {
            calls: done.len() as u64,
            failed: failures.len() as u64,
            example: failures.into_iter().next().unwrap_or_default(),
            p99: times::quantile(&times::of(right.map(Done::latency)), 0.99),
        }
    }

    async fn phase(&self, item: Option<Item>, seconds: u64) -> anyhow::Result<Phase> {
        let Tenants {
            connections, pace, ..
        } = *self.options;
        let hostile = Hostile::begin(&self.hostile, connections, pace, item)?;
        // After this pause, the hostile connections have started, unless large answers spread them
        // over more time.
        sleep(pace).await;
        let pids = self.cluster.pids();
        let before = process::measure(&pids)?.cpu;
        let most = AtomicU64::new(0);
        let worked = tokio::select! {
            worked = self.work(Duration::from_secs(seconds)) => worked,
            () = self.watch(item, &hostile.tally, &most) => unreachable!("it watches until it is dropped"),
        };
        let cpu = process::measure(&pids)?.cpu.saturating_sub(before);
        Ok(Phase {
            worked,
            refused: hostile.tally.refusals(),
            held: most.into_inner(),
            cpu: cpu.as_secs_f64() / seconds as f64,
        })
    }

    async fn watch(&self, item: Option<Item>, tally: &Tally, most: &AtomicU64) {
        let Some((role, _, gauge)) = item.map(Item::share) else {
            return std::future::pending().await;
        };
        let mut looks = interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let held = match gauge {
                Gauge::Own(unit) => Ok((tally.held() * unit) as f64),
                Gauge::Queued => self.queued().await,
                Gauge::Metric(name) => self.metric(role, name).await,
            };
            if let Ok(held) = held {
                most.fetch_max(held as u64, Ordering::Relaxed);
            }
        }
    }

    async fn metric(&self, role: Role, name: &str) -> anyhow::Result<f64> {
        let mut sum = 0.0;
        for member in self.of(role) {
            sum += member.admin().metric(name, "").await?;
        }
        Ok(sum)
    }

    async fn queued(&self) -> anyhow::Result<f64> {
        let status = self.cluster.edges()[0].admin().status().await?;
        let pools = status["pools"].as_array().into_iter().flatten();
        let workers = pools.flat_map(|pool| pool["workers"].as_array().into_iter().flatten());
        Ok(workers.filter_map(|worker| worker["queued"].as_f64()).sum())
    }

    fn of(&self, role: Role) -> impl Iterator<Item = &Member> {
        let members = self.cluster.members().iter();
        members.filter(move |member| member.role() == role)
    }
}
