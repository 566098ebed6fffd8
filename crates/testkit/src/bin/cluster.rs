//! Runs a cluster behind one URL for scripts, until SIGTERM or SIGINT.
#![expect(clippy::print_stdout, reason = "scripts wait for the line")]
#![expect(clippy::print_stderr, reason = "people look for the processes")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use shoal_testkit::cluster::{Cluster, Tools, setting};
use tokio::signal::unix::{SignalKind, signal};

/// Start Redis, edges, session nodes and workers as separate processes, behind a proxy that sends each request to the
/// next edge.
///
/// Prints `testkit: serving MCP on URL` and runs until SIGTERM or SIGINT. The `shoal` binary is TEST_SHOAL_BIN, else
/// the one beside this program.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of edges.
    #[arg(long, default_value_t = 3)]
    edges: usize,
    /// Number of session nodes.
    #[arg(long, default_value_t = 3)]
    sessions: usize,
    /// Number of workers.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Run everything in one process, on its embedded store.
    #[arg(long)]
    one_process: bool,
    /// Secure the connections between processes by TLS, with certificates made for this run.
    #[arg(long, conflicts_with = "one_process")]
    tls: bool,
    /// Address of the proxy; port 0 chooses a free port.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Time for which a node owns its sessions without renewing its lease, in milliseconds [default: that of shoal].
    #[arg(long)]
    lease_ms: Option<u64>,
    /// Setting of every member, such as streams.retry=100ms; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Directory of the logs and data of all members, which is kept.
    #[arg(long, value_name = "DIRECTORY")]
    logs: Option<PathBuf>,
    /// Serve the demo tools (the default).
    #[arg(long)]
    demo: bool,
    /// Serve the fixtures of the official conformance suite.
    #[arg(long, conflicts_with = "demo")]
    conformance: bool,
    /// Serve the tools of chaos runs.
    #[arg(long, conflicts_with_all = ["demo", "conformance"])]
    chaos_tools: bool,
    /// Stdio server to run, with its arguments.
    #[arg(last = true, conflicts_with_all = ["demo", "conformance", "chaos_tools"])]
    command: Vec<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let asked = async {
        tokio::select! {
            _ = terminate.recv() => true,
            // Redis has heard it from the terminal too.
            _ = interrupt.recv() => false,
        }
    };
    tokio::pin!(asked);
    let cluster = tokio::select! {
        cluster = start(&arguments) => cluster?,
        _ = &mut asked => return Ok(()),
    };
    println!("testkit: serving MCP on {}", cluster.url());
    for member in cluster.members() {
        eprintln!("testkit: {} is process {}", member.name(), member.pid());
    }
    let in_order = asked.await;
    if in_order {
        cluster.end().await;
    }
    Ok(())
}

async fn start(arguments: &Arguments) -> anyhow::Result<Cluster> {
    let mut builder = Cluster::builder()
        .edges(arguments.edges)
        .sessions(arguments.sessions)
        .workers(arguments.workers)
        .listen(arguments.listen)
        .logs(arguments.logs.clone())
        .tools(arguments.tools());
    if arguments.one_process {
        builder = builder.one_process();
    }
    if arguments.tls {
        builder = builder.tls();
    }
    if let Some(lease) = arguments.lease_ms {
        builder = builder.lease(Duration::from_millis(lease));
    }
    builder.settings(arguments.settings.clone()).start().await
}

impl Arguments {
    fn tools(&self) -> Tools {
        if self.conformance {
            Tools::Conformance
        } else if self.chaos_tools {
            Tools::Chaos
        } else if self.command.is_empty() {
            Tools::Demo
        } else {
            Tools::Command(self.command.clone())
        }
    }
}
