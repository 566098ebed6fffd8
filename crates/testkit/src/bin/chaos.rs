//! Breaks clusters under load and checks that they keep their promises.
#![expect(clippy::print_stdout, reason = "the report is what it is for")]

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum as _};
use shoal_testkit::chaos::{self, Fault, Options};
use shoal_testkit::cluster::setting;

/// Start a cluster of real processes, inject faults under load, and check the clients' histories.
///
/// Prints a block for each kind of fault. The exit code is 1 if the cluster broke a promise; the report then names the
/// directory of the logs, histories and findings. The `shoal` binary is TEST_SHOAL_BIN, else the one beside this
/// program.
#[derive(Debug, Parser)]
#[command(after_help = kinds())]
struct Arguments {
    /// Faults to inject: kinds from the list below, separated by commas, or all, each in turn.
    #[arg(long, default_value = "all")]
    fault: String,
    /// Duration of the faults, for each kind, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Number of clients of 2025-11-25, each with a session.
    #[arg(long, default_value_t = 200)]
    sessions: usize,
    /// Number of clients of 2026-07-28.
    #[arg(long, default_value_t = 50)]
    modern: usize,
    /// Number of clients of 2026-07-28 whose calls become tasks.
    #[arg(long, default_value_t = 0)]
    tasks: usize,
    /// Seed of all random decisions [default: a random one, which is printed].
    #[arg(long)]
    seed: Option<u64>,
    /// Number of edges.
    #[arg(long, default_value_t = 3)]
    edges: usize,
    /// Number of session nodes.
    #[arg(long, default_value_t = 3)]
    sessions_nodes: usize,
    /// Number of workers.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Time for which a node owns its sessions without renewing its lease, in milliseconds.
    #[arg(long, default_value_t = 3000)]
    lease_ms: u64,
    /// Silence after which a connection between two members counts as broken, in milliseconds.
    #[arg(long, default_value_t = 1500)]
    silence_ms: u64,
    /// Maximum time for open requests to finish after the last fault, in seconds.
    #[arg(long, default_value_t = 60)]
    settle: u64,
    /// Maximum pause of a client between two calls, in milliseconds.
    #[arg(long, default_value_t = 1500)]
    thinking_ms: u64,
    /// Run everything in one process on its embedded store; only with --fault none.
    #[arg(long)]
    one_process: bool,
    /// Setting of every member, such as logging.level=debug; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let faults = faults(&arguments.fault)?;
    let seed = arguments.seed.unwrap_or_else(rand::random);
    println!("seed {seed}");
    let mut clean = true;
    for fault in faults {
        let report = chaos::run(&arguments.options(fault, seed)).await?;
        println!("\n{report}");
        clean &= report.is_clean();
    }
    Ok(if clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Arguments {
    fn options(&self, fault: Fault, seed: u64) -> Options {
        Options {
            fault,
            seed,
            time: Duration::from_secs(self.seconds),
            settle: Duration::from_secs(self.settle),
            lease: Duration::from_millis(self.lease_ms),
            silence: Duration::from_millis(self.silence_ms),
            sessions: self.sessions,
            modern: self.modern,
            tasks: self.tasks,
            thinking: Duration::from_millis(self.thinking_ms),
            edges: self.edges,
            session_nodes: self.sessions_nodes,
            workers: self.workers,
            one_process: self.one_process,
            settings: self.settings.clone(),
            ..Options::default()
        }
    }
}

fn kinds() -> String {
    let mut text = "Kinds of faults:\n".to_owned();
    for kind in Fault::value_variants() {
        let value = kind.to_possible_value();
        let help = value.and_then(|value| value.get_help().map(ToString::to_string));
        text.push_str(&format!(
            "  {:<20} {}\n",
            kind.name(),
            help.unwrap_or_default()
        ));
    }
    text
}

fn faults(text: &str) -> anyhow::Result<Vec<Fault>> {
    if text == "all" {
        return Ok(Fault::all());
    }
    let one = |name| Fault::from_str(name, true).map_err(anyhow::Error::msg);
    text.split(',').map(one).collect()
}
