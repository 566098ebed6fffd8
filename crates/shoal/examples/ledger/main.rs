//! For `scripts/test composed`: serves the handler of `interop/rmcp/src/bin/ledger.rs`, a program without Shoal, as a
//! worker. `ledger HOST:PORT` joins the cluster of the node at `HOST:PORT`.

use std::error::Error;
use std::process::ExitCode;

mod server;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let worker = shoal::worker(server::Ledger::new()).pool("crate");
    let Some(node) = arguments.next().filter(|word| word.contains(':')) else {
        return Ok(worker.serve());
    };
    joined(worker.join(node))?;
    Ok(ExitCode::SUCCESS)
}

#[tokio::main]
async fn joined(worker: shoal::Builder) -> Result<(), Box<dyn Error>> {
    worker.start().await?.run_until_signal().await?;
    Ok(())
}
