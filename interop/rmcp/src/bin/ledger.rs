//! The ledger over stdio, with the official Rust SDK alone.

use anyhow::Result;
use rmcp::{ServiceExt as _, transport::stdio};

// Shoal serves the same file, unchanged.
#[path = "../../../../crates/shoal/examples/ledger/server.rs"]
mod server;

#[tokio::main]
async fn main() -> Result<()> {
    let server = server::Ledger::new().serve(stdio()).await?;
    server.waiting().await?;
    Ok(())
}
