//! `shoal serve`: from settings to a serving node, and to its end.

use std::io::{self, Write as _};
use std::net::SocketAddr;

use anyhow::Context as _;

use crate::admin;
use crate::cli::Serve;
use crate::config::{self, AuthMode, Backend, Environment, Loaded, Pool, Settings};
use crate::exit::Failure;
use crate::http::{Bound, HttpLimits};
use crate::node::Node;
use crate::roles;
use crate::shutdown::{Sockets, shut_down};
use crate::signals::Signals;

/// Connections of the admin port: a supervisor, a scraper, a few people.
const ADMIN_CONNECTIONS: usize = 64;
/// The pool that is served when nobody says what to serve.
const DEMO_POOL: &str = "demo";

/// Reads the settings of a server.
///
/// # Errors
/// A configuration that cannot be used, or one that serves nothing.
pub fn settings(serve: &Serve, environment: &Environment) -> Result<Loaded, Failure> {
    let mut loaded = config::load(serve.config.as_deref(), environment, &serve.flags())?;
    if loaded.settings.pools.is_empty() {
        if loaded.from_file {
            return Err(Failure::usage(
                "the configuration has no pool, so there is nothing to serve: add [pools.<name>] with a \
                 backend, or give --demo, or a command after --",
            ));
        }
        let demo = Pool::of(Backend::Demo);
        loaded.settings.pools.insert(DEMO_POOL.to_owned(), demo);
    }
    Ok(loaded)
}

/// Whether nothing but the demo tools is served.
pub fn is_demo(settings: &Settings) -> bool {
    settings
        .pools
        .values()
        .all(|pool| matches!(pool.backend, Backend::Demo))
}

/// Serves until a signal asks for the end.
///
/// # Errors
/// What keeps the node from serving: a part that cannot be built, an address that is taken.
pub async fn run(loaded: Loaded) -> Result<(), Failure> {
    let mut signals = Signals::take().context("cannot listen to signals")?;
    let settings = loaded.settings;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        configuration = ?loaded.sources,
        pools = ?settings.pools.keys().collect::<Vec<_>>(),
        "starting"
    );
    warn_of_anonymous(&settings);

    let clients = bind(settings.server.listen, "server.listen")?;
    let operators = bind(settings.server.admin, "server.admin")?;
    let authenticator = roles::authenticator(&settings)?;
    let node = Node::build(settings).await?;

    let router = node.router(authenticator);
    let server = &node.settings.server;
    let admin = admin::router(node.watch.clone(), server.admin, &server.admin_hosts);
    let limits = http_limits(&node.settings);
    let addresses = (clients.address(), operators.address());
    let sockets = Sockets {
        clients: clients.serve(router, &limits),
        operators: operators.serve(
            admin,
            &HttpLimits {
                connections: ADMIN_CONNECTIONS,
                ..limits
            },
        ),
    };
    announce(&node.settings, addresses)?;

    let signal = signals.next().await;
    tracing::info!(signal, "shutting down; a second signal exits at once");
    signals.next_one_exits();
    shut_down(node, sockets).await;
    Ok(())
}

fn bind(address: SocketAddr, setting: &str) -> anyhow::Result<Bound> {
    Bound::bind(address)
        .with_context(|| format!("cannot listen on {address} ({setting}; port 0 takes a free one)"))
}

fn http_limits(settings: &Settings) -> HttpLimits {
    let limits = &settings.limits;
    HttpLimits {
        connections: limits.connections,
        requests_per_connection: limits.requests_per_connection,
        headers: limits.headers,
        header_bytes: limits.header_bytes,
        header_timeout: settings.server.header_timeout.get(),
    }
}

fn warn_of_anonymous(settings: &Settings) {
    let address = settings.server.listen;
    if settings.auth.mode == AuthMode::None && !address.ip().is_loopback() {
        tracing::warn!(
            %address,
            "NO AUTHENTICATION: everybody who reaches this address may call every tool \
             (auth.allow_anonymous = true); set auth.mode = \"tokens\" to change that"
        );
    }
}

/// Tells on standard output where the node serves: scripts and tests wait for these lines.
fn announce(settings: &Settings, (clients, admin): (SocketAddr, SocketAddr)) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let path = &settings.server.path;
    writeln!(out, "shoal: serving MCP on http://{clients}{path}")
        .and_then(|()| writeln!(out, "shoal: admin on http://{admin}"))
        .and_then(|()| out.flush())
        .context("cannot write to standard output")?;
    if is_demo(settings) {
        // Standard error, so that scripts read nothing but the two lines above.
        let _ = io::stderr().write_all(hint(clients, path).as_bytes());
    }
    Ok(())
}

/// How to call the demo tools.
fn hint(address: SocketAddr, path: &str) -> String {
    format!(
        r#"
Try it:

  curl -s http://{address}{path} -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' \
    -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: echo' \
    -d '{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hello"}},
         "_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}'

Put your own MCP server behind it:  shoal serve -- npx -y @modelcontextprotocol/server-everything
All settings:                       shoal config doc

"#
    )
}
