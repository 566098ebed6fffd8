//! Arguments of `shoal worker-check`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use super::calls::some_time;
use crate::config::listen_address;
use crate::print::Output;

/// `shoal worker-check`
#[derive(Clone, Debug, Args)]
pub struct WorkerCheck {
    /// Address and port where the worker joins; port 0 takes a free port.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = listen_address)]
    pub listen: SocketAddr,
    /// Only these checks.
    #[arg(long, value_name = "CHECK,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Maximum wait for each step.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = some_time)]
    pub timeout: Duration,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: Output,
    /// Command that starts the worker. It finds the address in `{address}` and in SHOAL_JOIN. Without a command, the
    /// check waits for a worker.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
