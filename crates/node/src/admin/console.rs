//! The operators' console: a page and the API that it reads, for all nodes from any of them.
//!
//! | | |
//! |---|---|
//! | `guard` | who may use it, and what every answer carries |
//! | `api` | what there is to see and to do, as JSON |
//! | `tools`, `call` | the same of tools, and how one is called |
//! | `connect` | how clients connect |
//! | `assets` | the page, built into the binary |

mod api;
mod assets;
mod call;
mod connect;
mod guard;
mod tools;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::response::Redirect;
use axum::routing::get;
use shoal_cluster::Fleet;

pub use call::OperatorEdge;
pub use connect::ClientEndpoint;
pub use tools::OperatorCalls;

use crate::config::{Operator, Secret};
use guard::Guard;

/// Where the page reads.
const API: &str = "/console/api";

/// The console of a node.
pub struct Console {
    fleet: Arc<Fleet>,
    calls: OperatorCalls,
    endpoint: ClientEndpoint,
    guard: Arc<Guard>,
}

impl Console {
    /// A console over `fleet`, on a port that listens on `listen` and is reached by `hosts` besides. It asks
    /// for `token`, or that of one of `operators`; without any it is closed wherever other machines could reach it. Tools are called by way of `calls`, and clients
    /// are told to connect to `endpoint`.
    pub fn new(
        fleet: Arc<Fleet>,
        calls: OperatorCalls,
        endpoint: ClientEndpoint,
        token: Option<Secret>,
        operators: &[Operator],
        listen: SocketAddr,
        hosts: &[String],
    ) -> Self {
        let on_this_machine = listen.ip().is_loopback() && hosts.is_empty();
        let guard = Arc::new(Guard::new(token, operators, on_this_machine));
        Self {
            fleet,
            calls,
            endpoint,
            guard,
        }
    }

    /// Its routes.
    pub(super) fn router(self) -> Router {
        Router::new()
            .merge(assets::router())
            .nest(
                API,
                api::router(self.fleet, self.calls, self.endpoint, &self.guard),
            )
            .layer(axum::middleware::from_fn_with_state(
                self.guard,
                guard::around_all,
            ))
            .route("/", get(async || Redirect::temporary("/console/")))
            .route("/console", get(async || Redirect::temporary("/console/")))
    }
}

#[cfg(test)]
mod tests;
