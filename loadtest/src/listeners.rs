//! Each of many listeners must soon learn of the last change of a constantly changing resource.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use http::HeaderValue;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::cli::duration;
use crate::connection::{Goodbye, Reply};
use crate::failover::timeline::{histogram, quantile};
use crate::failure::Failure;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::mcp::answer::Message;
use crate::mcp::client::Client;
use crate::outcome::{Better, Distribution, Outcome, Verdict};
use crate::process::measure;
use crate::servers::cluster::member::Role;
use crate::servers::cluster::{Cluster, Shape};
use crate::target::Target;

const COUNTER: &str = "demo://counter";

const TOLD_WITHIN: Duration = Duration::from_secs(1);

const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum growth of the edges' memory after the first third of the changes, as a fraction.
const GROWTH: f64 = 0.1;

const OPENING: usize = 64;

const TIMEOUT: Duration = Duration::from_secs(30);

/// The arguments of `loadtest listeners`.
#[derive(Debug, Args)]
pub(crate) struct Listeners {
    /// Shoal binary [default: `shoal` next to this program, if it exists].
    #[arg(long)]
    shoal: Option<PathBuf>,
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
    /// Directory for the logs of the processes [default: none, logs are discarded].
    #[arg(long)]
    logs: Option<PathBuf>,
    /// File for the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

impl Listeners {
    fn shape(&self) -> Shape {
        Shape {
            edges: self.edges,
            logs: self.logs.clone(),
            ..Shape::smallest(&vec![
                ("SHOAL_POOLS__DEMO__BACKEND", "demo".to_owned()),
                // Workers must not refuse changes when they fall behind.
                ("SHOAL_POOLS__DEMO__QUEUE", "100000".to_owned()),
            ])
        }
    }
}

pub(crate) async fn run(options: &Listeners, progress: impl Fn(&str)) -> anyhow::Result<Outcome> {
    ensure!(options.rate > 0.0, "something must change");
    ensure!(options.edges > 0, "there must be an edge to listen at");
    let shoal = crate::servers::spawned::shoal_binary(options.shoal.as_deref())?;
    let mut outcome = Outcome::begin(
        "listeners",
        format!(
            "{} listeners at {} edges, {} changes a second",
            options.listeners, options.edges, options.rate
        ),
    );
    for (name, value) in [
        ("listeners", options.listeners.to_string()),
        ("edges", options.edges.to_string()),
        ("rate", options.rate.to_string()),
        ("duration", format!("{:?}", options.duration)),
    ] {
        outcome.parameters.insert(name.to_owned(), value);
    }
    let cluster = Cluster::start_as(&shoal, None, &options.shape())?;
    let edges: Vec<_> = cluster.of(Role::Edge).collect();
    let pids: Vec<u32> = edges.iter().map(|edge| edge.pid()).collect();
    let mut targets = Vec::new();
    for edge in &edges {
        targets.push(Target::resolve(&edge.url).await?);
    }
    let findings = Arc::new(Findings::default());
    let heard = open_all(&targets, options.listeners, &findings).await?;
    progress(&format!("{} streams are open", heard.len()));

    let changes = Arc::new(Changes {
        target: targets[0].clone(),
        idle: Mutex::default(),
        findings: Arc::clone(&findings),
    });
    let third = options.duration / 3;
    changes.come(options.rate, third).await;
    let before = measure(&pids)?.rss_kib;
    changes.come(options.rate, options.duration - third).await;
    let after = measure(&pids)?.rss_kib;
    // The last change comes alone, so that its time is known.
    let began = Instant::now();
    changes.change().await;
    let done = Instant::now();
    let untold = wait_for(&heard, began).await;
    for target in &targets {
        if let Err(failure) = expect_counter(target, changes.made()).await {
            findings.failed("reading the counter", &failure);
        }
    }
    for _ in 0..untold {
        findings.add("not told of the last change", COUNTER);
    }
    outcome.seconds = options.duration.as_secs_f64();
    outcome.violations = findings.violations();
    let told = Told {
        lags: (heard
            .iter()
            .map(|one| one.last().saturating_duration_since(done)))
        .collect(),
        updates: heard.iter().map(Heard::updates).sum(),
        changes: changes.made(),
        growth: after as f64 / before as f64 - 1.0,
        rss_kib: after,
    };
    told.conclude(&mut outcome, heard.len());
    Ok(outcome)
}

struct Heard {
    state: Arc<Mutex<(u64, Instant)>>,
    reader: JoinHandle<()>,
}

impl Heard {
    fn updates(&self) -> u64 {
        lock(&self.state).0
    }

    fn last(&self) -> Instant {
        lock(&self.state).1
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn open_all(
    targets: &[Target],
    count: usize,
    findings: &Arc<Findings>,
) -> anyhow::Result<Vec<Heard>> {
    let mut opening = JoinSet::new();
    let mut open = Vec::with_capacity(count);
    for number in 0..count {
        if opening.len() == OPENING {
            open.push(joined(opening.join_next().await)?);
        }
        let target = targets[number % targets.len()].clone();
        opening.spawn(listen(target, Arc::clone(findings)));
    }
    while !opening.is_empty() {
        open.push(joined(opening.join_next().await)?);
    }
    Ok(open)
}

fn joined(
    opened: Option<Result<Result<Heard, Failure>, tokio::task::JoinError>>,
) -> anyhow::Result<Heard> {
    let opened = opened.context("nothing was opened")?;
    opened?.map_err(|failure| anyhow::anyhow!("could not open a stream: {failure}"))
}

async fn listen(target: Target, findings: Arc<Findings>) -> Result<Heard, Failure> {
    let mut client = Client::open(&target, Mode::Modern, Goodbye::Finish).await?;
    let id = client.next_id();
    let wanted = format!(r#""notifications":{{"resourceSubscriptions":["{COUNTER}"]}}"#);
    let opening = client.start(id, "subscriptions/listen", None, &wanted);
    let late = |_| Failure::Transport("opening took too long".to_owned());
    let mut reply = timeout(TIMEOUT, opening).await.map_err(late)??;
    let first = timeout(TIMEOUT, reply.next()).await.map_err(late)??;
    let first = first.map(|event| event.data).unwrap_or_default();
    if Message::parse(&first)?.method.as_deref() != Some("notifications/subscriptions/acknowledged")
    {
        let what = format!("a subscription was not acknowledged but told {first}");
        return Err(Failure::Wrong(what));
    }
    let state = Arc::new(Mutex::new((0, Instant::now())));
    let heard = Arc::clone(&state);
    let reader = tokio::spawn(async move {
        let _client = client;
        match read(reply, &heard).await {
            Ok(()) => findings.add("a stream ended", "the server ended it"),
            Err(failure) => findings.failed("a listener's stream", &failure),
        }
    });
    Ok(Heard { state, reader })
}

async fn read(mut reply: Reply, heard: &Mutex<(u64, Instant)>) -> Result<(), Failure> {
    while let Some(event) = reply.next().await? {
        if event.data.is_empty() {
            continue;
        }
        match Message::parse(&event.data)?.method.as_deref() {
            Some("notifications/resources/updated") => {
                let mut heard = lock(heard);
                *heard = (heard.0 + 1, Instant::now());
            }
            _ => {
                let what = format!("{} does not belong on a listener's stream", event.data);
                return Err(Failure::Wrong(what));
            }
        }
    }
    Ok(())
}

async fn wait_for(heard: &[Heard], began: Instant) -> usize {
    let until = Instant::now() + PATIENCE;
    loop {
        let untold = heard.iter().filter(|one| one.last() < began).count();
        if untold == 0 || Instant::now() > until {
            return untold;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

async fn expect_counter(target: &Target, value: u64) -> Result<(), Failure> {
    let mut client = Client::open(target, Mode::Modern, Goodbye::Finish).await?;
    let params = format!(r#""uri":"{COUNTER}""#);
    let name = HeaderValue::from_static(COUNTER);
    let told = format!(r#"{{\"value\":{value}}}"#);
    let check = |result: &str| match result.contains(&told) {
        true => Ok(()),
        false => Err(Failure::Wrong(format!(
            "the counter is not {value} but {result}"
        ))),
    };
    (client.request("resources/read", Some(&name), &params, check)).await
}

struct Changes {
    target: Target,
    idle: Mutex<(u64, Vec<Client>)>,
    findings: Arc<Findings>,
}

impl Changes {
    async fn come(self: &Arc<Self>, rate: f64, time: Duration) {
        let every = Duration::from_secs_f64(1.0 / rate);
        let (mut calls, mut due) = (JoinSet::new(), Instant::now());
        let end = due + time;
        while due < end {
            sleep_until(due).await;
            let changes = Arc::clone(self);
            calls.spawn(async move { changes.change().await });
            while calls.try_join_next().is_some() {}
            due += every;
        }
        while calls.join_next().await.is_some() {}
    }

    async fn change(&self) {
        let idle = lock(&self.idle).1.pop();
        let opened = match idle {
            Some(client) => Ok(client),
            None => Client::open(&self.target, Mode::Modern, Goodbye::Reset).await,
        };
        let mut client = match opened {
            Ok(client) => client,
            Err(failure) => return self.findings.failed("connecting", &failure),
        };
        let name = HeaderValue::from_static("increment_counter");
        let params = r#""name":"increment_counter","arguments":{}"#;
        let calling = client.request("tools/call", Some(&name), params, |_| Ok(()));
        match timeout(TIMEOUT, calling).await {
            Ok(Ok(())) => {
                let mut idle = lock(&self.idle);
                idle.0 += 1;
                idle.1.push(client);
            }
            Ok(Err(failure)) => self.findings.failed("a change", &failure),
            Err(_) => self.findings.add("no answer", "a change took too long"),
        }
    }

    fn made(&self) -> u64 {
        lock(&self.idle).0
    }
}

struct Told {
    lags: Vec<Duration>,
    updates: u64,
    changes: u64,
    growth: f64,
    rss_kib: u64,
}

impl Told {
    fn conclude(self, outcome: &mut Outcome, listeners: usize) {
        let lags = histogram(self.lags);
        let p99 = quantile(&lags, 0.99);
        outcome
            .latencies
            .push(Distribution::of("told of the last change", &lags));
        let each = self.updates as f64 / listeners.max(1) as f64;
        for (what, value, unit) in [
            ("changes", self.changes as f64, ""),
            (
                "changes a second",
                self.changes as f64 / outcome.seconds,
                "/s",
            ),
            ("updates a listener", each, ""),
            (
                "updates a second",
                self.updates as f64 / outcome.seconds,
                "/s",
            ),
            ("memory of the edges", self.rss_kib as f64 / 1024.0, "MiB"),
        ] {
            outcome.figure(what, value, unit, Better::Neither);
        }
        for (what, held) in [
            (
                format!("p99 of the last change {p99:.1?}: at most {TOLD_WITHIN:?}"),
                p99 <= TOLD_WITHIN,
            ),
            (
                format!(
                    "the edges grew by {:.1} % under changes: at most {:.0} %",
                    self.growth * 100.0,
                    GROWTH * 100.0
                ),
                self.growth <= GROWTH,
            ),
        ] {
            outcome.verdicts.push(Verdict {
                what,
                held: Some(held),
            });
        }
    }
}

fn lock<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
