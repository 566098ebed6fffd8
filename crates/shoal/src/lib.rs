#![doc = include_str!("../README.md")]

mod builder;

use std::process::ExitCode;

pub use builder::Builder;
pub use rmcp;
use rmcp::ServerHandler;
pub use shoal_node::exit::Failure;
pub use shoal_node::worker::ClusterWorker;
pub use shoal_protocol::TraceContext;
pub use shoal_worker::{CallerSession, RequestContextExt};

/// Runs the whole program around a server: `serve`, `stdio`, `call`, `config` and the other commands of `--help`.
/// Return the result from `main`, which must not be async.
///
/// The function handles arguments, signals, logging and telemetry, and starts a Tokio runtime. To set more than the
/// handler, use a [`Builder`].
pub fn serve(handler: impl ServerHandler) -> ExitCode {
    server(handler).serve()
}

/// Creates a server with settings of its own, such as a name, pool or capacity.
pub fn server(handler: impl ServerHandler) -> Builder {
    server_with(async move || Ok::<_, std::convert::Infallible>(handler))
}

/// Like [`server`], for a server that must be created first, for example by connecting to a database. `start` runs when
/// the process begins to serve, not for `--help` or `config check`.
pub fn server_with<H, S, F, E>(start: S) -> Builder
where
    H: ServerHandler,
    S: FnOnce() -> F + Send + 'static,
    F: Future<Output = Result<H, E>> + Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Builder::new(start)
}

/// Creates a worker for a cluster. [`Builder::join`] names the nodes to join.
pub fn worker(handler: impl ServerHandler) -> Builder {
    server(handler).set("node.roles", "['worker']")
}
