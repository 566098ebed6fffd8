//! The operators' console: a page and its API, for all nodes from any node.
//!
//! | module | contents |
//! |---|---|
//! | `guard` | access control |
//! | `api` | the API |
//! | `tools`, `call` | tools and their calls |
//! | `connect` | how clients connect |
//! | `assets` | the page |

mod api;
mod assets;
mod call;
mod connect;
mod guard;
mod list_query;
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
use guard::OperatorGuard;

const API: &str = "/console/api";

/// The console of a node.
pub struct Console {
    fleet: Arc<Fleet>,
    calls: OperatorCalls,
    endpoint: ClientEndpoint,
    guard: Arc<OperatorGuard>,
}

impl Console {
    /// Builds a console for `fleet`. Requests of the API need `token`, or the token of one of `operators`. Without
    /// tokens, the console is closed if other machines could reach it through `listen` and `hosts`. `calls` runs tools;
    /// clients connect to `endpoint`.
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
        let guard = Arc::new(OperatorGuard::new(token, operators, on_this_machine));
        Self {
            fleet,
            calls,
            endpoint,
            guard,
        }
    }

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
