use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use clap::Args;

use crate::engine::mix::Kind;
use crate::mcp::Mode::{self, Legacy, Modern};
use crate::mcp::job::Job;
use crate::peers::{self, Peer};
use crate::scenario::finish;
use crate::servers::shoal_binary;
use crate::turns::setup::Features;
use crate::turns::{
    BEHIND_GATEWAYS, Bar, Bench, Case, Column, Comparison, FLOOR, Row, Server, Turns, number,
};
use Bar::{Redis, TimesBase, TimesFewer};
use Server::{Cluster, Combined, Shoal};

#[derive(Debug, Args)]
pub(crate) struct Table {
    #[command(flatten)]
    turns: Turns,
    /// Other servers to measure as well, separated by commas; all of them if the option has no value. They are
    /// installed from npm, PyPI and the Go module proxy first.
    #[arg(long, num_args = 0.., value_delimiter = ',', default_missing_value = "all")]
    peers: Vec<String>,
    /// Directory of the installed peers [default: `peers` next to this program].
    #[arg(long)]
    peers_dir: Option<PathBuf>,
}

const RMCP: Server = Server::Own(BEHIND_GATEWAYS);
const RMCP_JSON: Server = Server::Own(&["serve-rmcp", "--stateful", "false", "--json", "true"]);

const BURST: Kind = Kind::Progress(Job::burst(10));

const PACED: Kind = Kind::Progress(Job {
    steps: 10,
    interval: Duration::from_millis(1),
});

const CASES: &[Line] = &[
    echo("floor", FLOOR, Legacy, "echo"),
    echo("rmcp stateful", RMCP, Legacy, "echo"),
    // Comparable with Shoal only in part, because Shoal always keeps a legacy session.
    echo("rmcp stateless JSON", RMCP_JSON, Legacy, "echo"),
    echo("rmcp modern", RMCP, Modern, "echo"),
    echo("rmcp modern JSON", RMCP_JSON, Modern, "echo"),
    echo("shoal legacy", Shoal, Legacy, "echo"),
    echo("shoal modern", Shoal, Modern, "echo"),
    // The call must not be repeated, so Shoal journals it before it runs.
    echo("shoal legacy journaled", Shoal, Legacy, "echo_once"),
    echo("cluster legacy", Cluster, Legacy, "echo"),
    echo("cluster modern", Cluster, Modern, "echo"),
    echo("cluster journaled", Cluster, Legacy, "echo_once"),
    echo("combined legacy", Combined, Legacy, "echo"),
    echo("combined journaled", Combined, Legacy, "echo_once"),
    // Like most real tools, `echo_slowly` takes longer than a call is held. Such a call needs a stream, and in a
    // cluster two steps in Redis.
    echo("shoal, 20 ms tool", Shoal, Legacy, "echo_slowly"),
    echo("cluster, 20 ms tool", Cluster, Legacy, "echo_slowly"),
    // The same tool as a call and as a task, which shows the price of declaring tasks.
    echo("shoal modern, 20 ms", Shoal, Modern, "echo_slowly"),
    echo("cluster modern, 20 ms", Cluster, Modern, "echo_slowly"),
    // The floor of a task makes two requests, the minimum: the call and a poll.
    work("floor, 20 ms task", FLOOR, Kind::Task),
    work("shoal, 20 ms task", Shoal, Kind::Task),
    work("cluster, 20 ms task", Cluster, Kind::Task),
    work("floor, 10 events", FLOOR, BURST),
    work("rmcp, 10 events", RMCP, BURST),
    work("shoal, 10 events", Shoal, BURST),
    work("floor, 10 in 10 ms", FLOOR, PACED),
    work("rmcp, 10 in 10 ms", RMCP, PACED),
    work("shoal, 10 in 10 ms", Shoal, PACED),
];

const BARS: &[(&str, Bar)] = &[
    ("shoal legacy", TimesBase(1.5)),
    ("shoal modern", TimesBase(1.5)),
    ("shoal legacy journaled", TimesBase(2.3)),
    ("cluster legacy", TimesBase(4.2)),
    ("cluster modern", TimesBase(4.2)),
    ("cluster journaled", TimesBase(5.5)),
    ("combined legacy", TimesBase(3.5)),
    ("cluster, 20 ms tool", TimesBase(9.0)),
    ("cluster, 20 ms tool", Redis(20.0)),
    ("shoal, 10 events", TimesBase(1.8)),
    ("shoal, 10 in 10 ms", TimesBase(1.8)),
    ("shoal legacy", TimesFewer(2.0, &["rmcp stateful"])),
    (
        "shoal modern",
        TimesFewer(2.0, &["rmcp modern", "rmcp modern JSON"]),
    ),
    ("shoal legacy", TimesFewer(12.0, &["TypeScript 1 stateful"])),
    ("shoal modern", TimesFewer(12.0, &["TypeScript 2 modern"])),
    // The cheaper of the two peers counts, although one keeps no session.
    (
        "shoal legacy",
        TimesFewer(70.0, &["FastMCP stateful", "FastMCP stateless JSON"]),
    ),
    ("shoal modern", TimesFewer(70.0, &["FastMCP modern"])),
    (
        "cluster legacy",
        TimesFewer(5.0, &["FastMCP proxy, legacy"]),
    ),
    (
        "cluster modern",
        TimesFewer(5.0, &["FastMCP proxy, modern"]),
    ),
];

const COLUMNS: &[Column] = &[
    ("server", |row| row.case.clone()),
    ("CPU µs", |row| number(row.cpu_us_per_call.median, 2)),
    ("× floor", Row::times_base),
    ("p50 µs", |row| number(row.p50_us.median, 0)),
    ("p99 µs", |row| number(row.p99_us.median, 0)),
    ("calls/s", |row| number(row.calls_per_s.median, 0)),
    ("RSS MiB", |row| number(row.rss_kib / 1024.0, 1)),
    ("wrong", |row| (row.wrong + row.failed).to_string()),
];

pub(crate) fn execute(table: &Table) -> anyhow::Result<bool> {
    let turns = &table.turns;
    ensure!(turns.rounds > 0, "at least one round is needed");
    let directory = match &table.peers_dir {
        // Absolute, because peers start in other directories.
        Some(directory) => std::path::absolute(directory)?,
        None => std::env::current_exe()?.with_file_name("peers"),
    };
    // Installs peers before this process is limited to one core.
    let (installed, left_out) = installed(&table.peers, &directory)?;
    // Without Shoal's binary, its rows are left out.
    let shoal = turns.shoal.clone().or_else(|| shoal_binary(None).ok());
    let mut bench = Bench::of(turns, shoal)?;
    bench.peers = directory;
    let cases = cases(&installed);
    let measuring = bench.measure(&cases, left_out);
    let measured = crate::runtime(Some(1))?.block_on(measuring)?;
    let comparison = Comparison::of("table", &bench, measured, COLUMNS, BARS);
    finish(&comparison, turns.json.as_ref())
}

/// Leaves out peers that fail. Blocks, for minutes at the first time.
fn installed(
    names: &[String],
    directory: &Path,
) -> anyhow::Result<(Vec<&'static Peer>, Vec<String>)> {
    let (mut installed, mut left_out) = (Vec::new(), Vec::new());
    for peer in peers::named(names)? {
        match peer.install(directory, crate::progress) {
            Ok(()) => installed.push(peer),
            Err(why) => {
                let rows = peer.variants.iter().map(|variant| variant.row);
                left_out.extend(rows.map(|row| format!("{row}: {why}")));
            }
        }
    }
    Ok((installed, left_out))
}

type Line = (&'static str, Server, Mode, Kind, &'static str);

const fn echo(name: &'static str, server: Server, mode: Mode, tool: &'static str) -> Line {
    (name, server, mode, Kind::Payload(32), tool)
}

const fn work(name: &'static str, server: Server, kind: Kind) -> Line {
    match kind {
        // The tool takes longer than `tasks.after`.
        Kind::Task => (name, server, Modern, kind, "echo_slowly"),
        _ => (name, server, Legacy, kind, "long_job"),
    }
}

fn cases(peers: &[&'static Peer]) -> Vec<Case> {
    let variants = peers
        .iter()
        .flat_map(|peer| peer.variants.iter().map(|variant| (*peer, variant)));
    let of_peers = variants.map(|(peer, variant)| {
        let server = Server::Peer(peer, variant);
        echo(variant.row, server, variant.mode, "echo")
    });
    let all = CASES.iter().copied().chain(of_peers);
    let case = |(name, server, mode, kind, tool): Line| Case {
        name: name.to_owned(),
        base: match kind {
            Kind::Task => "floor, 20 ms task",
            BURST => "floor, 10 events",
            PACED => "floor, 10 in 10 ms",
            _ => "floor",
        }
        .to_owned(),
        mode,
        server,
        kind,
        tool,
        features: Features {
            tasks: kind == Kind::Task,
            ..Features::DEFAULT
        },
    };
    all.map(case).collect()
}

#[cfg(test)]
mod tests {
    use super::{BARS, TimesFewer, cases};
    use crate::peers::PEERS;

    #[test]
    fn every_row_that_is_asked_for_exists() {
        let cases = cases(&PEERS.iter().collect::<Vec<_>>());
        let bases = cases.iter().map(|case| case.base.as_str());
        let barred = BARS.iter().flat_map(|(case, bar)| match bar {
            TimesFewer(_, others) => [&[*case], *others].concat(),
            _ => vec![*case],
        });
        for name in bases.chain(barred) {
            assert!(cases.iter().any(|case| case.name == name), "{name}");
        }
    }
}
