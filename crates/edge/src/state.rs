use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{Authenticator, Dispatcher, ResourceMetadata, SessionGateway};
use shoal_telemetry::metrics::Registration;
use tokio_util::sync::CancellationToken;

use crate::awaited_answers::AwaitedAnswers;
use crate::backlog::Backlog;
use crate::body_budget::BodyBudget;
use crate::config::EdgeConfig;
use crate::legacy::http_sse::HTTP_SSE_PATHS;
use crate::load::Load;
use crate::measure;
use crate::origin_check::OriginCheck;
use crate::places::PrincipalPlaces;
use crate::quotas::Quotas;
use crate::recorder::Recorder;
use crate::subscriptions::Hub;
use crate::trusted_proxies::TrustedProxies;

pub(crate) struct EdgeState {
    pub(crate) gateway: Arc<dyn SessionGateway>,
    pub(crate) dispatcher: Arc<dyn Dispatcher>,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) public: Option<ResourceMetadata>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) task_waits: PrincipalPlaces,
    pub(crate) origin_check: OriginCheck,
    pub(crate) trusted_proxies: TrustedProxies,
    pub(crate) config: EdgeConfig,
    pub(crate) drain: CancellationToken,
    pub(crate) load: Load,
    pub(crate) quotas: Quotas,
    pub(crate) awaited_answers: AwaitedAnswers,
    pub(crate) budget: Arc<BodyBudget>,
    pub(crate) backlog: Backlog,
    pub(crate) recorder: Recorder,
    pub(crate) routes: RouteLabels,
    pub(crate) _counted: Vec<Registration>,
}

pub(crate) struct RouteLabels {
    pub(crate) mcp: &'static str,
    pub(crate) sse_stream: &'static str,
    pub(crate) sse_messages: &'static str,
    pub(crate) resource: &'static str,
}

impl RouteLabels {
    pub(crate) fn of(config: &EdgeConfig) -> Self {
        let [stream, messages] = HTTP_SSE_PATHS;
        Self {
            mcp: measure::route(&config.endpoint.path),
            sse_stream: measure::route(stream),
            sse_messages: measure::route(messages),
            resource: measure::route("/.well-known/oauth-protected-resource"),
        }
    }
}

impl EdgeState {
    /// Returns a random delay, which spreads the clients of a drained node.
    pub(crate) fn reconnect_after(&self) -> Duration {
        let streams = &self.config.streams;
        streams.retry.get() + streams.retry_spread.get().mul_f64(rand::random())
    }

    /// Returns a random time for which a call's stream stays open in a drain.
    pub(crate) fn share_of_return(&self) -> Duration {
        self.config.streams.retry.get().mul_f64(rand::random())
    }
}
