mod progress;
mod session;
mod tally;
mod task;

pub(crate) use session::text;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use http::HeaderValue;
use tokio::task::JoinSet;

use crate::mcp::Mode;
use crate::process;
use crate::report::{Latency, RedisUsage, RunReport, ServerUsage};
use crate::servers::cluster::redis::Redis;
use crate::target::Target;
pub(crate) use progress::Progress;
use tally::{Phase, Tally};
pub(crate) use task::POLL_INTERVAL_MS;

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
    pub(crate) redis: Option<Redis>,
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) argument: String,
    pub(crate) text_bytes: usize,
    pub(crate) answer_prefix: String,
    pub(crate) progress: Option<Progress>,
    /// Needs the modern era and a slow tool.
    pub(crate) as_task: bool,
}

impl Call {
    pub(crate) fn echo(tool: &str, text_bytes: usize) -> Self {
        Self {
            tool: tool.to_owned(),
            argument: "text".to_owned(),
            text_bytes,
            answer_prefix: String::new(),
            progress: None,
            as_task: false,
        }
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
    let calls_before = tally.calls();
    let before = Reading::take(plan)?;
    let enough = calls_before + plan.least_calls;
    observe(plan.duration, enough, "measure", &tally, &progress).await;
    let elapsed = began.elapsed();
    let calls = tally.calls() - calls_before;
    let after = Reading::take(plan)?;
    tally.enter(Phase::Stop);
    while running.join_next().await.is_some() {}

    let readings = before.as_ref().zip(after.as_ref());
    Ok(RunReport {
        redis: readings.and_then(|(before, after)| after.redis_since(before, calls)),
        url: plan.url.clone(),
        mode: plan.mode,
        sessions: plan.sessions,
        seconds: elapsed.as_secs_f64(),
        calls,
        calls_per_s: calls as f64 / elapsed.as_secs_f64(),
        latency: Latency::of(&tally.latencies()),
        server: readings.map(|(before, after)| {
            ServerUsage::between(&before.server, &after.server, calls, elapsed)
        }),
        other_cores: readings.map(|(before, after)| {
            after.others.saturating_sub(before.others).as_secs_f64() / elapsed.as_secs_f64()
        }),
        wrong: tally.wrong(),
        failed: tally.failed(),
        examples: tally.examples(),
    })
}

struct Reading {
    server: process::Usage,
    others: Duration,
    redis: Option<(Duration, Vec<(String, u64)>)>,
}

impl Reading {
    fn take(plan: &Plan) -> anyhow::Result<Option<Self>> {
        if plan.pids.is_empty() {
            return Ok(None);
        }
        let server =
            process::measure(&plan.pids).context("could not read the server's processes")?;
        let mut pids = plan.pids.clone();
        pids.push(std::process::id());
        let ours = process::measure(&pids)?;
        Ok(Some(Self {
            server,
            others: process::machine_cpu()?.saturating_sub(ours.cpu),
            redis: match plan.redis {
                Some(redis) => Some((redis.cpu()?, redis.commands()?)),
                None => None,
            },
        }))
    }

    fn redis_since(&self, before: &Self, calls: u64) -> Option<RedisUsage> {
        let ((earlier, before), (now, after)) = before.redis.as_ref().zip(self.redis.as_ref())?;
        let earlier_count = |name: &str| {
            let known = before.iter().find(|(known, _)| known == name);
            known.map_or(0, |(_, count)| *count)
        };
        let since = |(name, count): &(String, u64)| {
            (name.clone(), count.saturating_sub(earlier_count(name)))
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
    let (mut last, mut at) = (tally.calls(), Instant::now());
    loop {
        let mut left = end.saturating_duration_since(Instant::now());
        if left.is_zero() && tally.calls() < enough {
            left = (end + LONGEST_WAIT).saturating_duration_since(Instant::now());
        }
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(Duration::from_secs(1))).await;
        let calls = tally.calls();
        let rate = (calls - last) as f64 / at.elapsed().as_secs_f64();
        (last, at) = (calls, Instant::now());
        progress(&format!(
            "{phase}: {rate:.0} calls/s, {calls} calls, {} wrong, {} failed",
            tally.wrong(),
            tally.failed()
        ));
    }
}
