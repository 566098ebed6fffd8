use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::Failover;
use super::steady::Steady;
use super::timeline::{histogram, quantile, show};
use crate::connection::Goodbye;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::mcp::tools::{Job, Journey, long_job};
use crate::outcome::{Better, Distribution, Outcome, Verdict};
use crate::servers::cluster::Cluster;
use crate::servers::cluster::member::Role;
use crate::target::Target;

/// Limit for the p99 of a call's pause: clients need not wait until a dead process's lease ends.
const PAUSE: Duration = Duration::from_millis(300);

const OPENING: usize = 50;

const EXECUTIONS: &str = "mcp_client_operation_duration_seconds_count";

pub(super) async fn run(options: &Failover, progress: impl Fn(&str)) -> anyhow::Result<Outcome> {
    ensure!(
        options.session_nodes > 1,
        "somebody must be left to take over"
    );
    ensure!(!options.interval.is_zero(), "the interval must be above 0");
    let mut outcome = options.begin(format!(
        "one of {} session nodes killed with {} calls in flight, lease {:?}",
        options.session_nodes, options.calls, options.lease
    ));
    let shoal = crate::servers::spawned::shoal_binary(options.shoal.as_deref())?;
    let mut cluster = Cluster::start_as(&shoal, None, &options.shape())?;
    let mut targets = Vec::new();
    for edge in cluster.of(Role::Edge) {
        targets.push(Target::resolve(&edge.url).await?);
    }
    let targets: Arc<[Target]> = targets.into();
    let findings = Arc::<Findings>::default();

    let clients = open(options.calls, &targets).await?;
    progress(&format!("{} sessions are open", clients.len()));
    let steady = Steady::start(options.steady, options.steady_rate, &targets, &findings).await?;
    let refused = Arc::clone(&steady.refusals);
    let whole = options.before + options.after;
    let steps = whole.as_millis() / options.interval.as_millis();
    let job = Job {
        steps: usize::try_from(steps).unwrap_or(usize::MAX).max(1),
        interval: options.interval,
    };
    let began = Instant::now();
    let mut calls = start(clients, job, &targets, &findings);

    sleep(options.before).await;
    let held = held_by_first(&cluster)?;
    let victim = cluster
        .first_mut(Role::Session)
        .context("no session node")?;
    let name = victim.name.clone();
    let killed = Instant::now();
    victim.kill()?;
    progress(&format!("{name} is killed; it held {held} sessions"));

    let mut journeys = Vec::new();
    while let Some(journey) = calls.join_next().await {
        journeys.extend(journey?);
    }
    sleep_until(began + whole).await;
    let steady = steady.stop().await;
    outcome.seconds = began.elapsed().as_secs_f64();

    // After all calls have ended, the count is final.
    let worker = cluster.of(Role::Worker).next().context("no worker")?;
    let executed = worker.metric(EXECUTIONS, &["\"long_job\""])? as u64;
    if executed > options.calls as u64 {
        findings.add(
            "executed twice",
            format_args!("{executed} executions of {} calls", options.calls),
        );
    }
    let seen = Seen {
        job,
        killed,
        held,
        journeys: &journeys,
    };
    seen.figures(&mut outcome, options);
    let messages: Vec<Instant> = journeys
        .iter()
        .flat_map(|journey| journey.messages.iter().copied())
        .collect();
    let latencies = histogram(steady.iter().map(|done| done.latency()));
    outcome.latencies.push(Distribution::of(
        "steady calls, from when they were due",
        &latencies,
    ));
    show(
        &mut outcome,
        began,
        &steady,
        ("messages of calls in flight", &messages),
        ("session node killed", killed),
    );
    for (name, value) in [
        ("executions of the calls in flight", executed),
        ("steady calls answered", steady.len() as u64),
        (
            "steady calls refused for a while (429, 503)",
            refused.load(Ordering::Relaxed),
        ),
    ] {
        outcome.figure(name, value as f64, "", Better::Neither);
    }
    outcome.violations = findings.violations();
    Ok(outcome)
}

async fn open(count: usize, targets: &Arc<[Target]>) -> anyhow::Result<Vec<Client>> {
    let mut opening = JoinSet::new();
    let mut clients = Vec::with_capacity(count);
    for number in 0..count {
        if opening.len() >= OPENING
            && let Some(opened) = opening.join_next().await
        {
            clients.push(opened?);
        }
        let target = targets[number % targets.len()].clone();
        opening.spawn(async move { Client::open(&target, Mode::Legacy, Goodbye::Reset).await });
    }
    while let Some(opened) = opening.join_next().await {
        clients.push(opened?);
    }
    let opened: Result<Vec<Client>, _> = clients.into_iter().collect();
    opened.context("could not open a session")
}

/// The calls' starts are spread over one interval.
fn start(
    clients: Vec<Client>,
    job: Job,
    targets: &Arc<[Target]>,
    findings: &Arc<Findings>,
) -> JoinSet<Option<Journey>> {
    let mut calls = JoinSet::new();
    let count = clients.len() as f64;
    for (number, mut client) in clients.into_iter().enumerate() {
        let (targets, findings) = (Arc::clone(targets), Arc::clone(findings));
        calls.spawn(async move {
            sleep(job.interval.mul_f64(number as f64 / count)).await;
            match long_job(&mut client, job, &targets, &findings).await {
                Ok(journey) => Some(journey),
                Err(failure) => {
                    findings.failed("a call in flight", &failure);
                    None
                }
            }
        });
    }
    calls
}

fn held_by_first(cluster: &Cluster) -> anyhow::Result<usize> {
    let node = cluster
        .of(Role::Session)
        .next()
        .context("no session node")?;
    let status = node.status()?;
    let sessions = &status["sessions"];
    let held = sessions["live"].as_u64().zip(sessions["passive"].as_u64());
    let (live, passive) = held.context("a session node did not say how many sessions it holds")?;
    Ok(usize::try_from(live + passive)?)
}

struct Seen<'a> {
    job: Job,
    killed: Instant,
    held: usize,
    journeys: &'a [Journey],
}

impl Seen<'_> {
    fn figures(&self, outcome: &mut Outcome, options: &Failover) {
        let mut waits: Vec<Duration> = self
            .journeys
            .iter()
            .filter_map(|one| self.wait(one))
            .collect();
        waits.sort();
        // The killed node had the same share of the calls as of the sessions: those that
        // waited longest.
        let share = self.held as f64 / (options.calls + options.steady).max(1) as f64;
        let hit = ((waits.len() as f64 * share).round() as usize).min(waits.len());
        let hit = histogram(waits.iter().rev().take(hit).copied());
        let gaps = histogram(self.journeys.iter().filter_map(|one| self.longest_gap(one)));
        outcome.latencies.push(Distribution::of(
            "pause: from when a call's next message was due until it came, all calls",
            &histogram(waits.iter().copied()),
        ));
        outcome.latencies.push(Distribution::of(
            "pause: the same, as many as the killed node held",
            &hit,
        ));
        outcome.latencies.push(Distribution::of(
            "longest gap in a call beyond its interval",
            &gaps,
        ));
        let sum = |of: fn(&Journey) -> usize| self.journeys.iter().map(of).sum::<usize>() as f64;
        for (name, value) in [
            ("calls in flight at the kill", waits.len() as f64),
            ("sessions held by the killed node", self.held as f64),
            (
                "streams that broke and were resumed",
                sum(|one| one.resumes),
            ),
            (
                "resumes refused for a while (429, 503)",
                sum(|one| one.refusals),
            ),
        ] {
            outcome.figure(name, value, "", Better::Neither);
        }
        let p99 = quantile(&hit, 0.99);
        outcome.figure("pause p99", p99.as_secs_f64() * 1e3, "ms", Better::Lower);
        let decided = !hit.is_empty();
        outcome.verdicts.push(Verdict {
            what: format!(
                "p99 of the pause of {} calls on the killed node {:.2} s: at most {:.2} s",
                hit.len(),
                p99.as_secs_f64(),
                PAUSE.as_secs_f64()
            ),
            held: decided.then_some(p99 <= PAUSE),
        });
    }

    /// The first message after the kill counts from the kill or from its due time, whichever is
    /// later. `None` if the call was not in flight.
    fn wait(&self, journey: &Journey) -> Option<Duration> {
        let (before, after) = journey
            .messages
            .split_at(journey.messages.partition_point(|at| *at <= self.killed));
        let due = *before.last()? + self.job.interval;
        let next = after.first()?;
        Some(next.saturating_duration_since(due.max(self.killed)))
    }

    fn longest_gap(&self, journey: &Journey) -> Option<Duration> {
        let gaps = journey.messages.windows(2);
        let longest = gaps.map(|pair| pair[1].duration_since(pair[0])).max()?;
        Some(longest.saturating_sub(self.job.interval))
    }
}
