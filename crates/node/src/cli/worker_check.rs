//! Arguments of `shoal worker-check`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use super::Output;
use super::calls::some_time;
use crate::config::listen_address;

/// `shoal worker-check`
#[derive(Clone, Debug, Args)]
pub struct WorkerCheck {
    /// Address and port where the worker is to join; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = listen_address)]
    pub listen: SocketAddr,
    /// Only these checks.
    #[arg(long, value_name = "CHECK,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// How long each thing may take that is waited for.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time)]
    pub timeout: Duration,
    /// How to print what came of each check.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
    /// The command that starts the worker. `{address}` in it is where to join, as is the variable SHOAL_JOIN. Without a
    /// command, a worker is waited for.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
