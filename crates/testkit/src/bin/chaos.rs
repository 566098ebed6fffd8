//! Breaks clusters under load and checks that they keep their promises.
#![expect(clippy::print_stdout, reason = "the report is what it is for")]

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum as _};
use shoal_testkit::chaos::{self, Fault, Options};

/// Starts a cluster of real processes, breaks it under load, and checks what its clients saw.
///
/// Prints a block for each kind of fault. The exit code is 1 if any promise was broken; then logs, histories
/// and findings are left in a directory that is named. The `shoal` binary is the one in TEST_SHOAL_BIN, else
/// the one beside this program.
#[derive(Debug, Parser)]
#[command(after_help = kinds())]
struct Arguments {
    /// What fails: one of the kinds below; several, separated by commas; or all, each in turn.
    #[arg(long, default_value = "all")]
    fault: String,
    /// For how long things fail, for each kind.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Clients, each with a session.
    #[arg(long, default_value_t = 200)]
    sessions: usize,
    /// Clients of 2026-07-28.
    #[arg(long, default_value_t = 50)]
    modern: usize,
    /// Clients of 2026-07-28 whose calls become tasks.
    #[arg(long, default_value_t = 0)]
    tasks: usize,
    /// Fixes every decision; drawn unless given.
    #[arg(long)]
    seed: Option<u64>,
    /// Edges.
    #[arg(long, default_value_t = 3)]
    edges: usize,
    /// Session nodes.
    #[arg(long, default_value_t = 3)]
    sessions_nodes: usize,
    /// Workers.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// How long a node owns its sessions without renewing its lease, in milliseconds.
    #[arg(long, default_value_t = 3000)]
    lease_ms: u64,
    /// How long a connection between two members may be silent before it counts as broken, in milliseconds.
    #[arg(long, default_value_t = 1500)]
    silence_ms: u64,
    /// How long open requests may take once nothing fails any more, in seconds.
    #[arg(long, default_value_t = 60)]
    settle: u64,
    /// How long a client thinks between two calls, at most, in milliseconds.
    #[arg(long, default_value_t = 1500)]
    thinking_ms: u64,
    /// Everything in one process on its embedded store; only with --fault none.
    #[arg(long)]
    one_process: bool,
    /// A setting of every member, such as logging.level=debug; may be repeated.
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

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
