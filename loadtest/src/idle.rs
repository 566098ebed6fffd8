//! All idle streams must survive while other clients call.

pub(crate) mod crowd;
mod memory;
mod processes;
mod result;
mod server;
mod source;
mod summary;
mod verdict;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::Instant;

pub(crate) use memory::NamedProcess;

use crate::cli;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::outcome::Outcome;
use crate::scenario::{Finished, Scenario};
use crate::steady::{Conduct, Steady};
use crate::target::Target;
use crate::times;
use memory::Reading;
use processes::{Crowd, Wanted};
use result::{BareResult, Called, Measured, Sample};
use server::Server;
use summary::Summary;

/// These streams come and go first, so that the result excludes one-time allocations.
const WARM_UP: usize = 200;
const WARM_UP_SETTLE: Duration = Duration::from_secs(2);
const FLOOR_SETTLE: Duration = Duration::from_secs(3);
const READY_WITHIN: Duration = Duration::from_secs(30);
const READY_EVERY: Duration = Duration::from_millis(500);
const WARM_UP_CALLS: Duration = Duration::from_secs(2);
const WARM_UP_RATE: u32 = 200;
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
const SAY_EVERY: usize = 10;
/// Open files besides the connections.
const OTHER_FILES: u64 = 200;

impl Scenario for cli::Idle {
    fn json(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    async fn run(&self) -> anyhow::Result<impl Finished> {
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
        crate::files::raise_limit((self.streams + self.callers) as u64 + OTHER_FILES)
            .context("could not read the limit of open files")?;
        run(self).await
    }
}

async fn run(arguments: &cli::Idle) -> anyhow::Result<Outcome> {
    let mut outcome = result::begin(arguments);
    let floor = match arguments.floor && arguments.streams > 0 {
        true => Some(floor(arguments).await?),
        false => None,
    };
    let server = match &arguments.shoal {
        Some(program) if arguments.cluster => Server::cluster(program, arguments.session_nodes)?,
        Some(program) => Server::shoal(program)?,
        None => Server::elsewhere(
            arguments.urls.clone(),
            arguments.pids.clone(),
            arguments.redis.clone(),
        ),
    };
    warm_up(&server, arguments).await?;
    let before = server.memory()?;
    let began = Instant::now();

    let crowd = Crowd::open(&streams(&server, arguments)).await?;
    let opened = server.memory()?;
    settle(arguments.settle).await;
    let settled = server.memory()?;
    let open = crowd.now().0;
    let held = hold(&server, &crowd, arguments, began).await?;
    let end = server.memory()?;

    let bare = bare(&server, arguments).await?;
    let summary = crowd.close().await?;
    Measured {
        floor_kib: floor,
        before,
        opened,
        settled,
        end,
        open,
        summary,
        calls: held.calls,
        samples: held.samples,
        seconds: began.elapsed().as_secs_f64(),
        bare,
    }
    .write(&mut outcome, arguments, &server);
    Ok(outcome)
}

fn streams(server: &Server, arguments: &cli::Idle) -> Wanted {
    Wanted {
        urls: server.urls.clone(),
        mode: arguments.mode,
        bare: false,
        first: 0,
        count: arguments.streams,
        keep_alive: arguments.keep_alive,
    }
}

async fn floor(arguments: &cli::Idle) -> anyhow::Result<f64> {
    crate::progress("the floor first");
    let server = Server::floor(arguments.streams)?;
    let wanted = Wanted {
        // The floor supports only the GET stream.
        mode: Mode::Legacy,
        ..streams(&server, arguments)
    };
    let few = Wanted {
        count: WARM_UP.min(wanted.count),
        ..wanted.clone()
    };
    come_and_go(&few).await?;
    tokio::time::sleep(FLOOR_SETTLE).await;
    let before = server.memory()?;
    let crowd = Crowd::open(&wanted).await?;
    tokio::time::sleep(FLOOR_SETTLE).await;
    let grown = server
        .memory()?
        .grown_kib(&before, "floor", &server.processes);
    let open = crowd.now().0;
    crowd.close().await?;
    ensure!(open > 0, "the floor holds no stream");
    Ok(grown / open as f64)
}

async fn come_and_go(wanted: &Wanted) -> anyhow::Result<()> {
    let summary = Crowd::open(wanted).await?.close().await?;
    let failed = summary.failed();
    let example = summary.example.unwrap_or_default();
    ensure!(
        failed == 0,
        "{failed} of {} were lost: {example}",
        wanted.count
    );
    Ok(())
}

async fn warm_up(server: &Server, arguments: &cli::Idle) -> anyhow::Result<()> {
    crate::progress("warming up");
    let few = Wanted {
        count: WARM_UP.min(arguments.streams.max(arguments.bare_sessions)),
        bare: arguments.streams == 0,
        ..streams(server, arguments)
    };
    let deadline = Instant::now() + READY_WITHIN;
    while let Err(error) = come_and_go(&few).await {
        if Instant::now() > deadline {
            return Err(error.context("streams fail before anything is measured"));
        }
        tokio::time::sleep(READY_EVERY).await;
    }
    if arguments.rate > 0 {
        let rate = arguments.rate.min(WARM_UP_RATE);
        let (calls, findings) = calls(server, arguments, rate).await?;
        tokio::time::sleep(WARM_UP_CALLS).await;
        calls.stop().await;
        if let Some(found) = findings.violations().first() {
            anyhow::bail!("calls fail before anything is measured: {}", found.example);
        }
    }
    tokio::time::sleep(WARM_UP_SETTLE).await;
    Ok(())
}

async fn settle(time: Duration) {
    crate::progress(&format!("settling for {time:?}"));
    tokio::time::sleep(time).await;
}

async fn calls(
    server: &Server,
    arguments: &cli::Idle,
    rate: u32,
) -> anyhow::Result<(Steady, Arc<Findings>)> {
    let targets = Target::resolve_all(&server.urls).await?;
    let findings = Arc::<Findings>::default();
    let (count, conduct) = (arguments.callers, Conduct::Echo(arguments.mode));
    let calls = Steady::start(count, f64::from(rate), &targets, conduct, &findings).await?;
    Ok((calls, findings))
}

struct Held {
    calls: Option<Called>,
    samples: Vec<Sample>,
}

async fn hold(
    server: &Server,
    crowd: &Crowd,
    arguments: &cli::Idle,
    began: Instant,
) -> anyhow::Result<Held> {
    let calls = match arguments.rate {
        0 => None,
        rate => Some(calls(server, arguments, rate).await?),
    };
    let end = Instant::now() + arguments.hold;
    let mut samples = Vec::new();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        tokio::time::sleep(left.min(SAMPLE_EVERY)).await;
        let (open, lost) = crowd.now();
        if samples.len() % SAY_EVERY == 0 {
            let left = end.saturating_duration_since(Instant::now()).as_secs();
            crate::progress(&format!(
                "holding: {open} streams, {lost} lost, {left} s to go"
            ));
        }
        samples.push(Sample {
            seconds: began.elapsed().as_secs_f64(),
            open,
            memory: server.memory()?,
        });
    }
    let calls = match calls {
        Some((calls, findings)) => {
            let done = calls.stop().await;
            Some(Called {
                latency: times::of(done.iter().map(|done| done.latency())),
                violations: findings.violations(),
            })
        }
        None => None,
    };
    Ok(Held { calls, samples })
}

async fn bare(server: &Server, arguments: &cli::Idle) -> anyhow::Result<Option<BareResult>> {
    if arguments.bare_sessions == 0 {
        return Ok(None);
    }
    let wanted = Wanted {
        bare: true,
        first: arguments.streams,
        count: arguments.bare_sessions,
        ..streams(server, arguments)
    };
    let before: Reading = server.memory()?;
    let crowd = Crowd::open(&wanted).await?;
    settle(arguments.settle).await;
    let after = server.memory()?;
    let open = crowd.now().0;
    let summary: Summary = crowd.close().await?;
    Ok(Some(BareResult {
        before,
        after,
        open,
        summary,
    }))
}
