use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use http::StatusCode;
use tower::ServiceExt as _;

use super::{Readiness, answer, guarded};
use crate::starting::Starting;

/// The operators' router, before and after the node has started.
#[derive(Clone)]
pub struct Front {
    starting: Router,
    node: Arc<OnceLock<Router>>,
}

impl Front {
    /// Builds a starting process's router. [`router`](super::router) explains `listen` and `hosts`.
    pub fn new(starting: Arc<Starting>, listen: SocketAddr, hosts: &[String]) -> Self {
        let starting = Router::new()
            .route("/readyz", get(not_yet))
            .route("/status", get(not_yet))
            .with_state(starting);
        Self {
            starting: guarded(starting, listen, hosts),
            node: Arc::default(),
        }
    }

    /// Returns the router to serve.
    pub fn router(&self) -> Router {
        Router::new().fallback(pass_on).with_state(self.clone())
    }

    /// Passes requests to `node` from now on.
    pub fn open(&self, node: Router) {
        let _ = self.node.set(node);
    }
}

async fn pass_on(State(front): State<Front>, request: Request) -> Result<Response, Infallible> {
    let router = front.node.get().unwrap_or(&front.starting);
    router.clone().oneshot(request).await
}

async fn not_yet(State(starting): State<Arc<Starting>>) -> Response {
    let readiness = Readiness::not_yet(starting.why());
    answer(StatusCode::SERVICE_UNAVAILABLE, &readiness)
}
