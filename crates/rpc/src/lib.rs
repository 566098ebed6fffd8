//! Implements the ports between processes by long-lived gRPC links.
//!
//! | trait | used here | implemented there |
//! |---|---|---|
//! | [`Worker`](shoal_ports::Worker) | [`RemoteWorker`], made by [`WorkerLinks`] | [`WorkerJoin`], which dials |
//! | [`SessionGateway`](shoal_ports::SessionGateway) | [`RemoteGateway`], which dials | [`GatewayLinks`] |
//! | [`Inspector`](shoal_ports::Inspector) | [`RemoteInspector`], which dials | [`ConsoleService`] |
//!
//! [`ClusterServer`] serves both kinds of links, and the console, on one listener. `proto/` documents the contracts.
//! With a [`Tls`] in their [`LinkConfig`], both sides use mutual TLS.

mod config;
mod console;
mod convert;
mod error;
#[cfg(fuzzing)]
pub mod fuzz;
mod gateway;
mod join;
mod link;
mod presence;
pub mod proto;
mod serve;
mod server;
mod tls;
mod worker;

pub use config::LinkConfig;
pub use console::{ConsoleService, RemoteInspector, serve_inspector};
pub use convert::catalog::{decode_catalog, encode_catalog};
pub use gateway::{RemoteGateway, Sight, look_for};
pub use join::{JoinState, JoiningWorker, WorkerJoin};
pub use link::clocks::clock_skew;
pub use presence::PresencePorts;
pub use serve::{GatewayLinks, Gateways, serve_gateway};
pub use server::{ClusterServer, ServeError};
pub use tls::{
    Distrusted, ListenerFiles, ListenerTls, PeerTrust, Tls, TlsError, TlsFiles, Validity,
    check_name,
};
pub use worker::{RemoteWorker, WorkerLinks, serve_workers};
