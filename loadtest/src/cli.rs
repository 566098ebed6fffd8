use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use clap::{
    Arg, ArgAction, ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
};

use crate::load::Load;
use crate::mcp::Mode;
use crate::result::{Compare, Report};

/// Load generator and verifier for any MCP server.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Drive a server with a mix of calls, in an open or closed loop, and verify every answer.
    #[command(visible_alias = "run")]
    Load(Load),
    /// Serve the floor: bare axum that parses and answers JSON-RPC.
    ServeFloor(ServeFloor),
    /// Serve the peer: an echo server on the official Rust SDK.
    ServeRmcp(ServeRmcp),
    /// Start the floor, the peer and Shoal, drive them in turns, and print one table.
    Table(crate::table::Table),
    /// Drive Shoal in turns with telemetry, without it, and with its collector down, and print one table.
    Telemetry(crate::features::Telemetry),
    /// Drive Shoal in turns with validation, authentication and telemetry off and on, and print one table.
    Features(crate::features::Arguments),
    /// Drop and resume streams at random, and check that each event arrives once and in order.
    Resume(Resume),
    /// Make one self-contained HTML page of results, with plots.
    Report(Report),
    /// Compare two or more results.
    Compare(Compare),
    /// Measure the cost of large bodies, compared with the floor, and the memory for many at the same time.
    Payload(crate::payload::Payload),
    /// Open and end sessions for a long time, and check for growing memory and for leftovers.
    Soak(crate::soak::Soak),
    /// Kill a process of a cluster under load, and measure the interruption for clients.
    Failover(crate::failover::Failover),
    /// Send more calls than a cluster's workers can run, and measure how many run and how soon the others are refused.
    Overload(crate::overload::Overload),
    /// Change a resource continuously, and measure how soon many listeners learn of the last change.
    Listeners(crate::listeners::Listeners),
    /// Let one tenant exhaust a cluster's limits, and measure the effect on another tenant.
    Tenants(crate::tenants::Tenants),
    /// Compute the number of nodes for a load from measured costs.
    Model(crate::model::Model),
    /// Measure the costs of each role of a cluster, for `model`.
    Cost(crate::cost::Cost),
    /// Open many silent streams, hold them while calls run, and print the cost of each.
    Idle(Idle),
}

#[derive(Debug, Args)]
pub(crate) struct ServeFloor {
    /// Address to listen on; port 0 chooses a free port.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Exit when standard input ends.
    #[arg(long, hide = true)]
    pub(crate) while_input: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeRmcp {
    /// Address to listen on; port 0 chooses a free port.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Exit when standard input ends.
    #[arg(long, hide = true)]
    pub(crate) while_input: bool,
    /// Keep legacy sessions.
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    pub(crate) stateful: bool,
    /// Answer with JSON where possible; works only without sessions.
    #[arg(long, default_value_t = false, action = ArgAction::Set)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// URL of an endpoint of the server; may be repeated to spread sessions and resumes over several endpoints at
    /// random.
    #[arg(long = "url", required_unless_present = "shoal")]
    pub(crate) urls: Vec<String>,
    /// Shoal binary to start, instead of a URL.
    #[arg(long, conflicts_with = "urls")]
    pub(crate) shoal: Option<PathBuf>,
    /// Number of clients at the same time.
    #[arg(long, default_value_t = 200)]
    pub(crate) clients: usize,
    /// Time during which new calls start.
    #[arg(long, default_value = "600s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Seed of all random decisions [default: a random one, which is printed].
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Maximum progress notifications of one call.
    #[arg(long, default_value_t = 60)]
    pub(crate) max_steps: u32,
    /// Maximum time between two progress notifications.
    #[arg(long, default_value = "100ms", value_parser = duration)]
    pub(crate) max_interval: Duration,
    /// Process id of the server, to measure its memory; includes its descendants; may be repeated.
    #[arg(long = "pid")]
    pub(crate) pids: Vec<u32>,
    /// File for the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Idle {
    /// URL of an endpoint of the server; may be repeated to spread streams and calls over several endpoints evenly.
    #[arg(long = "url", required_unless_present = "shoal")]
    pub(crate) urls: Vec<String>,
    /// Shoal binary to start, instead of URLs.
    #[arg(long, conflicts_with = "urls")]
    pub(crate) shoal: Option<PathBuf>,
    /// Start a cluster of two edges, session nodes, a worker and Redis; needs `redis-server`.
    #[arg(long, requires = "shoal")]
    pub(crate) cluster: bool,
    /// Number of session nodes of that cluster.
    #[arg(long, default_value_t = 1, requires = "cluster")]
    pub(crate) session_nodes: usize,
    /// First measure the same number of idle streams of bare axum, for comparison.
    #[arg(long)]
    pub(crate) floor: bool,
    /// Kind of streams: the GET streams of sessions (`legacy`) or `subscriptions/listen` (`modern`).
    #[arg(long, value_enum, default_value_t = Mode::Legacy)]
    pub(crate) mode: Mode,
    /// Number of streams to hold open.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) streams: usize,
    /// Number of legacy sessions without a stream to open afterwards.
    #[arg(long, default_value_t = 0)]
    pub(crate) bare_sessions: usize,
    /// Time between opening the streams and reading memory; must be longer than the server waits before it unloads
    /// sessions.
    #[arg(long, default_value = "45s", value_parser = duration)]
    pub(crate) settle: Duration,
    /// Time for which the streams stay open while calls run.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub(crate) hold: Duration,
    /// Echo calls a second during that time, in an open loop; 0 disables them.
    #[arg(long, default_value_t = 500)]
    pub(crate) rate: u32,
    /// Number of sessions that make these calls in turns.
    #[arg(long, default_value_t = 64)]
    pub(crate) callers: usize,
    /// Interval at which the server writes on a silent stream.
    #[arg(long, default_value = "15s", value_parser = duration)]
    pub(crate) keep_alive: Duration,
    /// Process of the server as NAME=PID, to measure its memory; may be repeated. Processes whose names differ only in
    /// a number (`edge-1`, `edge-2`) share the streams.
    #[arg(long = "pid", value_parser = crate::memory::named)]
    pub(crate) pids: Vec<(String, u32)>,
    /// HOST:PORT of the server's Redis, to measure its memory.
    #[arg(long)]
    pub(crate) redis: Option<String>,
    /// File for the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

/// Options that name files and processes, which differ between comparable runs.
const NAMES: [&str; 6] = ["shoal", "json", "logs", "pid", "peers-dir", "redis"];

static OPTIONS: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Returns the options of this program's command line, with defaults.
pub(crate) fn options() -> BTreeMap<String, String> {
    OPTIONS.get().cloned().unwrap_or_default()
}

/// Parses this program's command line, or ends the program with a message.
pub(crate) fn parse() -> Cli {
    let mut command = Cli::command();
    let matches = command.get_matches_mut();
    if let Some((name, chosen)) = matches.subcommand() {
        OPTIONS.get_or_init(|| options_of(&command, name, chosen));
    }
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn options_of(
    command: &clap::Command,
    name: &str,
    matches: &ArgMatches,
) -> BTreeMap<String, String> {
    let chosen = command.find_subcommand(name);
    let arguments = chosen.map(clap::Command::get_arguments);
    let option = |argument: &Arg| {
        let values = matches.try_get_raw(argument.get_id().as_str()).ok()??;
        let values: Vec<_> = values.map(OsStr::to_string_lossy).collect();
        Some((argument.get_long()?.to_owned(), values.join(" ")))
    };
    let options = arguments.into_iter().flatten().filter_map(option);
    options
        .filter(|(name, _)| !NAMES.contains(&name.as_str()))
        .collect()
}

/// Parses `250ms`, `10s`, `5m` or `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let unit_at = text
        .find(|character: char| !character.is_ascii_digit())
        .ok_or_else(|| format!("{text} has no unit (ms, s, m or h)"))?;
    let (number, unit) = text.split_at(unit_at);
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("{unit:?} is not a unit (ms, s, m or h)")),
    };
    number
        .parse()
        .ok()
        .and_then(|number: u64| number.checked_mul(milliseconds))
        .map(Duration::from_millis)
        .ok_or_else(|| format!("{text} is not a duration"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::CommandFactory;

    use super::{Cli, duration};

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_need_a_known_unit() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        for wrong in ["10", "s", "1.5s", "3 weeks", "99999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
