//! The ledger over stdio, as an author serves it with the official Rust SDK alone.

use anyhow::Result;
use rmcp::{ServiceExt as _, transport::stdio};

#[path = "../ledger.rs"]
mod ledger;

#[tokio::main]
async fn main() -> Result<()> {
    let server = ledger::Ledger::new().serve(stdio()).await?;
    server.waiting().await?;
    Ok(())
}
