mod instructions;

use anyhow::ensure;
use clap::Args;

use crate::engine::mix::Kind;
use crate::mcp::Mode;
use crate::scenario::finish;
use crate::servers::collector::Conduct::{self, Answers, Hangs, Refuses};
use crate::servers::shoal_binary;
use crate::turns::setup::Authentication::{Jwt, Tokens};
use crate::turns::setup::Features;
use crate::turns::{Bar, Bench, Case, Column, Comparison, Row, Server, Turns, number, percent};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    turns: Turns,
    /// Protocol era to use [default: both].
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Cases to measure besides the one without features, separated by commas [default: all].
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Count the instructions of a call by callgrind instead, for machines with other load. Needs valgrind; ignores the
    /// options for sessions, times and rounds.
    #[arg(long)]
    instructions: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Telemetry {
    #[command(flatten)]
    turns: Turns,
    /// Protocol era to use.
    #[arg(long, value_enum, default_value_t = Mode::Legacy)]
    mode: Mode,
    /// Skip the cluster, which needs `redis-server`.
    #[arg(long)]
    no_cluster: bool,
}

const SECURED: &str = "JWT+policy+quotas+audit";

/// Ratio to the CPU time without telemetry or security.
const COST: Bar = Bar::EachRound(1.15);

const OUTAGE: Bar = Bar::AsGoodAs("traces 10 %");

const TELEMETRY_BARS: &[(&str, Bar)] = &[
    ("traces 10 %", COST),
    ("10 %, collector stopped", OUTAGE),
    ("10 %, collector hangs", OUTAGE),
    ("cluster traces 10 %", COST),
];

/// `±` is the spread of the figure before it.
const COLUMNS: &[Column] = &[
    ("era", |row| row.mode.name().to_owned()),
    ("case", |row| row.case.clone()),
    ("CPU µs/call", |row| number(row.cpu_us_per_call.median, 2)),
    ("±", |row| percent(row.cpu_us_per_call.noise)),
    ("× off", Row::times_base),
    ("+ µs", |row| {
        row.more_us.map_or("-".to_owned(), |it| number(it, 2))
    }),
    ("p50 µs", |row| number(row.p50_us.median, 0)),
    ("p99 µs", |row| number(row.p99_us.median, 0)),
    ("±", |row| percent(row.p99_us.noise)),
    ("calls/s", |row| number(row.calls_per_s.median, 0)),
    ("±", |row| percent(row.calls_per_s.noise)),
    ("spans", |row| row.spans_received.to_string()),
    ("lost", |row| {
        row.spans_lost.map_or("-".to_owned(), |it| it.to_string())
    }),
];

pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<bool> {
    let cases = chosen(arguments.mode, &arguments.only)?;
    let turns = &arguments.turns;
    if !arguments.instructions {
        return compare("features", turns, &cases, &[(SECURED, COST)]);
    }
    let shoal = shoal_binary(turns.shoal.as_deref())?;
    let counts = crate::runtime(Some(1))?.block_on(instructions::count(&cases, &shoal))?;
    finish(&counts, turns.json.as_ref())
}

pub(crate) fn telemetry(arguments: &Telemetry) -> anyhow::Result<bool> {
    let mut cases = telemetry_cases(arguments.mode);
    cases.retain(|case| !(arguments.no_cluster && case.server == Server::Cluster));
    compare("telemetry", &arguments.turns, &cases, TELEMETRY_BARS)
}

fn compare(
    scenario: &str,
    turns: &Turns,
    cases: &[Case],
    bars: &[(&str, Bar)],
) -> anyhow::Result<bool> {
    ensure!(
        turns.rounds > 1,
        "at least two rounds are needed: what they differ by is the noise that differences are judged by"
    );
    let mut bench = Bench::of(turns, Some(shoal_binary(turns.shoal.as_deref())?))?;
    bench.awake = true;
    let measuring = bench.measure(cases, Vec::new());
    let measured = crate::runtime(Some(1))?.block_on(measuring)?;
    let comparison = Comparison::of(scenario, &bench, measured, COLUMNS, bars);
    finish(&comparison, turns.json.as_ref())
}

fn chosen(mode: Option<Mode>, only: &[String]) -> anyhow::Result<Vec<Case>> {
    let modes = mode.map_or(vec![Mode::Legacy, Mode::Modern], |mode| vec![mode]);
    let mut cases: Vec<Case> = modes.into_iter().flat_map(feature_cases).collect();
    for name in only {
        let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        ensure!(
            names.contains(&name.as_str()),
            "there is no case {name:?}; there are: {}",
            names.join(", ")
        );
    }
    cases.retain(|case| only.is_empty() || case.name == "off" || only.contains(&case.name));
    Ok(cases)
}

fn feature_cases(mode: Mode) -> Vec<Case> {
    let with = |change: fn(&mut Features)| {
        let mut features = Features::NONE;
        change(&mut features);
        features
    };
    let (secured, traced) = (with(secure), traced(0.1, Answers));
    let rows = [
        ("off", Features::NONE),
        ("validation", Features::DEFAULT),
        ("authentication", with(|it| it.authentication = Tokens(1))),
        (
            "one of 1000 tokens",
            with(|it| it.authentication = Tokens(1000)),
        ),
        ("JWT", with(|it| it.authentication = Jwt)),
        ("policy", with(|it| it.policy = true)),
        ("quotas", with(|it| it.quotas = true)),
        ("audit", with(|it| it.audit = true)),
        (SECURED, secured),
        ("metrics", with(|it| it.metrics = true)),
        (
            "traces 10 %",
            Features {
                validation: false,
                ..traced
            },
        ),
        (
            "all",
            Features {
                authentication: Tokens(1),
                ..traced
            },
        ),
    ];
    rows.map(|(name, features)| case(mode, Server::Shoal, name, features))
        .to_vec()
}

fn secure(features: &mut Features) {
    features.authentication = Jwt;
    features.policy = true;
    features.quotas = true;
    features.audit = true;
}

fn telemetry_cases(mode: Mode) -> Vec<Case> {
    use Server::{Cluster, Shoal};
    const OFF: Features = Features::DEFAULT;

    let metrics = Features {
        metrics: true,
        ..OFF
    };
    let rows = [
        (Shoal, "off", OFF),
        (Shoal, "metrics", metrics),
        (Shoal, "traces 10 %", traced(0.1, Answers)),
        (Shoal, "traces 100 %", traced(1.0, Answers)),
        (Shoal, "10 %, collector stopped", traced(0.1, Refuses)),
        (Shoal, "10 %, collector hangs", traced(0.1, Hangs)),
        (Cluster, "cluster off", OFF),
        (Cluster, "cluster traces 10 %", traced(0.1, Answers)),
    ];
    rows.map(|(server, name, features)| case(mode, server, name, features))
        .to_vec()
}

fn traced(ratio: f64, collector: Conduct) -> Features {
    Features {
        metrics: true,
        traces: Some((ratio, collector)),
        ..Features::DEFAULT
    }
}

fn case(mode: Mode, server: Server, name: &str, features: Features) -> Case {
    let base = match server {
        Server::Cluster => "cluster off",
        _ => "off",
    };
    Case {
        name: name.to_owned(),
        base: base.to_owned(),
        mode,
        server,
        kind: Kind::Payload(32),
        tool: "echo",
        features,
    }
}
