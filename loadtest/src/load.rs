mod arguments;
pub(crate) mod call;
mod churn;
mod listener;
pub(crate) mod mix;
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

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::{StreamExt as _, TryStreamExt as _, stream};
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
use crate::scenario::{Finished, Scenario};
use crate::target::Target;

const OPENING: usize = 128;

const GRACE: Duration = Duration::from_secs(90);

impl Scenario for Load {
    fn json(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    async fn run(&self) -> anyhow::Result<impl Finished> {
        run(self).await
    }
}

async fn run(options: &Load) -> anyhow::Result<Outcome> {
    options.check()?;
    let targets = Target::resolve_all(&options.urls).await?;
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
    };
    let seen = watch.run().await;
    finish(&mut running, options.timeout, &common).await;
    if !listeners.is_empty() && options.mix.kinds().any(|kind| kind == mix::Kind::Update) {
        listener::expect_updates(&listeners, &common, next).await;
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
        findings: &common.tally.findings,
        seen,
        unsent: pacer.as_ref().map_or(0, |pacer| pacer.behind()),
        churn_unsent: churning.as_ref().map_or(0, |pacer| pacer.behind()),
        updates: listener::updates(&listeners),
        memory: memory_before.zip(memory_open),
        opened: at_first,
    };
    Ok(run.into_outcome(outcome))
}

async fn open_all(common: &Common, sessions: usize) -> anyhow::Result<Vec<Caller>> {
    let opening = (0..sessions).rev().map(|number| common.open(number));
    let opened = stream::iter(opening)
        .buffer_unordered(OPENING)
        .try_collect();
    let opened: Result<_, Failure> = opened.await;
    opened.context("could not open a session")
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
        let what = "no answer: clients that did not end with the run";
        common
            .tally
            .findings
            .add(what, format_args!("{left} of them"));
    }
}
