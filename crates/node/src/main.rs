//! The `shoal` binary.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use shoal_node::cli::{Cli, Command, Serve};
use shoal_node::config::{Environment, Settings};
use shoal_node::exit::Failure;
use shoal_node::{config_command, serve, status_command, stdio};
use tokio::runtime::{Builder, Runtime};

/// Measured on small echo calls, one core for the server: a good part of a call is small allocations that
/// are freed on another task, which this allocator does with less work than the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long what is left of the process may take once its work is done.
const LAST_MOMENTS: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let command = cli.command.unwrap_or(Command::Serve(Serve::default()));
    match command {
        Command::Serve(command) => {
            let loaded = serve::settings(&command, &Environment::of_process())?;
            log(&loaded.settings)?;
            in_runtime(serve::run(loaded))
        }
        Command::Stdio(command) => {
            let environment = Environment::of_process();
            let loaded = stdio::settings(&command, &environment)?;
            log(&loaded.settings)?;
            in_runtime(stdio::run(command, environment.token, loaded))
        }
        Command::Status(command) => in_runtime(status_command::run(&command)),
        Command::Config(command) => config_command::run(&command),
    }
}

fn log(settings: &Settings) -> anyhow::Result<()> {
    shoal_telemetry::logging::init(&settings.logging.to_setup()).context("cannot set up logging")
}

fn in_runtime(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime: Runtime = Builder::new_multi_thread()
        .thread_name("shoal")
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_MOMENTS);
    done
}
