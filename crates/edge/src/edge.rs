//! The parts of an edge, and the service that they make.

use std::sync::Arc;

use shoal_ports::{Authenticator, ClusterBus, Dispatcher, SessionGateway};
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::awaited_answers::AwaitedAnswers;
use crate::backlog::Backlog;
use crate::body_budget::BodyBudget;
use crate::config::EdgeConfig;
use crate::gauges;
use crate::load::Load;
use crate::quotas::Quotas;
use crate::recorder::Recorder;
use crate::state::{EdgeState, Routes};
use crate::subscriptions::Hub;

/// An edge: what it needs, gathered by whoever wires the node.
pub struct Edge {
    /// The legacy sessions.
    pub gateway: Arc<dyn SessionGateway>,
    /// Runs modern calls.
    pub dispatcher: Arc<dyn Dispatcher>,
    /// Says which tasks have changed, at whatever node.
    pub bus: Arc<dyn ClusterBus>,
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
    /// The service of the configured paths. It wants no middleware: limits, checks and authentication are inside.
    pub fn service(self) -> EdgeService {
        let quotas = Quotas::embedded();
        quotas.set(&self.config.quotas);
        self.service_with(quotas)
    }

    /// The same, with quotas that may be shared with other edges, and may change.
    pub fn service_with(self, quotas: Quotas) -> EdgeService {
        let backlog = Backlog::new(&self.config.limits, self.load.clone());
        EdgeService(Arc::new(EdgeState {
            hub: Hub::new(Arc::clone(&self.dispatcher), self.bus),
            access: Access::new(&self.config),
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

/// An edge at work, which answers requests of any path; a cheap handle.
#[derive(Clone)]
pub struct EdgeService(pub(crate) Arc<EdgeState>);
