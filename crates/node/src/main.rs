//! The `shoal` binary.

use std::process::ExitCode;

use clap::Parser as _;
use shoal_node::cli::{Cli, Command};
use shoal_node::config_command;
use shoal_node::exit::Failure;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Some(Command::Config(command)) => config_command::run(&command),
        _ => Ok(()),
    }
}
