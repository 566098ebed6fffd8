//! The closed loop: every session calls again once its last answer is verified.

mod session;
mod tally;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use http::HeaderValue;
use tokio::task::JoinSet;

use crate::cli;
use crate::load::call::Echo;
use crate::load::mix::Kind;
use crate::mcp::Mode;
use crate::process;
use crate::report::{Latency, RedisUsage, RunReport, ServerUsage};
use crate::scenario::{Finished, Scenario};
use crate::servers::{Running, redis};
use crate::target::Target;
use tally::{Phase, Tally};

const LONGEST_WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) url: String,
    pub(crate) mode: Mode,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) stateless: bool,
    pub(crate) sessions: usize,
    pub(crate) warmup: Duration,
    pub(crate) duration: Duration,
    /// Slow servers are measured longer, until this many answers, for at most [`LONGEST_WAIT`].
    pub(crate) least_calls: u64,
    pub(crate) call: Call,
    pub(crate) pids: Vec<u32>,
    pub(crate) redis: Option<SocketAddr>,
}

impl Plan {
    /// Returns a plan of echo calls of 32 bytes to a server of this program, without a warm-up.
    pub(crate) fn of(server: &Running, mode: Mode) -> Self {
        Self {
            pids: server.pids.clone(),
            redis: server.redis,
            ..Self::at(&server.url, mode)
        }
    }

    pub(crate) fn at(url: &str, mode: Mode) -> Self {
        Self {
            url: url.to_owned(),
            mode,
            authorization: None,
            stateless: false,
            sessions: 1,
            warmup: Duration::ZERO,
            duration: Duration::ZERO,
            least_calls: 0,
            call: Call::echo("echo", 32),
            pids: Vec::new(),
            redis: None,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) echo: Echo,
}

impl Call {
    pub(crate) fn echo(tool: &str, text_bytes: usize) -> Self {
        Self {
            kind: Kind::Payload(text_bytes),
            echo: Echo::by(tool),
        }
    }
}

impl Scenario for cli::Run {
    fn json(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    async fn run(&self) -> anyhow::Result<impl Finished> {
        let plan = Plan {
            stateless: self.legacy_stateless,
            sessions: self.sessions,
            warmup: self.warmup,
            duration: self.duration,
            call: Call {
                kind: Kind::Payload(self.text_bytes),
                echo: Echo {
                    tool: self.tool.clone(),
                    argument: self.argument.clone(),
                    prefix: self.answer_prefix.clone(),
                },
            },
            pids: self.pids.clone(),
            ..Plan::at(&self.url, self.mode)
        };
        run(&plan, crate::progress).await
    }
}

/// The report counts failures of calls.
pub(crate) async fn run(plan: &Plan, progress: impl Fn(&str)) -> anyhow::Result<RunReport> {
    let mut target = Target::resolve(&plan.url).await?;
    target.authorization.clone_from(&plan.authorization);
    let tally = Arc::new(Tally::default());
    let sessions = session::open_all(plan, &target, &tally).await?;
    let mut running = JoinSet::new();
    for session in sessions {
        running.spawn(session.run());
    }

    let each_once = if plan.least_calls == 0 {
        0
    } else {
        plan.sessions as u64
    };
    observe(plan.warmup, each_once, "warm-up", &tally, &progress).await;
    tally.enter(Phase::Measure);
    let began = Instant::now();
    let calls_before = tally.counts().calls;
    let before = Reading::take(plan).await?;
    let enough = calls_before + plan.least_calls;
    observe(plan.duration, enough, "measure", &tally, &progress).await;
    let elapsed = began.elapsed();
    let calls = tally.counts().calls - calls_before;
    let after = Reading::take(plan).await?;
    tally.enter(Phase::Stop);
    while running.join_next().await.is_some() {}

    let counts = tally.counts();
    let readings = before.as_ref().zip(after.as_ref());
    Ok(RunReport {
        redis: readings.and_then(|(before, after)| after.redis_since(before, calls)),
        url: plan.url.clone(),
        mode: plan.mode,
        sessions: plan.sessions,
        seconds: elapsed.as_secs_f64(),
        calls,
        calls_per_s: calls as f64 / elapsed.as_secs_f64(),
        latency: Latency::of(&counts.latencies),
        server: readings.map(|(before, after)| {
            ServerUsage::between(&before.server, &after.server, calls, elapsed)
        }),
        other_cores: readings.map(|(before, after)| {
            after.others.saturating_sub(before.others).as_secs_f64() / elapsed.as_secs_f64()
        }),
        wrong: counts.wrong,
        failed: counts.failed,
        examples: counts.examples.clone(),
    })
}

struct Reading {
    server: process::Usage,
    others: Duration,
    redis: Option<(Duration, BTreeMap<String, u64>)>,
}

impl Reading {
    async fn take(plan: &Plan) -> anyhow::Result<Option<Self>> {
        if plan.pids.is_empty() {
            return Ok(None);
        }
        let read = process::measure_beside(&plan.pids);
        let (server, others) = read.context("could not read the server's processes")?;
        Ok(Some(Self {
            server,
            others,
            redis: match plan.redis {
                Some(at) => Some((redis::cpu(at).await?, redis::commands(at).await?)),
                None => None,
            },
        }))
    }

    fn redis_since(&self, before: &Self, calls: u64) -> Option<RedisUsage> {
        let ((earlier, before), (now, after)) = before.redis.as_ref().zip(self.redis.as_ref())?;
        let since = |(name, count): (&String, &u64)| {
            let earlier = before.get(name).copied().unwrap_or_default();
            (name.clone(), count.saturating_sub(earlier))
        };
        let cpu = now.saturating_sub(*earlier).as_secs_f64();
        Some(RedisUsage {
            cpu_us_per_call: cpu * 1e6 / (calls.max(1) as f64),
            commands: after
                .iter()
                .map(since)
                .filter(|(_, count)| *count > 0)
                .collect(),
        })
    }
}

async fn observe(
    time: Duration,
    enough: u64,
    phase: &str,
    tally: &Tally,
    progress: &impl Fn(&str),
) {
    let end = Instant::now() + time;
    let (mut last, mut at) = (tally.counts().calls, Instant::now());
    loop {
        let mut left = end.saturating_duration_since(Instant::now());
        if left.is_zero() && tally.counts().calls < enough {
            left = (end + LONGEST_WAIT).saturating_duration_since(Instant::now());
        }
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(Duration::from_secs(1))).await;
        let (calls, wrong, failed) = {
            let counts = tally.counts();
            (counts.calls, counts.wrong, counts.failed)
        };
        let rate = (calls - last) as f64 / at.elapsed().as_secs_f64();
        (last, at) = (calls, Instant::now());
        progress(&format!(
            "{phase}: {rate:.0} calls/s, {calls} calls, {wrong} wrong, {failed} failed"
        ));
    }
}
