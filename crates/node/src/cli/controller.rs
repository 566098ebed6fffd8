use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::config::listen_address;

/// `shoal controller`
#[derive(Clone, Debug, Args)]
pub struct Controller {
    /// Address and port for operators.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub admin: Option<SocketAddr>,
    /// Configuration file (TOML); also by SHOAL_CONFIG.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
