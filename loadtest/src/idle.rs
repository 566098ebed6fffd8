//! All idle streams must survive while other clients call.

mod calls;
pub(crate) mod crowd;
mod memory;
mod processes;
mod result;
mod server;
mod source;
mod summary;
mod verdict;

use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::Instant;

pub(crate) use memory::NamedProcess;

use crate::cli;
use crate::mcp::Mode;
use calls::{Calls, Counted};
use memory::Reading;
use processes::{Crowd, Wanted};
use result::{BareResult, Measured, Sample};
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

pub(crate) fn execute(arguments: cli::Idle) -> anyhow::Result<bool> {
    ensure!(
        arguments.streams + arguments.bare_sessions > 0,
        "there is nothing to open: give --streams or --bare-sessions"
    );
    ensure!(
        arguments.bare_sessions == 0 || arguments.mode == Mode::Legacy,
        "--bare-sessions are of the legacy era: the modern one has no sessions"
    );
    ensure!(
        arguments.rate == 0 || arguments.callers > 0,
        "--rate needs at least one of --callers"
    );
    // Before servers start, because they inherit the limit.
    crate::files::raise_limit((arguments.streams + arguments.callers) as u64 + OTHER_FILES)
        .context("could not read the limit of open files")?;
    let json = arguments.json.clone();
    let outcome = crate::runtime(None)?.block_on(run(arguments, &crate::progress))?;
    crate::say(&outcome);
    if let Some(path) = &json {
        crate::report::write_json(path, &outcome)?;
    }
    Ok(outcome.is_correct())
}

async fn run(
    arguments: cli::Idle,
    progress: &impl Fn(&str),
) -> anyhow::Result<crate::outcome::Outcome> {
    let mut outcome = result::begin(&arguments);
    let floor = match arguments.floor && arguments.streams > 0 {
        true => Some(floor(&arguments, progress).await?),
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
    warm_up(&server, &arguments, progress).await?;
    let before = server.memory()?;
    let began = Instant::now();

    let crowd = Crowd::open(&streams(&server, &arguments), progress).await?;
    let opened = server.memory()?;
    settle(arguments.settle, progress).await;
    let settled = server.memory()?;
    let open = crowd.now().0;
    let held = hold(&server, &crowd, &arguments, began, progress).await?;
    let end = server.memory()?;

    let bare = bare(&server, &arguments, progress).await?;
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
    .write(&mut outcome, &arguments, &server);
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

async fn floor(arguments: &cli::Idle, progress: &impl Fn(&str)) -> anyhow::Result<f64> {
    progress("the floor first");
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
    come_and_go(&few, progress).await?;
    tokio::time::sleep(FLOOR_SETTLE).await;
    let before = server.memory()?;
    let crowd = Crowd::open(&wanted, progress).await?;
    tokio::time::sleep(FLOOR_SETTLE).await;
    let grown = server
        .memory()?
        .grown_kib(&before, "floor", &server.processes);
    let open = crowd.now().0;
    crowd.close().await?;
    ensure!(open > 0, "the floor holds no stream");
    Ok(grown / open as f64)
}

async fn come_and_go(wanted: &Wanted, progress: &impl Fn(&str)) -> anyhow::Result<()> {
    let summary = Crowd::open(wanted, progress).await?.close().await?;
    let failed = summary.failed();
    let example = summary.example.unwrap_or_default();
    ensure!(
        failed == 0,
        "{failed} of {} were lost: {example}",
        wanted.count
    );
    Ok(())
}

async fn warm_up(
    server: &Server,
    arguments: &cli::Idle,
    progress: &impl Fn(&str),
) -> anyhow::Result<()> {
    progress("warming up");
    let few = Wanted {
        count: WARM_UP.min(arguments.streams.max(arguments.bare_sessions)),
        bare: arguments.streams == 0,
        ..streams(server, arguments)
    };
    let deadline = Instant::now() + READY_WITHIN;
    while let Err(error) = come_and_go(&few, progress).await {
        if Instant::now() > deadline {
            return Err(error.context("streams fail before anything is measured"));
        }
        tokio::time::sleep(READY_EVERY).await;
    }
    if arguments.rate > 0 {
        let rate = arguments.rate.min(WARM_UP_RATE);
        let calls = Calls::start(&server.urls, arguments.mode, arguments.callers, rate).await?;
        tokio::time::sleep(WARM_UP_CALLS).await;
        let counted = calls.stop().await;
        if let Some(example) = counted.example {
            anyhow::bail!("calls fail before anything is measured: {example}");
        }
    }
    tokio::time::sleep(WARM_UP_SETTLE).await;
    Ok(())
}

async fn settle(time: Duration, progress: &impl Fn(&str)) {
    progress(&format!("settling for {time:?}"));
    tokio::time::sleep(time).await;
}

struct Held {
    calls: Option<Counted>,
    samples: Vec<Sample>,
}

async fn hold(
    server: &Server,
    crowd: &Crowd,
    arguments: &cli::Idle,
    began: Instant,
    progress: &impl Fn(&str),
) -> anyhow::Result<Held> {
    let calls = match arguments.rate {
        0 => None,
        rate => {
            let calls = Calls::start(&server.urls, arguments.mode, arguments.callers, rate);
            Some(calls.await?)
        }
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
            progress(&format!(
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
        Some(calls) => Some(calls.stop().await),
        None => None,
    };
    Ok(Held { calls, samples })
}

async fn bare(
    server: &Server,
    arguments: &cli::Idle,
    progress: &impl Fn(&str),
) -> anyhow::Result<Option<BareResult>> {
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
    let crowd = Crowd::open(&wanted, progress).await?;
    settle(arguments.settle, progress).await;
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
