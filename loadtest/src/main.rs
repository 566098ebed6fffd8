//! Load generator and verifier for any MCP server.

mod affinity;
mod arrivals;
mod cli;
mod cost;
mod engine;
mod failover;
mod features;
mod files;
mod findings;
mod idle;
mod listeners;
mod load;
mod mcp;
mod memory;
mod model;
mod outcome;
mod overload;
mod payload;
mod peers;
mod report;
mod result;
mod resume;
mod scenario;
mod servers;
mod soak;
mod table;
mod tenants;
mod times;
mod turns;

use std::process::ExitCode;

use anyhow::Context;
use cli::Command;
use scenario::execute;
use servers::{floor, peer, serve_while};
use shoal_testkit::client::{connection, failure, target};
use shoal_testkit::process::usage as process;
use tokio::runtime::{Builder, Runtime};

fn main() -> ExitCode {
    match perform(cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            progress(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns whether all checks succeeded.
fn perform(command: Command) -> anyhow::Result<bool> {
    match command {
        Command::Load(it) => execute(Some(it.threads), it.json.as_ref(), it.run()),
        Command::Resume(it) => execute(None, it.json.as_ref(), it.run()),
        Command::Failover(it) => execute(None, it.subject.json.as_ref(), it.run()),
        Command::Overload(it) => execute(None, it.subject.json.as_ref(), it.run()),
        Command::Listeners(it) => execute(None, it.subject.json.as_ref(), it.run()),
        Command::Tenants(it) => execute(None, it.subject.json.as_ref(), it.run()),
        Command::Payload(it) => execute(Some(1), it.json.as_ref(), it.run()),
        Command::Soak(it) => execute(None, it.subject.json.as_ref(), it.run()),
        Command::Idle(it) => execute(None, it.json.as_ref(), it.run()),
        Command::Table(arguments) => table::execute(&arguments),
        Command::Telemetry(arguments) => features::telemetry(&arguments),
        Command::Features(arguments) => features::execute(&arguments),
        Command::ServeFloor(arguments) => {
            let serving = floor::serve(arguments.listen);
            runtime(None)?.block_on(serve_while(arguments.while_input, serving))?;
            Ok(true)
        }
        Command::ServeRmcp(arguments) => {
            let serving = peer::serve(arguments.listen, arguments.stateful, arguments.json);
            runtime(None)?.block_on(serve_while(arguments.while_input, serving))?;
            Ok(true)
        }
        Command::Compare(arguments) => {
            let comparison = result::compare(&arguments)?;
            say(&comparison);
            Ok(comparison.is_correct())
        }
        Command::Report(arguments) => shown(&result::report(&arguments)?),
        Command::Model(arguments) => shown(&model::run(&arguments)?),
        Command::Cost(arguments) => shown(&cost::execute(&arguments)?),
    }
}

fn shown(result: &impl std::fmt::Display) -> anyhow::Result<bool> {
    say(result);
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
