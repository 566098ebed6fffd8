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
use crate::places::PrincipalPlaces;
use crate::quotas::Quotas;
use crate::recorder::Recorder;
use crate::state::{EdgeState, RouteLabels};
use crate::subscriptions::Hub;
use crate::trusted_proxies::TrustedProxies;

/// The parts of an edge.
pub struct Edge {
    /// The legacy sessions.
    pub gateway: Arc<dyn SessionGateway>,
    /// The runner of modern calls.
    pub dispatcher: Arc<dyn Dispatcher>,
    /// Authenticates callers.
    pub authenticator: Arc<dyn Authenticator>,
    /// The settings.
    pub config: EdgeConfig,
    /// Cancelled when the node drains. Then resumable streams end with a retry hint,
    /// `subscriptions/listen` ends with its result, and connections are not kept alive. Requests
    /// run to their end, and so do other streams, unless [`Load::single_streams`] ends them.
    pub drain: CancellationToken,
    /// Counts running requests and streams. Keep a clone to watch a drain.
    pub load: Load,
    /// Records the outcomes of requests. Keep a clone to read them.
    pub recorder: Recorder,
}

impl Edge {
    /// Builds the service, which includes limits, checks and authentication.
    pub fn service(self) -> EdgeService {
        let quotas = Quotas::embedded();
        quotas.set(&self.config.quotas);
        self.service_with(quotas)
    }

    /// Builds the service with quotas that other edges may share.
    pub fn service_with(self, quotas: Quotas) -> EdgeService {
        let backlog = Backlog::new(&self.config.limits, self.load.clone());
        EdgeService(Arc::new(EdgeState {
            hub: Hub::new(Arc::clone(&self.dispatcher)),
            task_waits: PrincipalPlaces::default(),
            origin_check: OriginCheck::new(&self.config.endpoint),
            // `shoal` refuses to start with an address that cannot be parsed. In other programs, the edge then trusts no proxy.
            trusted_proxies: TrustedProxies::parse(&self.config.endpoint.trusted_proxies)
                .unwrap_or_default(),
            gateway: self.gateway,
            dispatcher: self.dispatcher,
            public: self.authenticator.resource_metadata(),
            authenticator: self.authenticator,
            drain: self.drain,
            _counted: gauges::observe(&self.load),
            budget: BodyBudget::new(
                &self.config.limits,
                self.config.body_wait,
                self.load.clone(),
            ),
            backlog,
            quotas,
            awaited_answers: AwaitedAnswers::default(),
            routes: RouteLabels::of(&self.config),
            config: self.config,
            load: self.load,
            recorder: self.recorder,
        }))
    }
}

/// A running edge, for requests of any path. A cheap handle.
#[derive(Clone)]
pub struct EdgeService(pub(crate) Arc<EdgeState>);
