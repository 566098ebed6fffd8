//! Replaces every process of a cluster under load and reports what the clients noticed.
#![expect(clippy::print_stdout, reason = "the report is what it is for")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use shoal_testkit::roll::{self, Options};

/// Restart every process of a cluster while clients work, and count the failures that they notice.
///
/// With --url, only the clients run: they work against that server for --seconds while you restart it. Without it,
/// Redis, edges, session nodes and workers run as processes behind a balancer. Like a Kubernetes Service, the balancer
/// picks a ready edge for each connection. Every process is replaced as by a Deployment with maxSurge 1 and
/// maxUnavailable 0.
///
/// The exit code is 0 if all requests succeeded, all sessions survived, each event arrived exactly once, and each call
/// ran once. The `shoal` binary is TEST_SHOAL_BIN, else the one beside this program.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    /// File for the report as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let report = roll::run(&arguments.options).await?;
    println!("{report}");
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&report)? + "\n";
        let written = std::fs::write(path, text);
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(match report.is_clean() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
