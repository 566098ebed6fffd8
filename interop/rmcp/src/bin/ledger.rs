//! The ledger over stdio, as an author serves it with the official Rust SDK alone.

use anyhow::Result;
use rmcp::{ServiceExt as _, transport::stdio};

// Shoal serves the same file: nothing of it changes.
#[path = "../../../../crates/shoal/examples/ledger/server.rs"]
mod server;

#[tokio::main]
async fn main() -> Result<()> {
    let server = server::Ledger::new().serve(stdio()).await?;
    server.waiting().await?;
    Ok(())
}
