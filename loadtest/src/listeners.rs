//! Each of many listeners must soon learn of the last change of a constantly changing resource.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::{Instant, timeout};

use crate::arrivals::{self, Pool};
use crate::cli::duration;
use crate::connection::Goodbye;
use crate::engine::call::Caller;
use crate::failure::Failure;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::mcp::listener::{Listener, untold};
use crate::mcp::tools::{COUNTER, increment};
use crate::outcome::Outcome;
use crate::process::measure;
use crate::scenario::Subject;
use crate::servers;
use crate::target::Target;
use crate::times;

const TOLD_WITHIN: Duration = Duration::from_secs(1);

const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum growth of the edges' memory after the first third of the changes, as a fraction.
const GROWTH: f64 = 0.1;

const OPENING: usize = 64;

const TIMEOUT: Duration = Duration::from_secs(30);

/// The arguments of `loadtest listeners`.
#[derive(Debug, Args)]
pub(crate) struct Listeners {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Number of clients that listen (`subscriptions/listen`).
    #[arg(long, default_value_t = 2_000)]
    listeners: usize,
    /// Number of edges.
    #[arg(long, default_value_t = 3)]
    edges: usize,
    /// Changes a second.
    #[arg(long, default_value_t = 1_000.0)]
    rate: f64,
    /// Time during which the resource changes.
    #[arg(long, default_value = "30s", value_parser = duration)]
    duration: Duration,
}

impl Listeners {
    pub(crate) async fn run(&self) -> anyhow::Result<Outcome> {
        ensure!(self.rate > 0.0, "something must change");
        ensure!(self.edges > 0, "there must be an edge to listen at");
        let Self {
            listeners,
            edges,
            rate,
            ..
        } = self;
        let title = format!("{listeners} listeners at {edges} edges, {rate} changes a second");
        let mut outcome = Outcome::begin("listeners", title);
        let builder = self.subject.cluster()?.edges(self.edges);
        // Workers must not refuse changes when they fall behind.
        let cluster = builder
            .setting("pools.demo.queue", "100000")
            .start()
            .await?;
        let pids: Vec<u32> = cluster.edges().iter().map(|edge| edge.pid()).collect();
        let targets = servers::targets(&cluster).await?;
        let findings = Arc::new(Findings::default());
        let opening = (0..self.listeners).zip(targets.iter().cycle());
        let opening = opening.map(|(_, target)| listen(target.clone(), Arc::clone(&findings)));
        let opened = stream::iter(opening)
            .buffer_unordered(OPENING)
            .try_collect();
        let heard: Vec<Listener> = opened.await.context("could not open a stream")?;
        crate::progress(&format!("{} streams are open", heard.len()));

        let pool = Pool::new(targets[0].clone(), Mode::Modern);
        let third = self.duration / 3;
        let mut made = change(&pool, self.rate, third, &findings).await;
        let before = measure(&pids)?.rss_kib;
        made += change(&pool, self.rate, self.duration - third, &findings).await;
        let after = measure(&pids)?.rss_kib;
        // Makes the last change alone, so that its time is known.
        let began = Instant::now();
        match pool
            .call(async |caller: &mut Caller| increment(&mut caller.client).await)
            .await
        {
            Ok(()) => made += 1,
            Err(failure) => findings.failed("a change", &failure),
        }
        let done = Instant::now();
        let untold = untold(&heard, began, PATIENCE).await;
        for target in &targets {
            if let Err(failure) = expect_counter(target, made).await {
                findings.failed("reading the counter", &failure);
            }
        }
        for _ in 0..untold {
            findings.add("not told of the last change", COUNTER);
        }
        outcome.seconds = self.duration.as_secs_f64();
        outcome.violations = findings.violations();
        let lags = heard
            .iter()
            .map(|one| one.last().saturating_duration_since(done));
        let lags = times::of(lags);
        let p99 = times::quantile(&lags, 0.99);
        outcome.latency("told of the last change", &lags);
        let made = made as f64;
        let updates = heard.iter().map(Listener::updates).sum::<u64>() as f64;
        outcome.plain("changes", made, "");
        outcome.plain("changes a second", made / outcome.seconds, "/s");
        outcome.plain(
            "updates a listener",
            updates / heard.len().max(1) as f64,
            "",
        );
        outcome.plain("updates a second", updates / outcome.seconds, "/s");
        outcome.plain("memory of the edges", after as f64 / 1024.0, "MiB");
        let what = format!("p99 of the last change {p99:.1?}: at most {TOLD_WITHIN:?}");
        outcome.verdict(what, p99 <= TOLD_WITHIN);
        let growth = after as f64 / before as f64 - 1.0;
        let (percent, most) = (growth * 100.0, GROWTH * 100.0);
        let what = format!("the edges grew by {percent:.1} % under changes: at most {most:.0} %");
        outcome.verdict(what, growth <= GROWTH);
        Ok(outcome)
    }
}

async fn listen(target: Target, findings: Arc<Findings>) -> Result<Listener, Failure> {
    let client = Client::open(&target, Mode::Modern, Goodbye::Finish).await?;
    let ended = move |failure| findings.failed("a listener's stream", &failure);
    let late = |_| Failure::Transport("opening took too long".to_owned());
    let opening = Listener::open(client, true, ended);
    timeout(TIMEOUT, opening).await.map_err(late).flatten()
}

async fn expect_counter(target: &Target, value: u64) -> Result<(), Failure> {
    let mut client = Client::open(target, Mode::Modern, Goodbye::Finish).await?;
    let params = format!(r#""uri":"{COUNTER}""#);
    let told = format!(r#"{{\"value\":{value}}}"#);
    let check = |result: &str| match result.contains(&told) {
        true => Ok(()),
        false => Err(Failure::Wrong(format!(
            "the counter is not {value} but {result}"
        ))),
    };
    (client.request("resources/read", COUNTER, &params, check)).await
}

/// Changes the resource `rate` times a second, and returns how often this succeeded.
async fn change(pool: &Arc<Pool>, rate: f64, time: Duration, findings: &Findings) -> u64 {
    let change = |_| {
        let pool = Arc::clone(pool);
        async move {
            pool.call(async |caller: &mut Caller| increment(&mut caller.client).await)
                .await
        }
    };
    let ended = arrivals::spread(rate, time, change).await;
    arrivals::answered(ended, "a change", findings).len() as u64
}
