//! `shoal serve`: serves the settings until a signal ends the process.

use std::io::{self, IsTerminal as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use axum::Router;
use shoal_edge::EdgeService;
use shoal_ports::NodeId;

use crate::admin::{
    ClientEndpoint, Console, Front, Observed as _, OperatorCalls, OperatorEdge, Readiness,
};
use crate::certificates::Certificates;
use crate::cli::{Pools, Serve};
use crate::config::{AuthMode, Backend, Environment, Loaded, Pool, Role, SecretSource, Settings};
use crate::exit::Failure;
use crate::http::{BoundHttp, HttpLimits};
use crate::narrator::{Addresses, Narrator};
use crate::node::Node;
use crate::pool_handler::PoolHandler;
use crate::program::Program;
use crate::reload::{ConfigReader, Reloads};
use crate::service_manager::ServiceManager;
use crate::shutdown::{HttpServers, shut_down};
use crate::signals::{HangUps, Signals};
use crate::starting::Starting;
use crate::{admin, cluster, descriptors, given, roles};

pub(crate) const ADMIN_CONNECTIONS: usize = 64;
/// The pool that is served if there is neither a configuration file nor another pool.
const DEMO_POOL: &str = "demo";

/// Creates the reader of a server's settings. For a worker without `discovery.file`, the reader rejects a configuration
/// file without pools.
pub fn reader(serve: &Serve, program: &Program, environment: &Environment) -> ConfigReader {
    let (check, given) = (program.check(), serve.pools.clone());
    let accept = move |loaded: &mut Loaded| {
        check(&loaded.settings)?;
        accept(&given, loaded)
    };
    let file = serve.config.as_deref();
    ConfigReader::new(&program.settings, file, environment, serve.flags(), accept)
}

fn accept(given: &Pools, loaded: &mut Loaded) -> Result<(), Failure> {
    if !loaded.settings.node.is(Role::Worker) {
        return Ok(());
    }
    given::check(given, &loaded.settings)?;
    if loaded.settings.pools.is_empty() && loaded.settings.discovery.file.is_none() {
        if loaded.from_file {
            return Err(Failure::usage(
                "the configuration has no pool, so there is nothing to serve: add [pools.<name>] with a \
                 backend, or give --demo, or a command after --",
            ));
        }
        let demo = Pool::of(Backend::Demo);
        loaded.settings.pools.insert(DEMO_POOL.to_owned(), demo);
    }
    Ok(())
}

/// Whether all pools serve the demo tools.
pub fn is_demo(settings: &Settings) -> bool {
    let mut pools = settings.pools.values();
    !settings.pools.is_empty() && pools.all(|pool| matches!(pool.backend, Backend::Demo))
}

/// Serves as the node `id`, with the embedded server `handler`, until a signal ends the process.
///
/// # Errors
/// If a part cannot be built, or an address is in use.
pub async fn run(
    serve: Serve,
    reader: ConfigReader,
    loaded: Loaded,
    id: NodeId,
    handler: Option<PoolHandler>,
) -> Result<(), Failure> {
    let mut signals = Signals::take().context("cannot listen to signals")?;
    let hang_ups = HangUps::take().context("cannot listen to signals")?;
    let settings = loaded.settings.clone();
    let narrator = Narrator::new(&settings);
    let manager = ServiceManager::of_process();
    narrator.starting(&loaded, &serve.pools);
    for warning in loaded.warnings.iter().chain(&loaded.left_out) {
        tracing::warn!("{warning}");
    }
    if settings.node.is(Role::Worker) {
        given::tell_withheld(&settings);
        if !narrator.is_at_terminal() {
            given::tell_isolation(&settings);
        }
    }

    // Opened before the ports, because a wrong certificate is a configuration error.
    let certificates = Certificates::open(&settings).map_err(Failure::usage)?;
    certificates.renew(&settings);
    let _expiring = certificates.observe_ports();
    let server = &settings.server;
    let clients = settings.node.is(Role::Edge).then_some(server.listen);
    let clients = clients.map(|address| bind(address, "server.listen"));
    let clients = clients.transpose()?;
    let clients = clients.map(|bound| bound.over(certificates.clients(&settings)));
    let operators = bind(server.admin, "server.admin")?;
    let operators = operators.over(certificates.operators(&settings));
    let others = settings.cluster.listen;
    let others = others.map(cluster::BoundCluster::bind).transpose()?;
    let callers = settings.node.is(Role::Edge);
    let callers = callers.then(|| roles::callers(&settings)).transpose();
    let callers = callers.map_err(Failure::usage)?;
    let limits = http_limits(&settings);
    let starting = Arc::new(Starting::default());
    let admin_origin = operators.origin();
    let front = Front::new(
        starting.clone(),
        settings.server.admin,
        &settings.server.admin_hosts,
    );
    let operators = operators.serve(
        front.router(),
        &HttpLimits {
            connections: ADMIN_CONNECTIONS,
            ..limits.clone()
        },
    );
    let building = Node::build(settings, id, others, certificates.links, &starting, handler);
    let node = tokio::select! {
        node = building => node?,
        () = manager.follow(|| Readiness::not_yet(starting.why())) => unreachable!("it never ends"),
        signal = signals.next() => {
            tracing::info!(signal, why = starting.why(), "ended before it could serve");
            return Ok(());
        }
    };

    let server = &node.settings.server;
    let token = server.admin_token.as_ref().map(SecretSource::read_token);
    let token = token.transpose().map_err(anyhow::Error::msg)?;
    let (listen, hosts) = (server.admin, &server.admin_hosts);
    let edge = callers.and_then(|callers| {
        if let Some(oauth) = &callers.oauth {
            node.watch.see_oauth(oauth);
        }
        node.edge(callers.authenticator)
    });
    let calls = operator_calls(&node.settings, edge.as_ref());
    let endpoint =
        |bound: &BoundHttp| format!("{}{}", bound.origin(), node.settings.server.endpoint.path);
    let client_url = clients.as_ref().map(endpoint);
    let console = Console::new(
        node.fleet.clone(),
        calls,
        ClientEndpoint::new(&node.settings, client_url.clone()),
        token,
        &server.operators,
        listen,
        hosts,
    );
    let admin = admin::router(node.watch.clone(), Some(console), listen, hosts);
    front.open(admin);
    let addresses = Addresses {
        clients: client_url,
        cluster: node.cluster_address().map(|address| address.to_string()),
        admin: admin_origin,
    };
    let hint = hint_for(&node.settings, clients.as_ref());
    let served = clients.zip(edge);
    let sockets = HttpServers {
        clients: served.map(|(clients, edge)| {
            let (connections, less) = descriptors::connections(&node.settings, ADMIN_CONNECTIONS);
            if let Some(less) = less {
                narrator.advice(&less, descriptors::matters(&node.settings));
            }
            let limits = HttpLimits {
                connections,
                ..limits
            };
            clients.serve(edge, &limits)
        }),
        operators,
    };
    let configuration = Arc::clone(&node.configuration);
    let reloads = Reloads::new(reader, loaded, node.pools.clone(), configuration)
        .with_quotas(&node.watch.quotas)
        .with_rules(node.rules.clone(), &node.watch.dispatch)
        .telling(manager.clone());
    let reloading = reloads.run(hang_ups);
    announce(&addresses, &narrator)?;

    let telling = async {
        narrator.ready(&node.watch, &addresses).await;
        shoal_telemetry::logging::tell(&hint);
        std::future::pending().await
    };
    let ended = tokio::select! {
        signal = signals.next() => {
            narrator.stopping(signal);
            manager.stopping(signal).await;
            Ok(())
        }
        mut failure = given::cannot_start(&serve.pools, node.pools.workers()) => {
            narrator.failed(&mut failure);
            Err(failure)
        }
        () = telling => Ok(()),
        () = manager.follow(|| node.watch.readiness()) => Ok(()),
    };
    drop(reloading);
    signals.next_one_exits();
    let began = Instant::now();
    manager.living(shut_down(node, sockets)).await;
    narrator.stopped(began.elapsed());
    ended
}

pub(crate) fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<BoundHttp> {
    BoundHttp::bind(address)
        .with_context(|| format!("cannot listen on {address} ({setting}; port 0 takes a free one)"))
}

/// Returns why operators cannot call tools here, if so. If clients need a token, the console needs one too, because it
/// must not give access without a token.
fn operator_calls(settings: &Settings, edge: Option<&EdgeService>) -> OperatorCalls {
    let server = &settings.server;
    if !server.console_calls {
        return Err("tools are not called from here: server.console_calls = false");
    }
    if settings.auth.mode != AuthMode::None
        && server.admin_token.is_none()
        && server.operators.is_empty()
    {
        return Err(
            "clients need a token here, and the console asks for none: set server.operators or server.admin_token to call tools",
        );
    }
    let edge =
        edge.ok_or("this process has no edge: call tools from the console of one that has")?;
    let edge = edge.clone();
    let answer = move |request| {
        let edge = edge.clone();
        async move { edge.answer(request).await }
    };
    Ok(OperatorEdge::new(
        Router::new().fallback(answer),
        &server.endpoint.path,
    ))
}

pub(crate) fn http_limits(settings: &Settings) -> HttpLimits {
    let limits = &settings.limits;
    HttpLimits {
        connections: limits.connections,
        requests_per_connection: limits.requests_per_connection,
        headers: limits.headers,
        header_bytes: limits.header_bytes,
        header_timeout: settings.server.header_timeout.get(),
        idle_timeout: settings.server.idle_timeout.get(),
        write_timeout: settings.server.write_timeout.get(),
    }
}

/// Prints the addresses, for which scripts and tests wait. At a terminal, the narrator prints them when the node is
/// ready.
fn announce(addresses: &Addresses, narrator: &Narrator) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if narrator.is_at_terminal() && out.is_terminal() {
        return Ok(());
    }
    let line = |what: &str, address: &str| format!("shoal: {what} on {address}\n");
    let (clients, cluster) = (&addresses.clients, &addresses.cluster);
    let lines = [
        clients.as_ref().map(|url| line("serving MCP", url)),
        cluster.as_ref().map(|address| line("cluster", address)),
        Some(line("admin", &addresses.admin)),
    ];
    let lines: String = lines.into_iter().flatten().collect();
    out.write_all(lines.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}

fn hint_for(settings: &Settings, clients: Option<&BoundHttp>) -> String {
    let plain = settings.server.tls.certificate.is_none();
    let clients = clients.filter(|_| plain && is_demo(settings));
    clients.map_or_else(String::new, |bound| {
        hint(
            bound.address(),
            &settings.server.endpoint.path,
            settings.auth.mode,
        )
    })
}

fn dialled(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}

fn hint(bound: SocketAddr, path: &str, auth: AuthMode) -> String {
    let address = dialled(bound);
    let token = match auth {
        AuthMode::Tokens | AuthMode::OAuth => " -H \"Authorization: Bearer $SHOAL_TOKEN\"",
        AuthMode::None => "",
    };
    format!(
        r#"
Try it:

  curl -s http://{address}{path}{token} -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' \
    -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: echo' \
    -d '{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hello"}},
         "_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}'

Put your own MCP server behind it:  shoal serve -- npx -y @modelcontextprotocol/server-everything
All settings:                       shoal config doc

"#
    )
}

#[cfg(test)]
mod tests {
    use super::hint;
    use crate::config::AuthMode;

    #[test]
    fn the_hint_can_be_typed_as_it_is() {
        let hint = |bound: &str, auth| hint(bound.parse().unwrap(), "/mcp", auth);
        let open = hint("127.0.0.1:80", AuthMode::None);
        assert!(open.contains(" http://127.0.0.1:80/mcp ") && !open.contains("Authorization"));
        let guarded = hint("0.0.0.0:8080", AuthMode::Tokens);
        assert!(guarded.contains(" http://127.0.0.1:8080/mcp "), "{guarded}");
        assert!(guarded.contains(r#"-H "Authorization: Bearer $SHOAL_TOKEN""#));
        assert!(hint("[::]:1", AuthMode::None).contains(" http://[::1]:1/mcp "));
    }
}
