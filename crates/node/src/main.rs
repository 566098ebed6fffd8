//! The `shoal` binary.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use shoal_node::cli::{Cli, Command, Serve};
use shoal_node::config::{Environment, Loaded};
use shoal_node::exit::Failure;
use shoal_node::node::node_id;
use shoal_node::{
    call_command, client_config, config_command, install, serve, shell, status_command, stdio,
    worker_check,
};
use shoal_ports::NodeId;
use tokio::runtime::{Builder, Runtime};

/// Measured on small echo calls, one core for the server: a good part of a call is small allocations that
/// are freed on another task, which this allocator does with less work than the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long what is left of the process may take once its work is done.
const LAST_MOMENTS: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = cli.output();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(output),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let command = cli.command.unwrap_or(Command::Serve(Serve::default()));
    match command {
        Command::Serve(command) => {
            let loaded = serve::settings(&command, &Environment::of_process())?;
            told(loaded, |loaded, id| serve::run(command, loaded, id))
        }
        Command::Stdio(command) => {
            let environment = Environment::of_process();
            let loaded = stdio::settings(&command, &environment)?;
            told(loaded, |loaded, id| {
                stdio::run(command, environment.token, loaded, id)
            })
        }
        Command::Tools(command) => in_runtime(call_command::tools(
            &command,
            Environment::of_process().token,
        )),
        Command::Call(command) => in_runtime(call_command::call(
            &command,
            Environment::of_process().token,
        )),
        Command::Status(command) => in_runtime(status_command::run(&command)),
        Command::WorkerCheck(command) => in_runtime(worker_check::run(&command)),
        Command::ClientConfig(command) => client_config::run(&command),
        Command::Config(command) => config_command::run(&command),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { to } => shell::man(&to),
        Command::Install { to } => install::run(&to),
    }
}

/// Does the work of a process that logs, counts and traces, and sends the last of that when it is done.
fn told<W: Future<Output = Result<(), Failure>>>(
    loaded: Loaded,
    work: impl FnOnce(Loaded, NodeId) -> W,
) -> Result<(), Failure> {
    let settings = &loaded.settings;
    let id = node_id(settings);
    let telemetry = settings.telemetry_of(id.as_str());
    let guard = shoal_telemetry::init(&telemetry, &settings.logging)
        .context("cannot set up telemetry and logging")?;
    let last_words = settings.shutdown.telemetry.get();
    let done = in_runtime(work(loaded, id));
    guard.shutdown(last_words);
    done
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
