//! Load generator and verifier for any MCP server.

mod affinity;
mod cli;
mod connection;
mod drive;
mod failure;
mod mcp;
mod process;
mod report;
mod resume;
mod servers;
mod table;
mod target;

use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Parser;
use cli::{Cli, Command};
use servers::{floor, peer, spawned::Spawned};
use tokio::runtime::{Builder, Runtime};

fn main() -> ExitCode {
    match execute(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            progress(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// True where all that was checked was right.
fn execute(command: Command) -> anyhow::Result<bool> {
    match command {
        Command::Run(arguments) => run(arguments),
        Command::ServeFloor(arguments) => {
            runtime(None)?.block_on(floor::serve(arguments.listen))?;
            Ok(true)
        }
        Command::ServeRmcp(arguments) => {
            let options = peer::Options {
                stateful: arguments.stateful,
                json: arguments.json,
            };
            runtime(None)?.block_on(peer::serve(arguments.listen, options))?;
            Ok(true)
        }
        Command::Table(arguments) => table(arguments),
        Command::Resume(arguments) => resume(arguments),
    }
}

/// True where every call was answered rightly.
fn run(arguments: cli::Run) -> anyhow::Result<bool> {
    let plan = drive::Plan {
        url: arguments.url,
        mode: arguments.mode,
        stateless: arguments.legacy_stateless,
        sessions: arguments.sessions,
        warmup: arguments.warmup,
        duration: arguments.duration,
        call: drive::Call {
            tool: arguments.tool,
            argument: arguments.argument,
            text_bytes: arguments.text_bytes,
            answer_prefix: arguments.answer_prefix,
        },
        pids: arguments.pids,
    };
    let report = runtime(Some(arguments.threads))?.block_on(drive::run(&plan, progress))?;
    say(&report);
    if let Some(path) = &arguments.json {
        report::write_json(path, &report)?;
    }
    Ok(report.wrong == 0 && report.failed == 0)
}

/// True where every call of every case was answered rightly, whatever it cost.
fn table(arguments: cli::Table) -> anyhow::Result<bool> {
    ensure!(arguments.rounds > 0, "at least one round is needed");
    let cores = affinity::pair();
    if let Some(cores) = cores {
        // Before the runtime: its threads inherit it.
        affinity::pin(cores.generator).context("could not pin the generator")?;
    }
    let options = table::Options {
        shoal: arguments.shoal.or_else(table::sibling_shoal),
        sessions: arguments.sessions,
        warmup: arguments.warmup,
        duration: std::time::Duration::from_secs(arguments.seconds),
        rounds: arguments.rounds,
        cores,
    };
    let table = runtime(Some(1))?.block_on(table::run(&options, progress))?;
    say(&table);
    if let Some(path) = &arguments.json {
        report::write_json(path, &table)?;
    }
    Ok(table.is_correct())
}

/// True where no promise was broken.
fn resume(arguments: cli::Resume) -> anyhow::Result<bool> {
    let server = match &arguments.shoal {
        Some(program) => Some(Spawned::shoal(program, None)?),
        None => None,
    };
    let (urls, pids) = match &server {
        Some(server) => (vec![server.url.clone()], vec![server.pid()]),
        None => (arguments.urls, arguments.pids),
    };
    let options = resume::Options {
        urls,
        clients: arguments.clients,
        duration: arguments.duration,
        seed: arguments.seed.unwrap_or_else(rand::random),
        max_steps: arguments.max_steps,
        max_interval: arguments.max_interval,
        pids,
    };
    progress(&format!("seed {}", options.seed));
    let report = runtime(None)?.block_on(resume::run(&options, progress))?;
    say(&report);
    if let Some(path) = &arguments.json {
        report::write_json(path, &report)?;
    }
    Ok(report.is_clean())
}

/// A runtime of `threads` threads; `None` for as many as this process has cores.
fn runtime(threads: Option<usize>) -> anyhow::Result<Runtime> {
    let runtime = match threads {
        Some(1) => Builder::new_current_thread().enable_all().build(),
        Some(threads) => Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .enable_all()
            .build(),
        None => Builder::new_multi_thread().enable_all().build(),
    };
    runtime.context("could not start the runtime")
}

/// Shows a line of progress, apart from the result.
#[allow(
    clippy::print_stderr,
    reason = "live progress is what the user watches"
)]
fn progress(line: &str) {
    eprintln!("{line}");
}

/// Prints the result.
#[allow(clippy::print_stdout, reason = "the result is what the user asked for")]
fn say(result: &impl std::fmt::Display) {
    println!("{result}");
}
