use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use shoal_auth::{NoAuthentication, OAuth, StaticTokens};
use shoal_demo::{ConformanceServer, DemoServer};
use shoal_dispatch::{Config as DispatchConfig, Dispatch};
use shoal_edge::{EdgeConfig, HttpSsePaths, TaskSettings, Timing, TrustedProxies};
use shoal_outbound::Outbound;
use shoal_policy::RulesInForce;
use shoal_ports::{Authenticator, NodeId, Store};
use shoal_session::{SessionConfig, Sessions};
use shoal_worker::{
    Backend, HttpBackend, HttpConfig, OpenApiBackend, OpenApiConfig, RmcpBackend, StdioBackend,
    ToolChoice,
};

use crate::config::{self, AuthMode, Pool, Role, Settings};
use crate::pool_handler::PoolHandler;

/// Maximum time that a request waits for the store before its client has to retry.
const BEGIN_PATIENCE: Duration = Duration::from_secs(1);

/// How long a node waits for workers before it takes sessions without their tools.
const TOOLS_WITHIN: Duration = Duration::from_secs(15);

pub(crate) fn dispatch(
    settings: &Settings,
    policies: Option<Arc<RulesInForce>>,
) -> anyhow::Result<Dispatch> {
    let (catalog, calls) = (&settings.catalog, &settings.calls);
    let config = DispatchConfig {
        server_info: catalog.server_info.as_ref().map(Into::into),
        instructions: catalog.instructions.clone(),
        page_size: catalog.page_size,
        list_ttl: catalog.list_ttl.get(),
        list_cache_scope: catalog.list_cache_scope,
        read_ttl: catalog.read_ttl.get(),
        read_cache_scope: catalog.read_cache_scope,
        announce_after: match settings.node.store.is_memory() {
            true => Duration::ZERO,
            false => catalog.announce_after.get(),
        },
        learn_for: match settings.cluster.listen {
            Some(_) => settings.cluster.learning.get(),
            None => Duration::ZERO,
        },
        settle_within: match others_join(settings) {
            true => TOOLS_WITHIN,
            false => Duration::ZERO,
        },
        unnamed_pools: catalog.unnamed_pools || settings.node.is(Role::Worker),
        validate_arguments: catalog.validate_arguments,
        validation_steps: catalog.validation_steps,
        start_attempts: calls.attempts,
        reconnect_wait: settings.cluster.rejoin.get(),
        circuit_failures: calls.circuit_failures,
        circuit_open: calls.circuit_open.get(),
        circuit_open_max: calls.circuit_open_max.get(),
        max_rounds: calls.input_rounds,
        parking_time: calls.input_timeout.get().max(Duration::from_secs(1)),
        clock_skew: calls.clock_skew.get(),
        max_parked: calls.waiting,
        max_parked_per_principal: calls.waiting_per_principal,
        policies,
        pools: settings
            .pools
            .iter()
            .map(|(name, pool)| (name.clone(), pool.to_dispatch()))
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
                allow: pool.tools.allow.clone(),
                deny: pool.tools.deny.clone(),
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
    let (limits, session) = (&settings.limits, &settings.session);
    let (streams, calls) = (&settings.streams, &settings.calls);
    let config = SessionConfig {
        limits: limits.clone(),
        retention: streams.retention.get(),
        state_value_bytes: session.state_value_bytes,
        state_bytes: session.state_bytes,
        state_keys: session.state_keys,
        idle: session.idle.get(),
        tasks: settings.tasks.enabled,
        task_ttl: settings.tasks.ttl.get(),
        task_poll_interval: settings.tasks.poll_interval.get(),
        task_result_bytes: settings.tasks.result_bytes,
        passivate_after: session.passivate_after.get(),
        sweep_every: session.sweep_every.get(),
        grace: streams.grace.get(),
        hold: streams.hold.get(),
        hold_bytes: streams.hold_bytes,
        call_timeout: calls.timeout.get(),
        retry: streams.retry.get(),
        retry_spread: streams.retry_spread.get(),
        tail_events: streams.tail_events,
        reader_buffer: streams.buffer,
        reader_stall: streams.stall.get(),
        start_attempts: calls.attempts,
        begin_patience: streams.store_patience.get().min(BEGIN_PATIENCE),
        store_patience: streams.store_patience.get(),
        retry_after: calls.retry_after.get(),
    };
    Sessions::start(config, store, Arc::new(dispatch.clone()), node)
}

pub(crate) fn edge_config(settings: &Settings) -> EdgeConfig {
    let (server, limits) = (&settings.server, &settings.limits);
    let (streams, calls) = (&settings.streams, &settings.calls);
    let for_address = EdgeConfig::for_address(server.listen);
    EdgeConfig {
        path: server.path.clone(),
        http_sse: server.http_sse.then(|| HttpSsePaths {
            public_base: server.public_base.clone(),
            ..HttpSsePaths::default()
        }),
        json_response: server.json_response,
        websocket: server.websocket,
        allowed_hosts: if server.allowed_hosts.is_empty() {
            for_address.allowed_hosts
        } else {
            server.allowed_hosts.clone()
        },
        allowed_origins: server.allowed_origins.clone(),
        limits: limits.clone(),
        quotas: Vec::new(),
        // The check of the configuration has parsed these addresses.
        trusted_proxies: TrustedProxies::parse(&server.trusted_proxies).unwrap_or_default(),
        tasks: TaskSettings {
            enabled: settings.tasks.enabled,
            after: settings.tasks.after.get(),
        },
        timing: Timing {
            body: server.body_timeout.get(),
            body_room: Timing::default().body_room,
            stream_after: streams.grace.get(),
            call_deadline: calls.timeout.get(),
            input: calls.input_timeout.get(),
            keep_alive: streams.keep_alive.get(),
            discover_ttl: settings.catalog.discover_ttl.get(),
            reconnect_after: streams.retry.get(),
            reconnect_spread: streams.retry_spread.get(),
        },
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
            let oauth = Arc::new(OAuth::start(auth, &settings.server.path, &outbound)?);
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
