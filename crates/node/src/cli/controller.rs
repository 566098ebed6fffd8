use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::config::listen_address;

/// `shoal controller`
#[derive(Clone, Debug, Args)]
pub struct Controller {
    /// Address and port for health checks, status and metrics.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub admin: Option<SocketAddr>,
    /// Configuration file (TOML). Without this flag, Shoal reads the file that SHOAL_CONFIG names.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
