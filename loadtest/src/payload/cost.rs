use std::path::Path;

use anyhow::Context;

use super::Payload;
use crate::drive::{self, Call, Plan};
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::outcome::Outcome;
use crate::report::median;
use crate::servers::Running;
use crate::servers::cluster::Cluster;
use crate::servers::spawned::{Environment, Spawned};

/// The first case is the reference of the others.
const CASES: [(&str, Mode); 5] = [
    ("floor", Mode::Legacy),
    ("shoal legacy", Mode::Legacy),
    ("shoal modern", Mode::Modern),
    ("cluster legacy", Mode::Legacy),
    ("cluster modern", Mode::Modern),
];

pub(super) async fn measure(
    options: &Payload,
    shoal: &Path,
    outcome: &mut Outcome,
    findings: &Findings,
) -> anyhow::Result<()> {
    let wanted = CASES
        .iter()
        .filter(|(case, _)| !(options.no_cluster && case.starts_with("cluster")));
    let cases: Vec<_> = wanted.copied().collect();
    let mut rounds = vec![vec![Vec::new(); cases.len()]; options.sizes.len()];
    for round in 1..=options.rounds {
        for (size, rounds) in options.sizes.iter().zip(&mut rounds) {
            for ((case, mode), cost) in cases.iter().zip(rounds) {
                let server = start(case, shoal).with_context(|| (*case).to_owned())?;
                let plan = Plan {
                    sessions: options.sessions,
                    warmup: options.warmup,
                    duration: options.duration,
                    call: Call::echo("echo", *size),
                    ..Plan::of(&server, *mode)
                };
                let report = drive::run(&plan, |_| {})
                    .await
                    .with_context(|| (*case).to_owned())?;
                let wrong = report.wrong + report.failed;
                for _ in 0..wrong {
                    let example = report.examples.first().map_or("", String::as_str);
                    findings.add(
                        "wrong or no answer",
                        format_args!("{case}, {size} B: {example}"),
                    );
                }
                crate::progress(&format!(
                    "round {round}/{} {case}, {size} B: {:.0} µs of CPU a call, {} calls",
                    options.rounds,
                    report.cpu_us_per_call(),
                    report.calls
                ));
                cost.push(report.cpu_us_per_call());
            }
        }
    }
    for (&size, rounds) in options.sizes.iter().zip(&rounds) {
        let floor = &rounds[0];
        for ((case, _), cost) in cases.iter().zip(rounds) {
            let per_byte = median(cost.iter().copied()) * 1e3 / size as f64;
            outcome.lower(format!("{case}, {size} B: CPU a byte"), per_byte, "ns");
            if *case != "floor" {
                // Within the same round, a slow minute affects both costs.
                let ratios = cost.iter().zip(floor).map(|(cost, floor)| cost / floor);
                super::judge(outcome, case, size, median(ratios));
            }
        }
    }
    Ok(())
}

fn start(case: &str, shoal: &Path) -> anyhow::Result<Running> {
    let environment: Environment = vec![("SHOAL_TELEMETRY__ENABLED", "false".to_owned())];
    Ok(match case {
        "floor" => Running::One(Spawned::own(&["serve-floor"], None)?),
        "shoal legacy" | "shoal modern" => Running::One(Spawned::shoal(shoal, None, &environment)?),
        _ => Running::Many(Cluster::start(shoal, None, &environment)?),
    })
}
