use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use shoal_auth::{NoAuthentication, OAuth, StaticTokens};
use shoal_demo::{ConformanceServer, DemoServer};
use shoal_dispatch::{Config as DispatchConfig, Dispatch};
use shoal_edge::EdgeConfig;
use shoal_outbound::Outbound;
use shoal_policy::RulesInForce;
use shoal_ports::{Authenticator, NodeId, Period, Store};
use shoal_session::{SessionConfig, Sessions};
use shoal_worker::{
    Backend, HttpBackend, HttpConfig, OpenApiBackend, OpenApiConfig, RmcpBackend, StdioBackend,
    ToolChoice,
};

use crate::config::{self, AuthMode, Pool, Role, Settings};
use crate::pool_handler::PoolHandler;

/// Maximum time that a request waits for the store before its client has to retry.
const BEGIN_PATIENCE: Duration = Duration::from_secs(1);

/// The resolution of the time in a `requestState`.
const SHORTEST_INPUT: Period = Period::seconds(1);

/// How long a node waits for workers before it takes sessions without their tools.
const TOOLS_WITHIN: Duration = Duration::from_secs(15);

pub(crate) fn dispatch(
    settings: &Settings,
    policies: Option<Arc<RulesInForce>>,
) -> anyhow::Result<Dispatch> {
    let mut catalog = settings.catalog.clone();
    catalog.unnamed_pools |= settings.node.is(Role::Worker);
    if settings.node.store.is_memory() {
        catalog.announce_after = Period::ZERO;
    }
    let mut calls = settings.calls.clone();
    calls.input_timeout = calls.input_timeout.max(SHORTEST_INPUT);
    let config = DispatchConfig {
        catalog,
        calls,
        cluster: settings.cluster.clone(),
        learn_for: match settings.cluster.listen {
            Some(_) => settings.cluster.learning.get(),
            None => Duration::ZERO,
        },
        settle_within: match others_join(settings) {
            true => TOOLS_WITHIN,
            false => Duration::ZERO,
        },
        policies,
        pools: settings
            .pools
            .iter()
            .map(|(name, pool)| (name.clone(), pool.offer.clone()))
            .collect(),
    };
    let keys = settings.state_keys.key_ring();
    let keys = keys
        .map_err(anyhow::Error::msg)
        .context("cannot read state_keys")?;
    Ok(Dispatch::new(config, keys))
}

fn others_join(settings: &Settings) -> bool {
    settings.cluster.listen.is_some() || !settings.node.store.is_memory()
}

/// Makes one backend, or one for each URL. `handler` is the embedded server.
///
/// # Errors
/// If a backend cannot be made from its settings.
pub(crate) async fn backends(
    pool: &Pool,
    handler: Option<PoolHandler>,
    outbound: &Outbound,
) -> anyhow::Result<Vec<Arc<dyn Backend>>> {
    let backend: Arc<dyn Backend> = match &pool.backend {
        config::Backend::Demo => RmcpBackend::start(DemoServer::new()).await,
        config::Backend::Conformance => RmcpBackend::start(ConformanceServer::new()).await,
        config::Backend::Handler => {
            let handler = handler.context(
                "the server of this pool is not in this program, or an earlier change has ended it: start the process again",
            )?;
            (handler.start)().await.context("cannot start the server")?
        }
        config::Backend::Stdio(stdio) => Arc::new(StdioBackend::start((**stdio).clone())),
        config::Backend::Http(http) => return remote(http, outbound).map_err(anyhow::Error::msg),
        config::Backend::OpenApi(openapi) => {
            let choice = ToolChoice {
                allow: pool.offer.tools.allow.clone(),
                deny: pool.offer.tools.deny.clone(),
            };
            return described(openapi, &choice, outbound).map_err(anyhow::Error::msg);
        }
    };
    Ok(vec![backend])
}

/// Calls move to the other backends when a server is down.
fn remote(config: &HttpConfig, outbound: &Outbound) -> Result<Vec<Arc<dyn Backend>>, String> {
    let started = HttpBackend::start(config.clone(), outbound)?.into_iter();
    Ok(started
        .map(|backend| Arc::new(backend) as Arc<dyn Backend>)
        .collect())
}

fn described(
    config: &OpenApiConfig,
    choice: &ToolChoice,
    outbound: &Outbound,
) -> Result<Vec<Arc<dyn Backend>>, String> {
    let bases = config.bases()?.into_iter();
    let started =
        bases.map(|base| OpenApiBackend::start(config.clone(), choice.clone(), base, outbound));
    started
        .map(|backend| backend.map(|backend| Arc::new(backend) as Arc<dyn Backend>))
        .collect()
}

pub(crate) fn sessions(
    settings: &Settings,
    store: Store,
    dispatch: &Dispatch,
    node: NodeId,
) -> Sessions {
    let patience = settings.streams.store_patience.get();
    let config = SessionConfig {
        limits: settings.limits.clone(),
        session: settings.session.clone(),
        streams: settings.streams.clone(),
        calls: settings.calls.clone(),
        tasks: settings.tasks.clone(),
        begin_patience: patience.min(BEGIN_PATIENCE),
    };
    Sessions::start(config, store, Arc::new(dispatch.clone()), node)
}

pub(crate) fn edge_config(settings: &Settings) -> EdgeConfig {
    let server = &settings.server;
    EdgeConfig {
        endpoint: server.endpoint.clone().at(server.listen),
        limits: settings.limits.clone(),
        quotas: Vec::new(),
        streams: settings.streams.clone(),
        calls: settings.calls.clone(),
        catalog: settings.catalog.clone(),
        tasks: settings.tasks.clone(),
        ..EdgeConfig::default()
    }
}

pub(crate) struct Callers {
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) oauth: Option<Arc<OAuth>>,
}

/// # Errors
/// Names a file of `auth` that cannot be used.
pub(crate) fn callers(settings: &Settings) -> Result<Callers, String> {
    let auth = &settings.auth;
    let authenticator: Arc<dyn Authenticator> = match auth.mode {
        AuthMode::None => Arc::new(NoAuthentication),
        AuthMode::Tokens => Arc::new(StaticTokens::start(auth)?),
        AuthMode::OAuth => {
            let outbound = Outbound::new(&settings.outbound)?;
            let oauth = Arc::new(OAuth::start(
                auth,
                &settings.server.endpoint.path,
                &outbound,
            )?);
            return Ok(Callers {
                authenticator: oauth.clone(),
                oauth: Some(oauth),
            });
        }
    };
    Ok(Callers {
        authenticator,
        oauth: None,
    })
}
