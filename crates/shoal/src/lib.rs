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

/// The whole program around a server: `serve`, `stdio`, `call`, `config` and whatever else `--help` lists. To be returned from
/// `main`.
///
/// It takes over the process's arguments, its signals, logging and telemetry, and starts a Tokio runtime: `main` is not async.
/// To set more than the handler, use a [`Builder`].
pub fn serve(handler: impl ServerHandler) -> ExitCode {
    server(handler).serve()
}

/// A server, whose program has a name, a pool or a capacity of its own.
pub fn server(handler: impl ServerHandler) -> Builder {
    server_with(async move || Ok::<_, std::convert::Infallible>(handler))
}

/// As [`server`], for one that has to be made first: connected to its database, say. It is made when the process begins to serve, not
/// for `--help` or `config check`.
pub fn server_with<H, S, F, E>(start: S) -> Builder
where
    H: ServerHandler,
    S: FnOnce() -> F + Send + 'static,
    F: Future<Output = Result<H, E>> + Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Builder::new(start)
}

/// A server for clients of a cluster, whose edges and session nodes are other processes: [`Builder::join`] them.
pub fn worker(handler: impl ServerHandler) -> Builder {
    server(handler).set("node.roles", "['worker']")
}
