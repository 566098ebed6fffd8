//! Load generator and verifier for any MCP server.

mod affinity;
mod cli;
mod connection;
mod cost;
mod drive;
mod failover;
mod failure;
mod features;
mod files;
mod findings;
mod idle;
mod listeners;
mod load;
mod mcp;
mod model;
mod outcome;
mod overload;
mod payload;
mod peers;
mod process;
mod report;
mod result;
mod resume;
mod servers;
mod simulate;
mod soak;
mod table;
mod target;
mod tenants;

use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Parser;
use cli::{Cli, Command};
use servers::floor;
use servers::peer;
use servers::serve_while;
use servers::spawned::{Environment, Spawned};
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

/// Returns whether all checks succeeded.
fn execute(command: Command) -> anyhow::Result<bool> {
    match command {
        Command::Run(arguments) => run(arguments),
        Command::Load(arguments) => load(&arguments),
        Command::ServeFloor(arguments) => {
            let serving = floor::serve(arguments.listen);
            runtime(None)?.block_on(serve_while(arguments.while_input, serving))?;
            Ok(true)
        }
        Command::ServeRmcp(arguments) => {
            let options = peer::Options {
                stateful: arguments.stateful,
                json: arguments.json,
            };
            let serving = peer::serve(arguments.listen, options);
            runtime(None)?.block_on(serve_while(arguments.while_input, serving))?;
            Ok(true)
        }
        Command::Table(arguments) => table(arguments),
        Command::Telemetry(arguments) => features::telemetry(arguments),
        Command::Features(arguments) => features::execute(arguments),
        Command::Resume(arguments) => resume(arguments),
        Command::Report(arguments) => {
            say(&result::report(&arguments)?);
            Ok(true)
        }
        Command::Compare(arguments) => {
            let comparison = result::compare(&arguments)?;
            say(&comparison);
            Ok(comparison.is_correct())
        }
        Command::Failover(arguments) => {
            let outcome = runtime(None)?.block_on(failover::run(&arguments, progress))?;
            conclude(&outcome, arguments.json.as_deref())
        }
        Command::Overload(arguments) => {
            let outcome = runtime(None)?.block_on(overload::run(&arguments, progress))?;
            conclude(&outcome, arguments.json.as_deref())
        }
        Command::Listeners(arguments) => {
            let outcome = runtime(None)?.block_on(listeners::run(&arguments, progress))?;
            conclude(&outcome, arguments.json.as_deref())
        }
        Command::Tenants(arguments) => {
            let (table, outcome) = runtime(None)?.block_on(tenants::run(&arguments, progress))?;
            say(&table);
            conclude(&outcome, arguments.json.as_deref())
        }
        Command::Payload(arguments) => {
            let outcome = runtime(Some(1))?.block_on(payload::run(&arguments, progress))?;
            conclude(&outcome, arguments.json.as_deref())
        }
        Command::Soak(arguments) => {
            let outcome = runtime(None)?.block_on(soak::run(&arguments, progress))?;
            conclude(&outcome, arguments.json.as_deref())
        }
        Command::Simulate(arguments) => {
            say(&simulate::run(&arguments));
            Ok(true)
        }
        Command::Model(arguments) => {
            say(&model::run(&arguments)?);
            Ok(true)
        }
        Command::Cost(arguments) => cost(arguments),
        Command::Idle(arguments) => idle::execute(arguments),
        Command::IdleCrowd(arguments) => idle::crowd::execute(&arguments),
    }
}

fn conclude(outcome: &outcome::Outcome, json: Option<&std::path::Path>) -> anyhow::Result<bool> {
    say(outcome);
    if let Some(path) = json {
        report::write_json(path, outcome)?;
    }
    Ok(outcome.is_correct())
}

fn run(arguments: cli::Run) -> anyhow::Result<bool> {
    let plan = drive::Plan {
        url: arguments.url,
        mode: arguments.mode,
        authorization: None,
        stateless: arguments.legacy_stateless,
        sessions: arguments.sessions,
        warmup: arguments.warmup,
        duration: arguments.duration,
        call: drive::Call {
            tool: arguments.tool,
            argument: arguments.argument,
            text_bytes: arguments.text_bytes,
            answer_prefix: arguments.answer_prefix,
            progress: None,
            as_task: false,
        },
        least_calls: 0,
        pids: arguments.pids,
        redis: None,
    };
    let report = runtime(Some(arguments.threads))?.block_on(drive::run(&plan, progress))?;
    say(&report);
    if let Some(path) = &arguments.json {
        report::write_json(path, &report)?;
    }
    Ok(report.wrong == 0 && report.failed == 0)
}

fn load(arguments: &load::Load) -> anyhow::Result<bool> {
    let runtime = runtime(Some(arguments.threads))?;
    let outcome = runtime.block_on(load::run(arguments, progress))?;
    say(&outcome);
    if let Some(path) = &arguments.json {
        report::write_json(path, &outcome)?;
    }
    Ok(outcome.is_correct())
}

fn table(table: cli::Table) -> anyhow::Result<bool> {
    let arguments = table.turns;
    ensure!(arguments.rounds > 0, "at least one round is needed");
    // Peers are installed before this process is limited to one core.
    let peers = table::installed(&table.peers, table.peers_dir, progress)?;
    let cores = pinned()?;
    let options = table::Options {
        shoal: arguments.shoal.or_else(table::sibling_shoal),
        sessions: arguments.sessions,
        warmup: arguments.warmup,
        duration: std::time::Duration::from_secs(arguments.seconds),
        rounds: arguments.rounds,
        cores,
        peers,
    };
    let table = runtime(Some(1))?.block_on(table::run(&options, progress))?;
    say(&table);
    if let Some(path) = &arguments.json {
        report::write_json(path, &table)?;
    }
    Ok(table.is_correct())
}

fn cost(arguments: cost::Cost) -> anyhow::Result<bool> {
    let cores = pinned()?;
    let costs = runtime(Some(1))?.block_on(cost::run(&arguments, cores, progress))?;
    say(&costs);
    Ok(true)
}

/// Call this before the runtime's threads start, because they inherit the affinity.
fn pinned() -> anyhow::Result<Option<affinity::Cores>> {
    let cores = affinity::pair();
    if let Some(cores) = cores {
        affinity::pin(cores.generator).context("could not pin the generator")?;
    }
    Ok(cores)
}

fn resume(arguments: cli::Resume) -> anyhow::Result<bool> {
    let server = match &arguments.shoal {
        Some(program) => Some(Spawned::shoal(program, None, &Environment::new())?),
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

/// `None` means one thread per core.
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

#[allow(
    clippy::print_stderr,
    reason = "live progress is what the user watches"
)]
fn progress(line: &str) {
    eprintln!("{line}");
}

#[allow(clippy::print_stdout, reason = "the result is what the user asked for")]
fn say(result: &impl std::fmt::Display) {
    println!("{result}");
}
