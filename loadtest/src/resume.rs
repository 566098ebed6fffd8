//! Clients that drop their streams at random and resume them. The seed determines the decisions, but the network
//! determines where in the stream they apply.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use shoal_testkit::check::{Ledger, Rules, Verdict, check_more};
use shoal_testkit::client::{Client, End, Leave};
use shoal_testkit::history::{Recorder, Tool};
use tokio::time::{Instant, interval, timeout_at};

use crate::cli;
use crate::connection::Goodbye;
use crate::findings::Findings;
use crate::mcp::tools::COUNTER;
use crate::mcp::{self, Mode};
use crate::memory::Memory;
use crate::outcome::Outcome;
use crate::servers::{Running, one_process};
use crate::soak;
use crate::target::Target;

/// Clients may run on for the sum of the last call's timeouts.
const END_GRACE: Duration = Duration::from_secs(75);

const SAY_EVERY_S: u64 = 10;
/// Maximum departures in a call. Afterwards, the client stays until the end.
const MOST_RESUMES: usize = 8;

const PAST_THE_END: Duration = Duration::from_millis(500);

const LONGEST_LISTENING: Duration = Duration::from_secs(3);

impl cli::Resume {
    pub(crate) async fn run(&self) -> anyhow::Result<Outcome> {
        let Some(program) = &self.shoal else {
            return run(self, &self.urls, &self.pids).await;
        };
        let server = Running::shoal(one_process(program, None)).await?;
        run(self, std::slice::from_ref(&server.url), &server.pids).await
    }
}

async fn run(options: &cli::Resume, urls: &[String], pids: &[u32]) -> anyhow::Result<Outcome> {
    ensure!(options.max_steps > 0, "a call needs at least one step");
    let seed = options.seed.unwrap_or_else(rand::random);
    crate::progress(&format!("seed {seed}"));
    let targets = Target::resolve_all(urls).await?;
    let Some(first) = targets.first() else {
        bail!("no URL to connect to");
    };
    let has_counter = probe(first).await?;
    let mut outcome = Outcome::begin("resume", "clients drop their streams and resume them");
    outcome
        .parameters
        .insert("seed".to_owned(), seed.to_string());
    let began = Instant::now();
    let until = began + options.duration;
    let longest = options.max_interval * options.max_steps;
    let verdict = Arc::<Mutex<Verdict>>::default();
    let mut dice = StdRng::seed_from_u64(seed);
    let lives = (0..options.clients).map(|number| {
        let life = Life {
            number,
            targets: targets.clone(),
            verdict: Arc::clone(&verdict),
            dice: StdRng::seed_from_u64(dice.random()),
            steps: options.max_steps,
            interval: options.max_interval,
            began,
            until,
            last: until + longest + END_GRACE,
            has_counter,
        };
        tokio::spawn(life.run())
    });
    let processes = pids.iter().map(|pid| ("server".to_owned(), *pid));
    let memory = Memory {
        processes: processes.collect(),
        redis: None,
    };
    let sampling = sample(&memory, began, until, &mut outcome);
    let (ended, sampled) = tokio::join!(join_all(Vec::from_iter(lives)), sampling);
    ended.into_iter().collect::<Result<(), _>>()?;
    sampled?;
    outcome.seconds = began.elapsed().as_secs_f64();
    let verdict = verdict.lock().unwrap_or_else(PoisonError::into_inner);
    conclude(&mut outcome, &verdict);
    soak::judge(&mut outcome);
    Ok(outcome)
}

/// Samples memory only under load, because later samples are lower.
async fn sample(
    memory: &Memory,
    began: Instant,
    until: Instant,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let mut seconds = interval(Duration::from_secs(1));
    while Instant::now() < until {
        seconds.tick().await;
        let at = began.elapsed().as_secs_f64();
        memory.sample(at, outcome).await?;
        if (at as u64).is_multiple_of(SAY_EVERY_S) {
            crate::progress(&format!(
                "{at:.0} s of {:.0} s",
                (until - began).as_secs_f64()
            ));
        }
    }
    Ok(())
}

fn conclude(outcome: &mut Outcome, verdict: &Verdict) {
    let counts = &verdict.counts;
    for (name, value) in [
        ("sessions opened", counts.sessions),
        ("calls made", counts.calls),
        ("calls answered", counts.results),
        ("messages received", counts.events),
        ("streams dropped", counts.left),
        ("streams ended by the server", counts.breaks),
        ("streams resumed", counts.resumes),
        ("finished streams requested again", counts.replays),
        ("notifications on GET streams", counts.changes),
        ("refusals", counts.refused.values().sum()),
    ] {
        outcome.plain(name, value as f64, "");
    }
    let findings = Findings::default();
    findings.judged(verdict);
    if counts.results == 0 {
        findings.add("no call was answered", "");
    }
    outcome.violations = findings.violations();
}

/// Fails without `long_job`. Returns whether it has the counter too.
async fn probe(target: &Target) -> anyhow::Result<bool> {
    let opening = mcp::client::Client::open(target, Mode::Legacy, Goodbye::Finish);
    let opened = opening.await;
    let mut client =
        opened.with_context(|| format!("could not open a session at {}", target.address))?;
    let tools = client.tools().await?;
    client.end().await?;
    let has = |name: &str| tools.iter().any(|tool| tool == name);
    ensure!(has("long_job"), "the server has no tool long_job");
    Ok(has("increment_counter"))
}

struct Life {
    number: usize,
    targets: Vec<Target>,
    verdict: Arc<Mutex<Verdict>>,
    dice: StdRng,
    steps: u32,
    interval: Duration,
    began: Instant,
    until: Instant,
    last: Instant,
    has_counter: bool,
}

impl Life {
    async fn run(mut self) {
        while Instant::now() < self.until {
            let mut targets = self.targets.clone();
            targets.rotate_left(self.dice.random_range(0..self.targets.len()));
            let goodbye = match self.dice.random() {
                true => Goodbye::Reset,
                false => Goodbye::Finish,
            };
            let listens = self.has_counter && self.dice.random_bool(1.0 / 3.0);
            let recorder = Recorder::new(self.number, self.began);
            let client = Client::to_each(targets, goodbye, listens.then_some(COUNTER), recorder);
            let mut dice = StdRng::seed_from_u64(self.dice.random());
            let leaves = std::iter::repeat_with(move || Leave::Return {
                after: usize::MAX,
                within: up_to(&mut dice, LONGEST_LISTENING),
                away: away(&mut dice, Duration::ZERO),
                unread: dice.random_bool(0.2),
            });
            let last = self.last;
            let session = async {
                tokio::select! {
                    () = self.session(&client, listens) => {}
                    () = client.listen(leaves), if listens => {}
                }
            };
            // An unfinished call is a finding.
            let _ = timeout_at(last, session).await;
            let mut verdict = self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
            let (ledger, rules) = (Ledger::default(), Rules::default());
            check_more(&mut verdict, &[client.history()], &ledger, &rules);
        }
    }

    async fn session(&mut self, client: &Client, listens: bool) {
        client.open().await;
        // Some sessions last for the whole run.
        let calls = match self.dice.random() {
            true => usize::MAX,
            false => self.dice.random_range(5..=40),
        };
        for _ in 0..calls {
            if Instant::now() >= self.until {
                break;
            }
            if listens {
                let change = client.work(Tool::Increment, 0, 0);
                client.call(change, None).await;
            }
            let steps = self.dice.random_range(1..=self.steps);
            let step = up_to(&mut self.dice, self.interval).as_millis() as u64;
            let job = client.work(Tool::Job, steps, step);
            let length = job.takes();
            let leaves = (0..MOST_RESUMES).map(|_| leave(&mut self.dice, steps, length));
            let leaves: Vec<Leave> = leaves.collect();
            let end = client.call(job, leaves).await;
            if end == End::Answered && self.dice.random_bool(0.1) {
                client.replay(self.dice.random()).await;
            }
        }
        client.end().await;
    }
}

fn leave(dice: &mut StdRng, steps: u32, length: Duration) -> Leave {
    let (after, within) = match dice.random_range(0..10) {
        0..3 => (usize::MAX, Duration::MAX),
        3..7 => (dice.random_range(1..=steps) as usize, Duration::MAX),
        _ => (usize::MAX, up_to(dice, length)),
    };
    Leave::Return {
        after,
        within,
        away: away(dice, length + PAST_THE_END),
        unread: dice.random_bool(0.2),
    }
}

fn away(dice: &mut StdRng, past_the_end: Duration) -> Duration {
    match dice.random_range(0..10) {
        0..2 => Duration::ZERO,
        2..8 => up_to(dice, Duration::from_millis(200)),
        8 => up_to(dice, Duration::from_secs(1)),
        _ => past_the_end,
    }
}

fn up_to(dice: &mut StdRng, longest: Duration) -> Duration {
    longest.mul_f64(dice.random())
}
