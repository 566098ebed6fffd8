//! The parts of an edge, and the router over them.

use std::sync::Arc;

use axum::Router;
use axum::routing::any;
use shoal_ports::{Authenticator, Bus, Dispatcher, SessionGateway};
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::backlog::Backlog;
use crate::body_budget::BodyBudget;
use crate::config::EdgeConfig;
use crate::load::Load;
use crate::recorder::Recorder;
use crate::state::{EdgeState, Routes};
use crate::subscriptions::Hub;
use crate::{gauges, layers};

/// An edge: what it needs, gathered by whoever wires the node.
pub struct Edge {
    /// The legacy sessions.
    pub gateway: Arc<dyn SessionGateway>,
    /// Runs modern calls.
    pub dispatcher: Arc<dyn Dispatcher>,
    /// Brings resource updates to `subscriptions/listen`.
    pub bus: Arc<dyn Bus>,
    /// Says who is calling.
    pub authenticator: Arc<dyn Authenticator>,
    /// Settings.
    pub config: EdgeConfig,
    /// Cancelled when the node drains: requests are still answered, but streams that their clients can
    /// resume elsewhere end with a hint when to come back, `subscriptions/listen` ends with its result,
    /// and connections are not kept alive. Streams whose clients cannot resume run to their end; those of HTTP+SSE are ended by
    /// [`Load::single_streams`].
    pub drain: CancellationToken,
    /// Counts what is under way; keep a clone to watch a drain.
    pub load: Load,
    /// Records what becomes of requests; keep a clone to read it.
    pub recorder: Recorder,
}

impl Edge {
    /// The router that serves the configured paths. It wants no middleware: limits, checks and
    /// authentication are inside.
    pub fn router(self) -> Router {
        let paths = (self.config.path.clone(), self.config.http_sse.clone());
        let backlog = Backlog::new(&self.config.limits, self.load.clone());
        let state = Arc::new(EdgeState {
            hub: Hub::new(Arc::clone(&self.dispatcher), self.bus),
            access: Access::new(&self.config),
            gateway: self.gateway,
            dispatcher: self.dispatcher,
            authenticator: self.authenticator,
            drain: self.drain,
            _counted: gauges::observe(&self.load),
            budget: BodyBudget::new(
                &self.config.limits,
                self.config.timing.body_room,
                self.load.clone(),
            ),
            backlog,
            routes: Routes::of(&self.config),
            config: self.config,
            load: self.load,
            recorder: self.recorder,
        });
        let mut router = Router::new()
            .route(&paths.0, any(layers::mcp))
            .fallback(layers::elsewhere);
        if let Some(http_sse) = paths.1 {
            router = router
                .route(&http_sse.stream, any(layers::sse_stream))
                .route(&http_sse.messages, any(layers::sse_messages));
        }
        router.with_state(state)
    }
}
