//! The seams between processes as long-lived gRPC links, so that nothing above the traits can tell.
//!
//! | trait | used here | implemented there |
//! |---|---|---|
//! | [`Worker`](shoal_ports::Worker) | [`RemoteWorker`], made by [`WorkerLinks`] | [`WorkerJoin`], which dials |
//! | [`SessionGateway`](shoal_ports::SessionGateway) | [`RemoteGateway`], which dials | [`GatewayLinks`] |
//!
//! [`ClusterServer`] serves both kinds of links on one listener. The contracts themselves stand in `proto/`.

mod config;
mod convert;
mod error;
mod gateway;
mod join;
mod link;
pub mod proto;
mod serve;
mod server;
mod worker;

pub use config::LinkConfig;
pub use gateway::RemoteGateway;
pub use join::{JoinState, JoiningWorker, WorkerJoin};
pub use serve::{GatewayLinks, Gateways, serve_gateway};
pub use server::{ClusterServer, ServeError};
pub use worker::{RemoteWorker, WorkerLinks, serve_workers};
