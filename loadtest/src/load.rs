mod arguments;
mod call;
mod churn;
mod listener;
mod mix;
mod pacer;
mod probe;
mod ramp;
mod session;
mod slow;
mod stage;
mod summary;
mod tally;
mod usage;
mod watch;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::task::JoinSet;

pub(crate) use arguments::Load;
use call::Caller;
use churn::Churn;
use listener::Listener;
use pacer::Pacer;
use session::{Common, Session};
use slow::SlowReader;
use stage::Stages;
use tally::Tally;
use usage::Servers;
use watch::Watch;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::target::Target;

const OPENING: usize = 128;

const GRACE: Duration = Duration::from_secs(90);

/// Failures during the run are part of the outcome.
pub(crate) async fn run(options: &Load, progress: impl Fn(&str)) -> anyhow::Result<Outcome> {
    options.check()?;
    let mut targets = Vec::with_capacity(options.urls.len());
    for url in &options.urls {
        targets.push(Target::resolve(url).await?);
    }
    let servers = Servers::of(&options.pids)?;
    // The number of stages is known before the sessions are open.
    let shape = options.shape();
    let stage_count = shape.stages(Instant::now()).all.len();
    let common = Arc::new(Common {
        targets,
        mode: options.mode,
        mix: options.mix.clone(),
        echo: options.echo(),
        timeout: options.timeout,
        seed: options.seed,
        tally: Tally::new(options.mix.kinds().len(), stage_count),
    });
    probe::check(&common, &options.more_kinds()).await?;

    let outcome = Outcome::begin("load", summary::title(options));
    let memory_before = servers.read();
    let most = options.sessions.most().round() as usize;
    let at_first = options.sessions.at(0, 2).round() as usize;
    let mut callers = open_all(&common, at_first).await?;
    let memory_open = servers.read();
    let mut listeners = Vec::with_capacity(options.listeners);
    for number in 0..options.listeners {
        let opened = Listener::open(Arc::clone(&common), most + number).await;
        listeners.push(opened.with_context(|| format!("could not open listener {number}"))?);
    }

    let stages = Arc::new(shape.stages(Instant::now()));
    let pacer = options.rate.is_some().then(|| {
        Pacer::start(&stages, |index| {
            stages.all[index].rate.expect("an open loop has rates")
        })
    });
    let mut running = JoinSet::new();
    for number in 0..most {
        let session = Session {
            number,
            common: Arc::clone(&common),
            caller: callers.pop(),
            stages: Arc::clone(&stages),
            pacer: pacer.clone(),
        };
        running.spawn(session.run());
    }
    let mut next = most + options.listeners;
    for _ in 0..options.slow_readers {
        running.spawn(slow_reader(next, &common, &stages).run());
        next += 1;
    }
    let churning = options
        .churn
        .map(|rate| Pacer::start(&stages, |_| rate.most()));
    if let Some(pacer) = &churning {
        spawn_churn(&mut running, options, &common, &stages, pacer, next);
    }

    let watch = Watch {
        tally: &common.tally,
        stages: &stages,
        pacer: pacer.as_deref(),
        servers: &servers,
        progress: &progress,
    };
    let seen = watch.run().await;
    finish(&mut running, options.timeout, &common).await;
    if options.mix.kinds().any(|kind| kind == mix::Kind::Update) {
        listener::expect_updates(&listeners, &common).await;
    }
    let end = stages.end();
    for due in pacer.iter().flat_map(|pacer| pacer.unsent()) {
        if let Some(stage) = stages.at(due) {
            common
                .tally
                .unsent(stage, end.saturating_duration_since(due));
        }
    }
    let run = summary::Run {
        options,
        stages: &stages,
        counts: &common.tally.counts(),
        seen,
        unsent: pacer.as_ref().map_or(0, |pacer| pacer.behind()),
        churn_unsent: churning.as_ref().map_or(0, |pacer| pacer.behind()),
        updates: listener::updates(&listeners),
        memory: memory_before.zip(memory_open),
        opened: at_first,
    };
    Ok(run.into_outcome(outcome))
}

async fn open_all(common: &Arc<Common>, sessions: usize) -> anyhow::Result<Vec<Caller>> {
    let mut opening: JoinSet<Result<Caller, Failure>> = JoinSet::new();
    let mut opened = Vec::with_capacity(sessions);
    for number in (0..sessions).rev() {
        if opening.len() >= OPENING
            && let Some(one) = opening.join_next().await
        {
            opened.push(one?.context("could not open a session")?);
        }
        let common = Arc::clone(common);
        opening.spawn(async move { common.open(number).await });
    }
    while let Some(one) = opening.join_next().await {
        opened.push(one?.context("could not open a session")?);
    }
    Ok(opened)
}

fn slow_reader(number: usize, common: &Arc<Common>, stages: &Stages) -> SlowReader {
    SlowReader {
        number,
        common: Arc::clone(common),
        from: stages.starts(stages.all.len() - 1),
        until: stages.end(),
    }
}

fn spawn_churn(
    running: &mut JoinSet<()>,
    options: &Load,
    common: &Arc<Common>,
    stages: &Arc<Stages>,
    pacer: &Arc<Pacer>,
    first: usize,
) {
    let next = Arc::new(AtomicUsize::new(first));
    for _ in 0..churn::WORKERS {
        let churn = Churn {
            common: Arc::clone(common),
            pacer: Arc::clone(pacer),
            stages: Arc::clone(stages),
            next: Arc::clone(&next),
            calls: options.churn_calls,
        };
        running.spawn(churn.run());
    }
}

async fn finish(running: &mut JoinSet<()>, timeout: Duration, common: &Common) {
    let ending = async { while running.join_next().await.is_some() {} };
    if tokio::time::timeout(timeout + GRACE, ending).await.is_err() {
        let left = running.len();
        running.abort_all();
        let what = "no answer: clients that did not end with the run".to_owned();
        common.tally.fault(what, format!("{left} of them"));
    }
}
