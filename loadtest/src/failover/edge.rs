//! All streams of a killed edge must return without loss. Their return must not slow down other
//! clients.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::ensure;
use tokio::time::{Instant, sleep, sleep_until};

use super::Failover;
use super::crowd::Crowd;
use super::timeline::show;
use crate::connection::Goodbye;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::mcp::tools::increment;
use crate::outcome::Outcome;
use crate::servers;
use crate::steady::{Conduct, Done, Steady};
use crate::target::Target;
use crate::times;

const FACTOR: f64 = 3.0;

pub(super) async fn run(options: &Failover) -> anyhow::Result<Outcome> {
    ensure!(options.edges > 1, "somebody must be left to come back to");
    let mut outcome = options.begin(format!(
        "one of {} edges killed with {} streams open on it",
        options.edges, options.streams
    ));
    let cluster = options.cluster().await?;
    let mut targets = servers::targets(&cluster).await?;
    let others: Arc<[Target]> = targets.split_off(1).into();
    let findings = Arc::<Findings>::default();

    let crowd = Crowd::open(options.streams, &targets[0], &others, &findings).await?;
    crate::progress(&format!("{} streams are open", options.streams));
    let (count, rate) = (options.steady, options.steady_rate);
    let steady = Steady::start(count, rate, &others, Conduct::Count, &findings).await?;
    let refused = Arc::clone(&steady.refusals);
    let began = Instant::now();
    sleep(options.before).await;
    let victim = cluster.edges()[0];
    let mut changer = Client::open(&others[0], Mode::Legacy, Goodbye::Finish).await?;
    // The first clients notice the kill before `kill` returns.
    let killed = Instant::now();
    victim.kill().await?;
    crate::progress(&format!("{} is killed", victim.name()));

    // Each stream must report this change after its return.
    increment(&mut changer).await?;

    let deadline = killed + options.after;
    crowd.until_back(deadline).await;
    let told = crowd.until_told(deadline).await;
    if told < options.streams {
        let missing = options.streams - told;
        findings.add(
            "lost",
            format_args!("{missing} streams were not told of a change"),
        );
    }
    sleep_until(deadline).await;
    let steady = steady.stop().await;
    outcome.seconds = began.elapsed().as_secs_f64();
    let returns = crowd.close().await;
    let back = returns.moments;
    let all_back = back.iter().max().map(|last| last.duration_since(killed));

    for (name, value) in [
        ("streams open at the kill", options.streams as u64),
        ("streams resumed", back.len() as u64),
        ("streams told of a change that they missed", told as u64),
        (
            "connections refused or broken on the way back",
            returns.broken,
        ),
        ("resumes refused for a while (429, 503)", returns.refused),
        (
            "steady calls refused for a while (429, 503)",
            refused.load(Ordering::Relaxed),
        ),
    ] {
        outcome.plain(name, value as f64, "");
    }
    if let Some(time) = all_back {
        outcome.lower("until all streams were back", time.as_secs_f64(), "s");
    }
    let since = times::of(back.iter().map(|at| at.duration_since(killed)));
    outcome.latency("from the kill to the resumed stream", &since);
    let what = format!("{} of {} streams resumed: all", back.len(), options.streams);
    outcome.verdict(what, back.len() == options.streams);
    let first_back = back.iter().min().copied().unwrap_or(deadline);
    let last_back = back.iter().max().copied().unwrap_or(deadline);
    judge(&mut outcome, &steady, [killed, first_back, last_back]);
    let kill = ("edge killed", killed);
    show(
        &mut outcome,
        began,
        &steady,
        ("streams resumed", &back),
        kill,
    );
    outcome.violations = findings.violations();
    Ok(outcome)
}

/// Compares other clients' calls before the kill with those during the return of the streams. The
/// calls until the first stream is back count separately, because broken connections keep this
/// machine busy then.
fn judge(outcome: &mut Outcome, steady: &[Done], [killed, first_back, last_back]: [Instant; 3]) {
    let due = |from: Instant, until: Instant| {
        let within = steady
            .iter()
            .filter(|done| (from..until).contains(&done.due));
        times::of(within.map(|done| done.latency()))
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
