//! The parts of an edge and its service.

use std::sync::Arc;

use shoal_ports::{Authenticator, Dispatcher, SessionGateway};
use tokio_util::sync::CancellationToken;

use crate::awaited_answers::AwaitedAnswers;
use crate::backlog::Backlog;
use crate::body_budget::BodyBudget;
use crate::config::EdgeConfig;
use crate::gauges;
use crate::load::Load;
use crate::origin_check::OriginCheck;
use crate::quotas::Quotas;
use crate::recorder::Recorder;
use crate::state::{EdgeState, Routes};
use crate::subscriptions::Hub;

/// The parts that an edge is built from.
pub struct Edge {
    /// The legacy sessions.
    pub gateway: Arc<dyn SessionGateway>,
    /// Runs modern calls.
    pub dispatcher: Arc<dyn Dispatcher>,
    /// Authenticates callers.
    pub authenticator: Arc<dyn Authenticator>,
    /// The settings.
    pub config: EdgeConfig,
    /// Cancelled when the node drains. Requests are still answered, but resumable streams end with
    /// a retry hint, `subscriptions/listen` ends with its result, and connections are not kept
    /// alive. Other streams run to their end, and [`Load::single_streams`] ends those of HTTP+SSE.
    pub drain: CancellationToken,
    /// Counts running requests and streams. Keep a clone to watch a drain.
    pub load: Load,
    /// Records the outcomes of requests. Keep a clone to read them.
    pub recorder: Recorder,
}

impl Edge {
    /// Builds the service for the configured paths. It needs no middleware, because it includes
    /// limits, checks and authentication.
    pub fn service(self) -> EdgeService {
        let quotas = Quotas::embedded();
        quotas.set(&self.config.quotas);
        self.service_with(quotas)
    }

    /// Builds the service with quotas that may be shared with other edges and may change.
    pub fn service_with(self, quotas: Quotas) -> EdgeService {
        let backlog = Backlog::new(&self.config.limits, self.load.clone());
        EdgeService(Arc::new(EdgeState {
            hub: Hub::new(Arc::clone(&self.dispatcher)),
            origin_check: OriginCheck::new(&self.config),
            gateway: self.gateway,
            dispatcher: self.dispatcher,
            public: self.authenticator.resource_metadata(),
            authenticator: self.authenticator,
            drain: self.drain,
            _counted: gauges::observe(&self.load),
            budget: BodyBudget::new(
                &self.config.limits,
                self.config.timing.body_room,
                self.load.clone(),
            ),
            backlog,
            quotas,
            awaited_answers: AwaitedAnswers::default(),
            routes: Routes::of(&self.config),
            config: self.config,
            load: self.load,
            recorder: self.recorder,
        }))
    }
}

/// A running edge, which answers requests of any path. A cheap handle.
#[derive(Clone)]
pub struct EdgeService(pub(crate) Arc<EdgeState>);
