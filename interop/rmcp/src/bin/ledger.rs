//! The example server `ledger` over stdio, on the official Rust SDK without Shoal.

use anyhow::Result;
use rmcp::{ServiceExt as _, transport::stdio};

// The example of the crate `shoal-mcp` uses the same file.
#[path = "../../../../crates/shoal/examples/ledger/server.rs"]
mod server;

#[tokio::main]
async fn main() -> Result<()> {
    let server = server::Ledger::new().serve(stdio()).await?;
    server.waiting().await?;
    Ok(())
}
