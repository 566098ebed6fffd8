use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use shoal_testkit::cluster::Member;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::Failover;
use super::timeline::show;
use crate::connection::Goodbye;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::mcp::job::{Job, Journey};
use crate::outcome::Outcome;
use crate::servers;
use crate::steady::{Conduct, Steady};
use crate::target::Target;
use crate::times;

/// Limit for the p99 of a call's pause: clients need not wait until a dead process's lease ends.
const PAUSE: Duration = Duration::from_millis(300);

const OPENING: usize = 50;

const EXECUTIONS: &str = "mcp_client_operation_duration_seconds_count";

pub(super) async fn run(options: &Failover) -> anyhow::Result<Outcome> {
    ensure!(
        options.session_nodes > 1,
        "somebody must be left to take over"
    );
    ensure!(!options.interval.is_zero(), "the interval must be above 0");
    let mut outcome = options.begin(format!(
        "one of {} session nodes killed with {} calls in flight, lease {:?}",
        options.session_nodes, options.calls, options.lease
    ));
    let cluster = options.cluster().await?;
    let targets: Arc<[Target]> = servers::targets(&cluster).await?.into();
    let findings = Arc::<Findings>::default();

    let opening = (0..options.calls).zip(targets.iter().cycle());
    let opening = opening.map(|(_, target)| Client::open(target, Mode::Legacy, Goodbye::Reset));
    let opened = stream::iter(opening)
        .buffer_unordered(OPENING)
        .try_collect();
    let clients: Vec<Client> = opened.await.context("could not open a session")?;
    crate::progress(&format!("{} sessions are open", clients.len()));
    let (count, rate) = (options.steady, options.steady_rate);
    let steady = Steady::start(count, rate, &targets, Conduct::Count, &findings).await?;
    let refused = Arc::clone(&steady.refusals);
    let whole = options.before + options.after;
    let steps = whole.as_millis() / options.interval.as_millis();
    let job = Job {
        steps: usize::try_from(steps).unwrap_or(usize::MAX).max(1),
        interval: options.interval,
    };
    let began = Instant::now();
    let mut calls = start(clients, job, &targets, &findings).await;

    sleep(options.before).await;
    let victim = cluster.sessions()[0];
    let held = held_by(victim).await?;
    let killed = Instant::now();
    victim.kill().await?;
    let name = victim.name();
    crate::progress(&format!("{name} is killed; it held {held} sessions"));

    let mut journeys = Vec::new();
    while let Some(journey) = calls.join_next().await {
        journeys.extend(journey?);
    }
    sleep_until(killed + options.after).await;
    let steady = steady.stop().await;
    outcome.seconds = began.elapsed().as_secs_f64();

    // After all calls have ended, the count is final.
    let worker = cluster.workers()[0].admin();
    let executed = worker.metric(EXECUTIONS, "\"long_job\"").await? as u64;
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
    let latencies = times::of(steady.iter().map(|done| done.latency()));
    outcome.latency("steady calls, from when they were due", &latencies);
    let shown = ("messages of calls in flight", messages.as_slice());
    show(
        &mut outcome,
        began,
        &steady,
        shown,
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
        outcome.plain(name, value as f64, "");
    }
    outcome.violations = findings.violations();
    Ok(outcome)
}

/// Starts the calls, spread over one interval, and waits for the first message of each.
async fn start(
    clients: Vec<Client>,
    job: Job,
    targets: &Arc<[Target]>,
    findings: &Arc<Findings>,
) -> JoinSet<Option<Journey>> {
    let mut calls = JoinSet::new();
    let count = clients.len() as f64;
    let (starting, mut all_started) = mpsc::channel(1);
    for (number, mut client) in clients.into_iter().enumerate() {
        let (targets, findings) = (Arc::clone(targets), Arc::clone(findings));
        let starting = Some(starting.clone());
        calls.spawn(async move {
            sleep(job.interval.mul_f64(number as f64 / count)).await;
            let seen = job.see_through(&mut client, &targets, &findings, starting);
            match seen.await {
                Ok(journey) => Some(journey),
                Err(failure) => {
                    findings.failed("a call in flight", &failure);
                    None
                }
            }
        });
    }
    drop(starting);
    all_started.recv().await;
    calls
}

async fn held_by(node: &Member) -> anyhow::Result<usize> {
    let status = node.admin().status().await?;
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
        let hit = times::of(waits.iter().rev().take(hit).copied());
        let gaps = times::of(self.journeys.iter().filter_map(|one| self.longest_gap(one)));
        outcome.latency(
            "pause: from when a call's next message was due until it came, all calls",
            &times::of(waits.iter().copied()),
        );
        outcome.latency("pause: the same, as many as the killed node held", &hit);
        outcome.latency("longest gap in a call beyond its interval", &gaps);
        let sum = |of: fn(&Journey) -> usize| self.journeys.iter().map(of).sum::<usize>();
        for (name, value) in [
            ("calls in flight at the kill", waits.len()),
            ("sessions held by the killed node", self.held),
            (
                "streams that broke and were resumed",
                sum(|one| one.resumes),
            ),
            (
                "resumes refused for a while (429, 503)",
                sum(|one| one.refusals),
            ),
        ] {
            outcome.plain(name, value as f64, "");
        }
        let p99 = times::quantile(&hit, 0.99);
        outcome.lower("pause p99", p99.as_secs_f64() * 1e3, "ms");
        let (calls, seconds, most) = (hit.len(), p99.as_secs_f64(), PAUSE.as_secs_f64());
        outcome.verdict(
            format!("p99 of the pause of {calls} calls on the killed node {seconds:.2} s: at most {most:.2} s"),
            (!hit.is_empty()).then_some(p99 <= PAUSE),
        );
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
