use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use shoal_testkit::chaos::delays;
use shoal_testkit::check::{Ledger, Rules, check};
use shoal_testkit::client::Client;
use shoal_testkit::cluster::{Cluster, Member};
use shoal_testkit::history::{Channel, Entry, History, Message, Recorder, Step, Tool};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::arrivals::{self, Done, Pool, answered};
use crate::cli::duration;
use crate::connection::Goodbye;
use crate::engine::mix::Kind;
use crate::findings::Findings;
use crate::mcp::tools::{COUNTER, increment};
use crate::mcp::{self, Mode};
use crate::outcome::Outcome;
use crate::scenario::Subject;
use crate::servers;
use crate::target::Target;
use crate::times;

/// Limit for the p99 of a call's pause: clients need not wait until a dead process's lease ends.
const PAUSE: Duration = Duration::from_millis(300);

/// Limit for the p99 of other clients' calls while streams return, as a multiple of the p99 before.
const FACTOR: f64 = 3.0;

/// Number of clients that open their sessions at the same time.
const OPENING: usize = 50;

const PATIENCE: Duration = Duration::from_secs(60);

const LOOK_EVERY: Duration = Duration::from_millis(20);

const STEP_MS: u128 = 100;

const EXECUTIONS: &str = "mcp_client_operation_duration_seconds_count";

/// The process that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kill {
    /// A session node, with calls in flight.
    Session,
    /// An edge, with open streams.
    Edge,
}

/// The arguments of `loadtest failover`.
#[derive(Debug, Args)]
pub(crate) struct Failover {
    /// Process to kill (SIGKILL).
    #[arg(long, value_enum)]
    kill: Kill,
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Number of calls in flight when a session node is killed.
    #[arg(long, default_value_t = 1_000)]
    calls: usize,
    /// Number of open streams on the killed edge.
    #[arg(long, default_value_t = 5_000)]
    streams: usize,
    /// Number of clients that call continuously, on the processes that survive or beside the calls in flight.
    #[arg(long, default_value_t = 32)]
    steady: usize,
    /// Calls a second of all these clients together.
    #[arg(long, default_value_t = 200.0)]
    steady_rate: f64,
    /// Number of edges.
    #[arg(long, default_value_t = 2)]
    edges: usize,
    /// Number of session nodes.
    #[arg(long, default_value_t = 2)]
    session_nodes: usize,
    /// Time for which a node owns its sessions without renewing its lease (`node.lease`).
    #[arg(long, default_value = "6s", value_parser = duration)]
    lease: Duration,
    /// Time under load before the kill.
    #[arg(long, default_value = "5s", value_parser = duration)]
    before: Duration,
    /// Time under load after the kill.
    #[arg(long, default_value = "15s", value_parser = duration)]
    after: Duration,
    /// Time between two messages of a call in flight.
    #[arg(long, default_value = "500ms", value_parser = duration)]
    interval: Duration,
}

impl Failover {
    pub(crate) async fn run(&self) -> anyhow::Result<Outcome> {
        match self.kill {
            Kill::Session => self.kill_session().await,
            Kill::Edge => self.kill_edge().await,
        }
    }

    async fn cluster(&self) -> anyhow::Result<Cluster> {
        let concurrency = (self.calls + self.steady + 64).to_string();
        let builder = self
            .subject
            .cluster()?
            .edges(self.edges)
            .sessions(self.session_nodes)
            .lease(self.lease)
            .setting("pools.demo.concurrency", &concurrency);
        builder.start().await
    }

    /// Starts the clients that call steadily. Their counter reveals lost and repeated executions.
    async fn steady(&self, targets: &[Target]) -> anyhow::Result<Steady> {
        let mut pools = Vec::new();
        for (number, target) in targets.iter().enumerate() {
            let count = ((self.steady + number) / targets.len()).max(1);
            pools.push(Pool::of(count, target.clone(), Mode::Legacy).await?);
        }
        let kinds = [Kind::Echo, Kind::Echo, Kind::Echo, Kind::Count];
        let of_kind = |kind| pools.iter().map(move |pool| (Arc::clone(pool), kind));
        let turns: Vec<_> = kinds.into_iter().flat_map(of_kind).collect();
        let (rate, time) = (self.steady_rate, self.before + self.after);
        let refusals = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&refusals);
        let calls = async move { arrivals::calls(&turns, rate, time, Some(&counted)).await };
        Ok(Steady {
            calls: tokio::spawn(calls),
            refusals,
        })
    }

    async fn kill_session(&self) -> anyhow::Result<Outcome> {
        let (nodes, count) = (self.session_nodes, self.calls);
        ensure!(nodes > 1, "somebody must be left to take over");
        ensure!(!self.interval.is_zero(), "the interval must be above 0");
        let mut outcome = Outcome::begin(
            "failover",
            format!(
                "one of {nodes} session nodes killed with {count} calls in flight, lease {:?}",
                self.lease
            ),
        );
        let cluster = self.cluster().await?;
        let targets = servers::targets(&cluster).await?;
        let findings = Arc::<Findings>::default();
        let clients = Crowd::new(count, |number| {
            let mut targets = targets.clone();
            targets.rotate_left(number % self.edges);
            (targets, None)
        });
        let steps = (self.before + self.after).as_millis() / self.interval.as_millis();
        let steps = u32::try_from(steps).unwrap_or(u32::MAX).max(1);
        let interval = self.interval;
        let mut calls = clients.spawn(move |number, client: Client| async move {
            // The calls' messages are spread over one interval.
            sleep(interval.mul_f64(number as f64 / count as f64)).await;
            let job = client.work(Tool::Job, steps, interval.as_millis() as u64);
            client.call(job, None).await;
        });
        let started = |entry: &Entry| message_at(entry).is_some();
        clients
            .until_each(started)
            .await
            .context("some calls did not start")?;
        crate::progress(&format!("{count} calls are in flight"));
        let steady = self.steady(&targets).await?;
        sleep(self.before).await;

        let victim = cluster.sessions()[0];
        let held = held_by(victim).await?;
        let killed = clients.began.elapsed();
        victim.kill().await?;
        crate::progress(&format!(
            "{} is killed; it held {held} sessions",
            victim.name()
        ));
        // A call that does not end is a finding.
        let all = async { while calls.join_next().await.is_some() {} };
        let _ = timeout(interval * steps + PATIENCE, all).await;
        sleep_until(clients.began + killed + self.after).await;
        let refused = steady.refusals;
        let steady = answered(steady.calls.await?, "a steady call", &findings);
        outcome.seconds = clients.began.elapsed().as_secs_f64();

        // After all calls have ended, the count is final.
        let worker = cluster.workers()[0];
        let executed = worker.admin().metric(EXECUTIONS, "\"long_job\"").await?;
        if executed > count as f64 {
            let example = format_args!("{executed} executions of {count} calls");
            findings.add("executed twice", example);
        }
        let histories = clients.histories();
        let verdict = check(&histories, &Ledger::default(), &Rules::default());
        findings.judged(&verdict);
        let mut pauses = delays(&histories, killed);
        pauses.sort();
        // The killed node had the same share of the calls as of the sessions: those that waited longest.
        let share = held as f64 / (count + self.steady).max(1) as f64;
        let hit = ((pauses.len() as f64 * share).round() as usize).min(pauses.len());
        let hit = times::of(pauses.iter().rev().take(hit).copied());
        outcome.latency(
            "pause: from when a call's next message was due until it came, all calls",
            &times::of(pauses.iter().copied()),
        );
        outcome.latency("pause: the same, as many as the killed node held", &hit);
        let latencies = times::of(steady.iter().map(Done::latency));
        outcome.latency("steady calls, from when they were due", &latencies);
        for (name, value) in [
            ("calls in flight at the kill", pauses.len() as u64),
            ("sessions held by the killed node", held),
            ("executions of the calls in flight", executed as u64),
            (
                "streams that broke and were resumed",
                verdict.counts.resumes,
            ),
            (
                "requests of these calls that were refused",
                verdict.counts.refused.values().sum(),
            ),
            ("steady calls answered", steady.len() as u64),
            (
                "steady calls refused for a while (429, 503)",
                refused.load(Ordering::Relaxed),
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
        let messages = histories.iter().flat_map(|history| &history.entries);
        let messages: Vec<Duration> = messages.filter_map(message_at).collect();
        clients.show(
            &mut outcome,
            &steady,
            ("messages of calls in flight", &messages),
        );
        outcome.mark(killed.as_secs_f64(), "session node killed");
        outcome.violations = findings.violations();
        Ok(outcome)
    }

    async fn kill_edge(&self) -> anyhow::Result<Outcome> {
        let (count, edge_count) = (self.streams, self.edges);
        ensure!(edge_count > 1, "somebody must be left to come back to");
        let mut outcome = Outcome::begin(
            "failover",
            format!("one of {edge_count} edges killed with {count} streams open on it"),
        );
        let cluster = self.cluster().await?;
        let targets = servers::targets(&cluster).await?;
        let others = &targets[1..];
        let findings = Arc::<Findings>::default();
        let clients = Crowd::new(count, |number| {
            let mut targets = targets.clone();
            targets[1..].rotate_left(number % others.len());
            (targets, Some(COUNTER))
        });
        let listening = clients.spawn(|_, client: Client| async move { client.listen(None).await });
        let primed = |entry: &Entry| matches!(entry.step, Step::Received { id: Some(_), .. });
        clients
            .until_each(primed)
            .await
            .context("some streams did not open")?;
        crate::progress(&format!("{count} streams are open"));
        let steady = self.steady(others).await?;
        sleep(self.before).await;
        let victim = cluster.edges()[0];
        let mut changer =
            mcp::client::Client::open(&others[0], Mode::Legacy, Goodbye::Finish).await?;
        // The first clients notice the kill before `kill` returns.
        let killed = clients.began.elapsed();
        victim.kill().await?;
        crate::progress(&format!("{} is killed", victim.name()));
        // Each stream must report this change after its return.
        increment(&mut changer).await?;
        let deadline = clients.began + killed + self.after;
        let told = |entry: &Entry| entry.at > killed && is_change(entry);
        // A stream that does not return in time is counted below.
        let _ = tokio::time::timeout_at(deadline, clients.until_each(told)).await;
        sleep_until(deadline).await;
        let refused = steady.refusals;
        let steady = answered(steady.calls.await?, "a steady call", &findings);
        outcome.seconds = clients.began.elapsed().as_secs_f64();
        drop(listening);

        let histories = clients.histories();
        let verdict = check(&histories, &Ledger::default(), &Rules::default());
        findings.judged(&verdict);
        let after = |history: &History, is_it: &dyn Fn(&Entry) -> bool| {
            let late = |entry: &&Entry| entry.at > killed && is_it(entry);
            history.entries.iter().find(late).map(|entry| entry.at)
        };
        let resumed = |entry: &Entry| matches!(entry.step, Step::Listening { .. });
        let back = histories
            .iter()
            .filter_map(|history| after(history, &resumed));
        let back: Vec<Duration> = back.collect();
        let heard = |history: &&History| after(history, &is_change).is_some();
        let told = histories.iter().filter(heard).count();
        if told < count {
            let missing = format_args!("{} streams were not told of a change", count - told);
            findings.add("lost", missing);
        }
        let refusals = |wanted: fn(u16) -> bool| {
            let refused = verdict.counts.refused.iter();
            let refused = refused.filter(|(status, _)| wanted(**status));
            refused.map(|(_, count)| count).sum::<u64>()
        };
        for (name, value) in [
            ("streams open at the kill", count as u64),
            ("streams resumed", back.len() as u64),
            ("streams told of a change that they missed", told as u64),
            (
                "connections refused on the way back",
                refusals(|status| status == 502),
            ),
            (
                "resumes refused for a while (429, 503)",
                refusals(|status| status != 502),
            ),
            (
                "steady calls refused for a while (429, 503)",
                refused.load(Ordering::Relaxed),
            ),
        ] {
            outcome.plain(name, value as f64, "");
        }
        let first_back = back.iter().min().copied().unwrap_or(killed + self.after);
        let last_back = back.iter().max().copied().unwrap_or(killed + self.after);
        outcome.lower(
            "until all streams were back",
            (last_back - killed).as_secs_f64(),
            "s",
        );
        let since = times::of(back.iter().map(|at| *at - killed));
        outcome.latency("from the kill to the resumed stream", &since);
        let what = format!("{} of {count} streams resumed: all", back.len());
        outcome.verdict(what, back.len() == count);
        let moments = [killed, first_back, last_back].map(|at| clients.began + at);
        judge(&mut outcome, &steady, moments);
        clients.show(&mut outcome, &steady, ("streams resumed", &back));
        outcome.mark(killed.as_secs_f64(), "edge killed");
        outcome.violations = findings.violations();
        Ok(outcome)
    }
}

async fn held_by(node: &Member) -> anyhow::Result<u64> {
    let status = node.admin().status().await?;
    let sessions = &status["sessions"];
    let held = sessions["live"].as_u64().zip(sessions["passive"].as_u64());
    let (live, passive) = held.context("a session node did not say how many sessions it holds")?;
    Ok(live + passive)
}

fn message_at(entry: &Entry) -> Option<Duration> {
    match &entry.step {
        Step::Received {
            channel: Channel::Request(_),
            message,
            ..
        } if *message != Message::Prime => Some(entry.at),
        _ => None,
    }
}

fn is_change(entry: &Entry) -> bool {
    matches!(&entry.step, Step::Received { message, .. } if message.is_notification())
}

struct Steady {
    calls: JoinHandle<Vec<Done>>,
    refusals: Arc<AtomicU64>,
}

/// The clients that the kill interrupts.
struct Crowd {
    clients: Vec<Client>,
    began: Instant,
}

impl Crowd {
    fn new(count: usize, plan: impl Fn(usize) -> (Vec<Target>, Option<&'static str>)) -> Self {
        let began = Instant::now();
        let client = |number| {
            let (targets, subscription) = plan(number);
            let recorder = Recorder::new(number, began);
            // Many orderly closes would use up the ports.
            Client::to_each(targets, Goodbye::Reset, subscription, recorder)
        };
        let clients = (0..count).map(client).collect();
        Self { clients, began }
    }

    /// Opens all sessions, and lets each client do its work afterwards.
    fn spawn<F>(&self, work: impl Fn(usize, Client) -> F + Clone + Send + 'static) -> JoinSet<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let places = Arc::new(Semaphore::new(OPENING));
        let mut tasks = JoinSet::new();
        for (number, client) in self.clients.iter().cloned().enumerate() {
            let (places, work) = (Arc::clone(&places), work.clone());
            tasks.spawn(async move {
                let place = places.acquire().await;
                client.open().await;
                drop(place);
                work(number, client).await;
            });
        }
        tasks
    }

    async fn until_each(&self, has: impl Fn(&Entry) -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let has_all = |client: &Client| client.look(|history| history.entries.iter().any(&has));
        while !self.clients.iter().all(has_all) {
            ensure!(Instant::now() < deadline, "not within {PATIENCE:?}");
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    fn histories(&self) -> Vec<History> {
        self.clients.iter().map(Client::history).collect()
    }

    /// Adds the plots of the run.
    fn show(&self, outcome: &mut Outcome, steady: &[Done], (name, moments): (&str, &[Duration])) {
        let answers = steady
            .iter()
            .map(|done| done.ended.saturating_duration_since(self.began));
        let unit = "per 100 ms";
        outcome.series("steady calls answered", unit, per_step(answers));
        outcome.series(name, unit, per_step(moments.iter().copied()));
    }
}

fn per_step(moments: impl Iterator<Item = Duration>) -> Vec<(f64, f64)> {
    let mut counts = Vec::new();
    for moment in moments {
        let step = (moment.as_millis() / STEP_MS) as usize;
        counts.resize(counts.len().max(step + 1), 0.0);
        counts[step] += 1.0;
    }
    let seconds = (0..).map(|step| f64::from(step) * STEP_MS as f64 / 1e3);
    seconds.zip(counts).collect()
}

/// Compares other clients' calls before the kill with those during the return of the streams. The
/// calls until the first stream is back count separately, because broken connections keep this
/// machine busy then.
fn judge(outcome: &mut Outcome, steady: &[Done], [killed, first_back, last_back]: [Instant; 3]) {
    let due = |from: Instant, until: Instant| {
        let within = steady
            .iter()
            .filter(|done| (from..until).contains(&done.due));
        times::of(within.map(Done::latency))
    };
    let before = steady.iter().map(|done| done.due).min().unwrap_or(killed);
    let [calm, broken, storm] = [
        ("before the kill", due(before, killed)),
        (
            "from the kill until the first stream was back",
            due(killed, first_back),
        ),
        (
            "from then until all streams were back",
            due(first_back, last_back),
        ),
    ]
    .map(|(when, calls)| {
        outcome.latency(format!("others' calls {when}"), &calls);
        let p99 = times::quantile_ms(&calls, 0.99);
        outcome.lower(format!("others' p99 {when}"), p99, "ms");
        (!calls.is_empty()).then_some(p99)
    });
    let held = calm.zip(storm).map(|(calm, storm)| storm <= calm * FACTOR);
    let [calm, broken, storm] = [calm, broken, storm].map(Option::unwrap_or_default);
    let what = format!(
        "others' p99 {storm:.1} ms in the storm, {calm:.1} ms before: at most {FACTOR} × ({broken:.1} ms in between)"
    );
    outcome.verdict(what, held);
}
