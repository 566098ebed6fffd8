//! All idle streams must survive while other clients call.

mod crowd;

use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::{Instant, interval, sleep};

use self::crowd::{Crowd, Seen, Wanted};
use crate::arrivals::{self, Done, Pool, answered};
use crate::cli;
use crate::engine::mix::Kind;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::memory::{Memory, Reading};
use crate::outcome::Outcome;
use crate::servers::{self, Running, cluster, one_process};
use crate::target::Target;
use crate::times;

/// These streams come and go first, so that the result excludes one-time allocations.
const WARM_UP: usize = 200;
const WARM_UP_TIME: Duration = Duration::from_secs(2);
const WARM_UP_RATE: u32 = 200;
const FLOOR_SETTLE: Duration = Duration::from_secs(3);
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
const SAY_EVERY: u64 = 10;
/// Open files besides the connections.
const OTHER_FILES: u64 = 200;
const EDGES: usize = 2;

/// Bare axum's memory per stream with hyper's default buffers. A higher measured floor replaces
/// this limit.
const EDGE_KIB: f64 = 18.6;
const SESSION_KIB: f64 = 1.5;
const REDIS_KIB: f64 = 1.0;
/// Up to this much, a session counts as costing nothing.
const NOTHING_KIB: f64 = 0.1;
/// With fewer streams, the allocator's pages dominate.
const ENOUGH: usize = 2_000;

impl cli::Idle {
    pub(crate) async fn run(&self) -> anyhow::Result<Outcome> {
        ensure!(
            self.streams + self.bare_sessions > 0,
            "there is nothing to open: give --streams or --bare-sessions"
        );
        ensure!(
            self.bare_sessions == 0 || self.mode == Mode::Legacy,
            "--bare-sessions are of the legacy era: the modern one has no sessions"
        );
        ensure!(
            self.rate == 0 || self.callers > 0,
            "--rate needs at least one of --callers"
        );
        // Raises the limit before servers start, because they inherit it.
        let files = (self.streams + self.callers) as u64 + OTHER_FILES;
        let limit = crate::files::raise_limit(files);
        let limit = limit.context("could not read the limit of open files")?;
        ensure!(
            limit >= files,
            "this process may open {limit} files and needs {files}: raise the limit (`ulimit -n`)"
        );
        let mut outcome = begin(self);
        let floor = match self.floor && self.streams > 0 {
            true => Some(floor(self).await?),
            false => None,
        };
        if let Some(floor) = floor {
            outcome.plain("floor: resident memory a stream", floor, "KiB");
        }
        let server = Server::start(self).await?;
        warm_up(&server, self).await?;
        let began = Instant::now();
        let grown = Grown::open(&server, &server.streams(self), self.settle).await?;
        let open = grown.crowd.now().open;
        outcome.higher("streams open when settled", open as f64, "");
        for (when, reading) in [("before", &grown.before), ("settled", &grown.settled)] {
            for (name, kib) in reading {
                outcome.lower(format!("{name} {when}"), *kib, "KiB");
            }
        }
        if self.streams > 0 {
            judge_streams(&mut outcome, &grown, floor);
        }
        hold(self, &server, &grown.crowd, began, &mut outcome).await?;
        let bare = Wanted {
            bare: true,
            first: self.streams,
            count: self.bare_sessions,
            ..server.streams(self)
        };
        let mut seen = vec![grown.crowd.now()];
        if bare.count > 0 {
            let grown = Grown::open(&server, &bare, self.settle).await?;
            judge_bare(&mut outcome, &grown);
            seen.push(grown.crowd.now());
        }
        outcome.seconds = began.elapsed().as_secs_f64();
        for Seen {
            refused,
            dropped,
            missed,
            example,
            ..
        } in seen
        {
            let example = example.as_deref().unwrap_or("no keep-alive in time");
            let what = "streams or sessions that could not be opened";
            outcome.violation(what, refused, example);
            outcome.violation("streams that were dropped", dropped, example);
            outcome.violation("keep-alives missed", missed, example);
        }
        Ok(outcome)
    }
}

fn begin(arguments: &cli::Idle) -> Outcome {
    let nodes = arguments.session_nodes;
    let whom = match &arguments.shoal {
        Some(_) if arguments.cluster => format!("Shoal with two edges and {nodes} session nodes"),
        Some(_) => "Shoal in one process".to_owned(),
        None => arguments.urls.join(", "),
    };
    let era = arguments.mode.name();
    let title = format!("{} idle {era} streams of {whom}", arguments.streams);
    Outcome::begin("idle", title)
}

struct Server {
    targets: Vec<Target>,
    memory: Memory,
    _started: Option<Running>,
}

impl Server {
    async fn start(arguments: &cli::Idle) -> anyhow::Result<Self> {
        let Some(shoal) = &arguments.shoal else {
            return Ok(Self {
                targets: Target::resolve_all(&arguments.urls).await?,
                memory: Memory {
                    processes: arguments.pids.clone(),
                    redis: arguments.redis.clone(),
                },
                _started: None,
            });
        };
        if !arguments.cluster {
            return Self::of("shoal", Running::shoal(one_process(shoal, None)).await?).await;
        }
        let builder = cluster(shoal, None).edges(EDGES);
        let started = Running::shoal(builder.sessions(arguments.session_nodes)).await?;
        let cluster = started.cluster().context("no cluster")?;
        Ok(Self {
            targets: servers::targets(cluster).await?,
            memory: Memory::of(cluster),
            _started: Some(started),
        })
    }

    async fn of(name: &str, started: Running) -> anyhow::Result<Self> {
        Ok(Self {
            targets: vec![Target::resolve(&started.url).await?],
            memory: Memory {
                processes: vec![(name.to_owned(), started.pids[0])],
                redis: None,
            },
            _started: Some(started),
        })
    }

    fn streams(&self, arguments: &cli::Idle) -> Wanted {
        Wanted {
            targets: self.targets.clone(),
            mode: arguments.mode,
            bare: false,
            first: 0,
            count: arguments.streams,
            keep_alive: arguments.keep_alive,
        }
    }
}

/// A crowd, and the memory before it came and when it had settled.
struct Grown {
    crowd: Crowd,
    before: Reading,
    settled: Reading,
}

impl Grown {
    async fn open(server: &Server, wanted: &Wanted, settle: Duration) -> anyhow::Result<Self> {
        let before = server.memory.read().await?;
        let crowd = Crowd::open(wanted).await?;
        crate::progress(&format!("settling for {settle:?}"));
        sleep(settle).await;
        Ok(Self {
            crowd,
            before,
            settled: server.memory.read().await?,
        })
    }

    /// Returns the KiB for each of the crowd. Processes whose names differ only in a number count together.
    fn kib_each(&self) -> Vec<(String, f64)> {
        let mut kinds = Vec::<(String, f64)>::new();
        for (name, kib) in &self.settled {
            let each = (kib - self.before[name]) / self.crowd.now().open.max(1) as f64;
            let kind = kind(name);
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, sum)) => *sum += each,
                None => kinds.push((kind, each)),
            }
        }
        kinds
    }
}

/// `edge: resident memory` for `edge-2: resident memory`.
fn kind(name: &str) -> String {
    let (process, what) = name.split_once(": ").unwrap_or((name, ""));
    let kind = match process.rsplit_once('-') {
        Some((kind, number)) if number.parse::<u32>().is_ok() => kind,
        _ => process,
    };
    format!("{kind}: {what}")
}

fn judge_streams(outcome: &mut Outcome, grown: &Grown, floor: Option<f64>) {
    let edge = floor.map_or(EDGE_KIB, |floor| floor.max(EDGE_KIB));
    let floor = floor.map_or(String::new(), |floor| format!(", floor {floor:.1} KiB"));
    for (kind, kib) in grown.kib_each() {
        outcome.lower(format!("{kind} a stream"), kib, "KiB");
        let kind = kind.trim_end_matches(": resident memory");
        let (most, of_what) = match kind {
            "session" => (SESSION_KIB, "a session node"),
            "edge" => (edge, "an edge"),
            "worker" | "redis" | "redis: used memory" => continue,
            _ => (edge + SESSION_KIB, "an edge and a session node together"),
        };
        let what = format!("{kind} {kib:.2} KiB a stream: {of_what} at most {most:.1} KiB{floor}");
        let enough = grown.crowd.now().open >= ENOUGH;
        outcome.verdict(what, enough.then_some(kib <= most));
    }
}

fn judge_bare(outcome: &mut Outcome, grown: &Grown) {
    for (kind, kib) in grown.kib_each() {
        outcome.lower(format!("{kind} a session without a stream"), kib, "KiB");
        let (most, name) = match kind.as_str() {
            "session: resident memory" => (NOTHING_KIB, "nothing"),
            "redis: used memory" => (REDIS_KIB, "at most 1 KiB"),
            _ => continue,
        };
        let what = format!("{kind} {kib:.2} KiB a session without a stream: {name}");
        let enough = grown.crowd.now().open >= ENOUGH;
        outcome.verdict(what, enough.then_some(kib <= most));
    }
}

async fn floor(arguments: &cli::Idle) -> anyhow::Result<f64> {
    crate::progress("the floor first");
    let started = Running::own(&["serve-floor"], None).await?;
    let server = Server::of("floor", started).await?;
    let wanted = Wanted {
        // The floor supports only the GET stream.
        mode: Mode::Legacy,
        ..server.streams(arguments)
    };
    come_and_go(&wanted).await?;
    sleep(FLOOR_SETTLE).await;
    let grown = Grown::open(&server, &wanted, FLOOR_SETTLE).await?;
    let kib = grown.kib_each();
    ensure!(grown.crowd.now().open > 0, "the floor holds no stream");
    Ok(kib[0].1)
}

async fn come_and_go(wanted: &Wanted) -> anyhow::Result<()> {
    let few = Wanted {
        count: WARM_UP.min(wanted.count),
        ..wanted.clone()
    };
    let seen = Crowd::open(&few).await?.now();
    let (lost, example) = (seen.lost(), seen.example.unwrap_or_default());
    ensure!(lost == 0, "{lost} of {} were lost: {example}", few.count);
    Ok(())
}

async fn warm_up(server: &Server, arguments: &cli::Idle) -> anyhow::Result<()> {
    crate::progress("warming up");
    let few = Wanted {
        count: arguments.streams.max(arguments.bare_sessions),
        bare: arguments.streams == 0,
        ..server.streams(arguments)
    };
    let came = come_and_go(&few).await;
    came.context("streams fail before anything is measured")?;
    let findings = Findings::default();
    let rate = arguments.rate.min(WARM_UP_RATE);
    calls(server, arguments, rate, WARM_UP_TIME, &findings).await?;
    if let Some(found) = findings.violations().first() {
        anyhow::bail!("calls fail before anything is measured: {}", found.example);
    }
    sleep(WARM_UP_TIME).await;
    Ok(())
}

/// Returns the calls that were answered rightly.
async fn calls(
    server: &Server,
    arguments: &cli::Idle,
    rate: u32,
    time: Duration,
    findings: &Findings,
) -> anyhow::Result<Vec<Done>> {
    if rate == 0 {
        sleep(time).await;
        return Ok(Vec::new());
    }
    let mut turns = Vec::new();
    for target in &server.targets {
        let count = arguments.callers.div_ceil(server.targets.len());
        let pool = Pool::of(count, target.clone(), arguments.mode).await;
        turns.push((
            pool.context("could not open a session for calls")?,
            Kind::Echo,
        ));
    }
    let done = arrivals::calls(&turns, f64::from(rate), time, None).await;
    Ok(answered(done, "a call", findings))
}

/// Holds the streams while other clients call.
async fn hold(
    arguments: &cli::Idle,
    server: &Server,
    crowd: &Crowd,
    began: Instant,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let findings = Findings::default();
    let calling = calls(server, arguments, arguments.rate, arguments.hold, &findings);
    let end = Instant::now() + arguments.hold;
    let holding = async {
        let mut ticks = interval(SAMPLE_EVERY);
        for tick in 0_u64.. {
            ticks.tick().await;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let (seen, seconds) = (crowd.now(), began.elapsed().as_secs_f64());
            if tick.is_multiple_of(SAY_EVERY) {
                let (open, lost, left) = (seen.open, seen.lost(), left.as_secs());
                crate::progress(&format!(
                    "holding: {open} streams, {lost} lost, {left} s to go"
                ));
            }
            outcome.point("open streams", "", (seconds, seen.open as f64));
            server.memory.sample(seconds, outcome).await?;
        }
        anyhow::Ok(())
    };
    let (done, held) = tokio::join!(calling, holding);
    let (done, ()) = (done?, held?);
    let latency = times::of(done.iter().map(Done::latency));
    let rate = latency.len() as f64 / arguments.hold.as_secs_f64();
    outcome.higher("calls answered rightly", rate, "1/s");
    outcome.latency("echo calls meanwhile, from when each was due", &latency);
    outcome.violations.extend(findings.violations());
    Ok(())
}
