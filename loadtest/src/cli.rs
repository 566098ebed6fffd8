//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand};

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
    /// Drives a server in a closed loop and verifies every answer.
    Run(Run),
    /// Drives a server with any mix of calls, in an open or closed loop, and verifies every answer.
    Load(Load),
    /// Serves the floor: bare axum that parses and answers JSON-RPC.
    ServeFloor(ServeFloor),
    /// Serves the peer: an echo server on the official Rust SDK.
    ServeRmcp(ServeRmcp),
    /// Starts floor, peer and Shoal, drives them in turns, and prints one table.
    Table(Table),
    /// Drives Shoal with and without telemetry, and with its collector down, in turns, and prints one table.
    Telemetry(crate::features::Telemetry),
    /// Drives Shoal with validation, authentication and telemetry off and on, in turns, and prints one table.
    Features(crate::features::Features),
    /// Drops and resumes streams at random and checks that nothing is lost, repeated or out of order.
    Resume(Resume),
    /// Makes one HTML page of results, with plots; it needs nothing else to be looked at.
    Report(Report),
    /// Puts two results or more side by side.
    Compare(Compare),
    /// Measures what large bodies cost beside the floor, and how much memory many at once take.
    Payload(crate::payload::Payload),
    /// Has clients come and go for a long time, and checks that nothing grows and nothing is left.
    Soak(crate::soak::Soak),
    /// Kills a process of a cluster under load, and measures what clients notice.
    Failover(crate::failover::Failover),
    /// Brings more calls than the workers of a cluster can run, and measures what is done and how soon the rest is refused.
    Overload(crate::overload::Overload),
    /// Has a resource change all the time, and measures how soon many listeners learn of the last change.
    Listeners(crate::listeners::Listeners),
    /// Has one tenant take all that it can get of a cluster, and measures what another one notices.
    Tenants(crate::tenants::Tenants),
    /// Shows hot spots of large clusters by simulation.
    Simulate(crate::simulate::Simulate),
    /// Says how many nodes a load takes, by what was measured.
    Model(crate::model::Model),
    /// Measures what each role of a cluster spends, for the model.
    Cost(crate::cost::Cost),
    /// Opens many streams on which nothing happens, holds them while calls run, and says what each costs.
    Idle(Idle),
    /// Holds a share of the streams of `idle`: what it starts once or more.
    #[command(hide = true)]
    IdleCrowd(IdleCrowd),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The MCP endpoint.
    #[arg(long)]
    pub(crate) url: String,
    /// The era to speak.
    #[arg(long, value_enum)]
    pub(crate) mode: Mode,
    /// Insist that the legacy server gives no session id, so that this is what is measured.
    #[arg(long)]
    pub(crate) legacy_stateless: bool,
    /// Sessions that call at the same time.
    #[arg(long, default_value_t = 64)]
    pub(crate) sessions: usize,
    /// Time measured.
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Time under load before measuring.
    #[arg(long, default_value = "2s", value_parser = duration)]
    pub(crate) warmup: Duration,
    /// The tool to call: it must answer with the text that it is given.
    #[arg(long, default_value = "echo")]
    pub(crate) tool: String,
    /// The name of the tool's argument.
    #[arg(long, default_value = "text")]
    pub(crate) argument: String,
    /// What the tool puts before the text in its answer.
    #[arg(long, default_value = "")]
    pub(crate) answer_prefix: String,
    /// The length of the text, in bytes.
    #[arg(long, default_value_t = 32)]
    pub(crate) text_bytes: usize,
    /// Threads that generate load.
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// A process of the server, for its CPU time and memory; may be repeated, descendants are found.
    #[arg(long = "pid")]
    pub(crate) pids: Vec<u32>,
    /// Where to write the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeFloor {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// End when standard input ends.
    #[arg(long, hide = true)]
    pub(crate) while_input: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeRmcp {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// End when standard input ends.
    #[arg(long, hide = true)]
    pub(crate) while_input: bool,
    /// Keep legacy sessions.
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    pub(crate) stateful: bool,
    /// Answer with JSON where possible; has an effect only without sessions.
    #[arg(long, default_value_t = false, action = ArgAction::Set)]
    pub(crate) json: bool,
}

/// How cases are measured that take turns.
#[derive(Debug, Args)]
pub(crate) struct Turns {
    /// The Shoal binary [default: `shoal` next to this program, if it is there].
    #[arg(long)]
    pub(crate) shoal: Option<PathBuf>,
    /// Sessions that call at the same time.
    #[arg(long, default_value_t = 64)]
    pub(crate) sessions: usize,
    /// Time measured for each case in each round, in seconds.
    #[arg(long, default_value_t = 10)]
    pub(crate) seconds: u64,
    /// Time under load before measuring.
    #[arg(long, default_value = "2s", value_parser = duration)]
    pub(crate) warmup: Duration,
    /// How often each case has its turn.
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Where to write the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Table {
    #[command(flatten)]
    pub(crate) turns: Turns,
    /// Other servers to measure as well, by name and separated by commas [all of them where none is named]. They are
    /// installed from npm, PyPI and the Go module proxy first.
    #[arg(long, num_args = 0.., value_delimiter = ',', default_missing_value = "all")]
    pub(crate) peers: Vec<String>,
    /// Where the peers are installed [default: `peers` next to this program].
    #[arg(long)]
    pub(crate) peers_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// An endpoint of the server; repeated, sessions and resumes are spread over all of them at random.
    #[arg(long = "url", required_unless_present = "shoal")]
    pub(crate) urls: Vec<String>,
    /// The Shoal binary to start, instead of a URL.
    #[arg(long, conflicts_with = "urls")]
    pub(crate) shoal: Option<PathBuf>,
    /// Clients at the same time.
    #[arg(long, default_value_t = 200)]
    pub(crate) clients: usize,
    /// Time after which no new call begins.
    #[arg(long, default_value = "600s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Fixes every random decision [default: a random one, which is printed].
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// The most progress notifications of one call.
    #[arg(long, default_value_t = 60)]
    pub(crate) max_steps: usize,
    /// The longest time between two progress notifications.
    #[arg(long, default_value = "100ms", value_parser = duration)]
    pub(crate) max_interval: Duration,
    /// A process of the server, for its memory; may be repeated, descendants are found.
    #[arg(long = "pid")]
    pub(crate) pids: Vec<u32>,
    /// Where to write the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Idle {
    /// An endpoint of the server; repeated, streams and calls are spread over all of them evenly.
    #[arg(long = "url", required_unless_present = "shoal")]
    pub(crate) urls: Vec<String>,
    /// The Shoal binary to start, instead of URLs.
    #[arg(long, conflicts_with = "urls")]
    pub(crate) shoal: Option<PathBuf>,
    /// Start it as two edges, session nodes, a worker and Redis; needs `redis-server`.
    #[arg(long, requires = "shoal")]
    pub(crate) cluster: bool,
    /// Session nodes of that cluster.
    #[arg(long, default_value_t = 1, requires = "cluster")]
    pub(crate) session_nodes: usize,
    /// First measure as many idle streams of bare axum, to compare with.
    #[arg(long)]
    pub(crate) floor: bool,
    /// What to open: sessions with their GET stream (`legacy`) or `subscriptions/listen` (`modern`).
    #[arg(long, value_enum, default_value_t = Mode::Legacy)]
    pub(crate) mode: Mode,
    /// Streams to hold open.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) streams: usize,
    /// Legacy sessions to open after that without a stream.
    #[arg(long, default_value_t = 0)]
    pub(crate) bare_sessions: usize,
    /// Time between opening and reading memory: longer than what the server waits before it puts sessions away.
    #[arg(long, default_value = "45s", value_parser = duration)]
    pub(crate) settle: Duration,
    /// How long the streams are held while calls run.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub(crate) hold: Duration,
    /// Echo calls per second meanwhile, in an open loop; 0 for none.
    #[arg(long, default_value_t = 500)]
    pub(crate) rate: u32,
    /// Sessions that these calls take turns over.
    #[arg(long, default_value_t = 64)]
    pub(crate) callers: usize,
    /// How often the server promises to write on a silent stream.
    #[arg(long, default_value = "15s", value_parser = duration)]
    pub(crate) keep_alive: Duration,
    /// A process of the server as NAME=PID, for its memory; streams are shared out over processes that are named alike
    /// but for their number (`edge-1`, `edge-2`).
    #[arg(long = "pid")]
    pub(crate) pids: Vec<crate::idle::NamedProcess>,
    /// The HOST:PORT of the server's Redis, for its memory.
    #[arg(long)]
    pub(crate) redis: Option<String>,
    /// Where to write the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct IdleCrowd {
    #[arg(long = "url", required = true)]
    pub(crate) urls: Vec<String>,
    #[arg(long, value_enum)]
    pub(crate) mode: Mode,
    /// Leave the streams out: only sessions.
    #[arg(long)]
    pub(crate) bare: bool,
    /// How many come before this share's.
    #[arg(long)]
    pub(crate) first: usize,
    #[arg(long)]
    pub(crate) count: usize,
    #[arg(long, value_parser = duration)]
    pub(crate) keep_alive: Duration,
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
