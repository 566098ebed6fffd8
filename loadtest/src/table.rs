//! Floor, peer and Shoal in one table of the same run.
//!
//! Every case of every round gets a server process of its own, so that no case inherits another's
//! memory; the cases take turns, so that a slow minute of the machine falls on all of them.

mod case;
mod redis;
mod row;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use crate::affinity::Cores;
use crate::connection::Goodbye;
use crate::drive::{self, Call, Plan};
use crate::mcp::client::Client;
use crate::report::{self, RunReport};
use crate::servers::cluster::Cluster;
use crate::servers::spawned::{Environment, Spawned};
use crate::target::Target;
use case::{CASES, Case, Server};
use row::{Bar, Row};

/// What to tabulate, and how.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The Shoal binary; without one its rows are left out.
    pub(crate) shoal: Option<PathBuf>,
    /// Sessions that call at the same time.
    pub(crate) sessions: usize,
    /// Time under load before measuring.
    pub(crate) warmup: Duration,
    /// Time measured, for each case in each round.
    pub(crate) duration: Duration,
    /// How often each case has its turn.
    pub(crate) rounds: usize,
    /// Where servers and generator run; `None` leaves it to the system.
    pub(crate) cores: Option<Cores>,
}

/// The finished table.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    /// Sessions that called at the same time.
    sessions: usize,
    /// Time measured for each case in each round, in seconds.
    seconds: f64,
    /// How often each case had its turn.
    rounds: usize,
    /// True where servers and generator each had a core of their own.
    pinned: bool,
    rows: Vec<Row>,
    /// Whether Shoal meets its bar; `None` without Shoal.
    bar: Option<Bar>,
    /// Why a case has no row.
    left_out: Vec<String>,
}

impl Table {
    /// True where no server gave a wrong answer and no call failed.
    pub(crate) fn is_correct(&self) -> bool {
        self.rows
            .iter()
            .all(|row| row.wrong == 0 && row.failed == 0)
    }
}

/// Runs every case in every round.
///
/// # Errors
///
/// Where a server does not start or its sessions cannot be opened.
pub(crate) async fn run(options: &Options, progress: impl Fn(&str)) -> anyhow::Result<Table> {
    let mut reports: Vec<Vec<RunReport>> = vec![Vec::new(); CASES.len()];
    let mut left_out = Vec::new();
    for round in 1..=options.rounds {
        for (case, reports) in CASES.iter().zip(&mut reports) {
            let name = case.name;
            match turn(case, options, |line| {
                progress(&format!("round {round}/{} {name}: {line}", options.rounds));
            })
            .await
            .with_context(|| format!("case {name}"))?
            {
                Turn::Measured(report) => reports.push(*report),
                Turn::LeftOut(why) if round == 1 => left_out.push(format!("{name}: {why}")),
                Turn::LeftOut(_) => {}
            }
        }
    }
    let rows = row::rows(&reports);
    Ok(Table {
        sessions: options.sessions,
        seconds: options.duration.as_secs_f64(),
        rounds: options.rounds,
        pinned: options.cores.is_some(),
        bar: row::bar(&rows),
        rows,
        left_out,
    })
}

/// Nobody else in the table keeps metrics; `loadtest telemetry` says what they add.
fn without_telemetry() -> Environment {
    vec![("SHOAL_TELEMETRY__ENABLED", "false".to_owned())]
}

/// How one case's turn went.
enum Turn {
    Measured(Box<RunReport>),
    LeftOut(String),
}

async fn turn(case: &Case, options: &Options, progress: impl Fn(&str)) -> anyhow::Result<Turn> {
    let core = options.cores.map(|cores| cores.server);
    let server = match (&case.server, &options.shoal) {
        (Server::Own(arguments), _) => Running::One(Spawned::own(arguments, core)?),
        (Server::Shoal, Some(program)) => {
            Running::One(Spawned::shoal(program, core, &without_telemetry())?)
        }
        (Server::Cluster, Some(program)) => {
            Running::Many(Cluster::start(program, core, &without_telemetry())?)
        }
        (Server::Shoal | Server::Cluster, None) => {
            return Ok(Turn::LeftOut("no shoal binary".to_owned()));
        }
    };
    if !has_tool(server.url(), case).await? {
        return Ok(Turn::LeftOut(format!(
            "the server has no tool {}",
            case.tool
        )));
    }
    let plan = Plan {
        url: server.url().to_owned(),
        mode: case.mode,
        stateless: false,
        sessions: options.sessions,
        warmup: options.warmup,
        duration: options.duration,
        call: Call {
            tool: case.tool.to_owned(),
            argument: "text".to_owned(),
            text_bytes: 32,
            answer_prefix: String::new(),
        },
        pids: server.pids(),
    };
    let before = server.redis_commands()?;
    let mut report = drive::run(&plan, progress).await?;
    report.redis_commands = redis::since(&before, &server.redis_commands()?);
    Ok(Turn::Measured(Box::new(report)))
}

/// What is measured.
enum Running {
    One(Spawned),
    Many(Cluster),
}

impl Running {
    fn url(&self) -> &str {
        match self {
            Self::One(server) => &server.url,
            Self::Many(cluster) => &cluster.url,
        }
    }

    fn pids(&self) -> Vec<u32> {
        match self {
            Self::One(server) => vec![server.pid()],
            Self::Many(cluster) => cluster.pids(),
        }
    }

    fn redis_commands(&self) -> anyhow::Result<Vec<(String, u64)>> {
        match self {
            Self::One(_) => Ok(Vec::new()),
            Self::Many(cluster) => cluster.redis_commands(),
        }
    }
}

/// Whether the server lists the tool of `case`.
async fn has_tool(url: &str, case: &Case) -> anyhow::Result<bool> {
    let target = Target::resolve(url).await?;
    let mut client = Client::open(&target, case.mode, Goodbye::Finish).await?;
    let tools = client.tools().await?;
    // A server without sessions may refuse this, and nothing depends on it.
    client.end().await.ok();
    Ok(tools.iter().any(|tool| tool == case.tool))
}

/// The default Shoal binary: the one built next to this program, if there is one.
pub(crate) fn sibling_shoal() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let sibling = program.parent().map(|directory| directory.join("shoal"))?;
    Path::is_file(&sibling).then_some(sibling)
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "echo of 32 bytes, {} sessions, {} s a case, median of {} rounds, telemetry off, {}",
            self.sessions,
            self.seconds,
            self.rounds,
            if self.pinned {
                "server and generator on a core each"
            } else {
                "not pinned"
            }
        )?;
        writeln!(out)?;
        row::write_rows(out, &self.rows)?;
        redis::write(out, &self.rows)?;
        report::write_disturbance(out, self.rows.iter().map(|row| row.other_cores))?;
        for line in &self.left_out {
            writeln!(out, "left out: {line}")?;
        }
        for row in &self.rows {
            for example in &row.examples {
                writeln!(out, "{}: {example}", row.case)?;
            }
        }
        match &self.bar {
            Some(bar) => write!(out, "{bar}"),
            None => write!(out, "bar: not judged without Shoal"),
        }
    }
}
