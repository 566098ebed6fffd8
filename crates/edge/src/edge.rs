//! The parts of an edge, and the router over them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::any;
use shoal_ports::{Authenticator, Bus, Dispatcher, SessionGateway};
use shoal_telemetry::metrics::Registration;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::backlog::Backlog;
use crate::config::EdgeConfig;
use crate::load::Load;
use crate::modern::Hub;
use crate::recorder::Recorder;
use crate::room::Room;
use crate::{front, measure};

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
    /// and connections are not kept alive. Streams whose clients cannot resume run to their end.
    pub drain: CancellationToken,
    /// Counts what is under way; keep a clone to watch a drain.
    pub load: Load,
    /// Records what becomes of requests; keep a clone to read it.
    pub recorder: Recorder,
}

/// An edge at work.
pub(crate) struct EdgeState {
    pub(crate) gateway: Arc<dyn SessionGateway>,
    pub(crate) dispatcher: Arc<dyn Dispatcher>,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) access: Access,
    pub(crate) config: EdgeConfig,
    pub(crate) drain: CancellationToken,
    pub(crate) load: Load,
    pub(crate) room: Arc<Room>,
    pub(crate) backlog: Backlog,
    pub(crate) recorder: Recorder,
    pub(crate) routes: Routes,
    /// What reports to the metrics, as long as there is an edge.
    _counted: Vec<Registration>,
}

/// The paths, as telemetry names them.
pub(crate) struct Routes {
    pub(crate) mcp: &'static str,
    pub(crate) sse_stream: &'static str,
    pub(crate) sse_messages: &'static str,
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
            _counted: measure::observe(&self.load),
            room: Room::new(
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
            .route(&paths.0, any(front::mcp))
            .fallback(front::elsewhere);
        if let Some(http_sse) = paths.1 {
            router = router
                .route(&http_sse.stream, any(front::sse_stream))
                .route(&http_sse.messages, any(front::sse_messages));
        }
        router.with_state(state)
    }
}

impl Routes {
    fn of(config: &EdgeConfig) -> Self {
        let http_sse = config.http_sse.clone().unwrap_or_default();
        Self {
            mcp: measure::route(&config.path),
            sse_stream: measure::route(&http_sse.stream),
            sse_messages: measure::route(&http_sse.messages),
        }
    }
}

impl EdgeState {
    /// When the client of a drained stream should come back: not all at once.
    pub(crate) fn reconnect_after(&self) -> Duration {
        let timing = &self.config.timing;
        timing.reconnect_after + timing.reconnect_spread.mul_f64(rand::random())
    }
}
