//! `shoal stdio`: serves one client on standard input and output. The bridge translates lines to requests of Streamable
//! HTTP. A server in this process gets the requests without a socket.
//!
//! | file | contents |
//! |---|---|
//! | `console.rs` | lines in, lines out |
//! | `client.rs` | the client of `shoal tools` and `shoal call` |
//! | `bridge.rs` | the era of each line |
//! | `legacy.rs`, `legacy/` | a session |
//! | `modern.rs`, `modern/` | modern requests |
//! | `exchange.rs`, `exchange/` | the connection to the server |
//! | `wire.rs`, `in_flight.rs`, `sse.rs` | shared parts |

mod bridge;
pub(crate) mod client;
mod console;
pub(crate) mod exchange;
mod in_flight;
mod legacy;
mod modern;
mod sse;
mod wire;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use shoal_auth::NoAuthentication;
use shoal_ports::NodeId;
use shoal_protocol::{Notification, RawObject, RequestId};
use shoal_worker::Line;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::admin::Observed as _;
use crate::cli::Stdio;
use crate::config::{Environment, Loaded, Settings};
use crate::exit::Failure;
use crate::node::Node;
use crate::pool_handler::PoolHandler;
use crate::program::Program;
use crate::reload::{ConfigReader, Reloads};
use crate::signals::{HangUps, Signals};
use crate::starting::Starting;
use crate::{given, shutdown};
use bridge::StdioBridge;
use console::{ConsoleOutbox, read_lines, write_lines};
use exchange::{InProcess, RemoteExchange, ServerExchange};

/// How long to wait for the pools. Afterwards, the bridge serves the client without them.
const READY_WITHIN: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

/// Creates the reader of a bridge's settings. Without `--url`, the reader rejects a configuration without pools.
pub fn reader(stdio: &Stdio, program: &Program, environment: &Environment) -> ConfigReader {
    let (check, given) = (program.check(), stdio.pools.clone());
    let is_remote = stdio.url.is_some();
    let accept = move |loaded: &mut Loaded| {
        if !is_remote {
            check(&loaded.settings)?;
        }
        given::check(&given, &loaded.settings)?;
        if !is_remote && loaded.settings.pools.is_empty() {
            return Err(Failure::usage(
                "nothing to serve: give the --url of a server, --demo, a command after --, or a \
                 configuration with a pool",
            ));
        }
        Ok(())
    };
    let file = stdio.config.as_deref();
    ConfigReader::new(&program.settings, file, environment, stdio.flags(), accept)
}

/// Serves the client on the standard streams until the client closes one of them or a signal arrives.
///
/// # Errors
/// If the server cannot be built, or the URL or token cannot be used.
pub async fn run(
    stdio: Stdio,
    token: Option<String>,
    reader: ConfigReader,
    loaded: Loaded,
    id: NodeId,
    handler: Option<PoolHandler>,
) -> Result<(), Failure> {
    let mut signals = Signals::take().context("cannot listen to signals")?;
    let hang_ups = HangUps::take().context("cannot listen to signals")?;
    let settings = loaded.settings.clone();
    if stdio.url.is_none() {
        given::tell_withheld(&settings);
    }
    let (limit, nesting) = (settings.limits.body_bytes, settings.limits.nesting);
    let patience = settings.shutdown.calls.get();
    let (exchange, node) = tokio::select! {
        server = server(&stdio, token, settings, id, handler) => server?,
        signal = signals.next() => {
            tracing::info!(signal, "ended before it could serve");
            return Ok(());
        }
    };

    // With a remote server, the default action of SIGHUP is off too: a closed terminal sends the signal, but the
    // process ends only when its input ends.
    let reloading = node.as_ref().map(|node| {
        let configuration = Arc::clone(&node.configuration);
        let reloads = Reloads::new(reader, loaded, node.pools.clone(), configuration);
        reloads.run(hang_ups)
    });

    let (outbox, written) = ConsoleOutbox::new();
    let writer = write_lines(io::stdout(), written);
    let lines = read_lines(io::stdin(), limit);
    let bridge = StdioBridge::new(exchange, outbox.clone(), nesting);

    let serving = async {
        if let Some(node) = &node {
            begin(&stdio, node, &lines, patience).await?;
        }
        Ok(pump(lines, &bridge, limit, patience).await)
    };
    let mut closed = None;
    let ended = tokio::select! {
        ended = serving => ended.map(|at| closed = Some(at)),
        () = outbox.closed() => Ok(()),
        signal = signals.next() => {
            tracing::info!(signal, "ending; a second signal exits at once");
            Ok(())
        }
    };
    drop(reloading);
    signals.next_one_exits();
    let patience = if outbox.is_closed() {
        Duration::ZERO
    } else {
        patience
    };
    let waited = closed.map_or(Duration::ZERO, |at: Instant| at.elapsed());
    bridge.finish(patience.saturating_sub(waited)).await;
    if let Some(node) = node {
        shutdown::end_parts(node).await;
    }
    drop((bridge, outbox));
    // A client that stopped reading must not delay the end.
    let written = tokio::task::spawn_blocking(move || writer.join());
    let _ = tokio::time::timeout(patience, written).await;
    ended
}

/// After the client has closed its end, the bridge has `patience` to take the remaining lines.
async fn pump(
    mut lines: mpsc::Receiver<Line>,
    bridge: &StdioBridge,
    limit: usize,
    patience: Duration,
) -> Instant {
    let mut closed = None;
    while let Some(line) = lines.recv().await {
        let taken = async {
            match line {
                Line::Whole(line) => bridge.take(line).await,
                Line::TooLong(ends) => bridge.too_long(&ends, limit).await,
            }
        };
        tokio::pin!(taken);
        while tokio::time::timeout(LOOK, &mut taken).await.is_err() {
            if !lines.is_closed() {
                continue;
            }
            let at = *closed.get_or_insert_with(Instant::now);
            if at.elapsed() >= patience {
                return at;
            }
        }
    }
    tracing::debug!("the client closed its end");
    closed.unwrap_or_else(Instant::now)
}

async fn server(
    stdio: &Stdio,
    token: Option<String>,
    settings: Settings,
    id: NodeId,
    handler: Option<PoolHandler>,
) -> Result<(Arc<dyn ServerExchange>, Option<Node>), Failure> {
    if let Some(url) = &stdio.url {
        let token = stdio.token.clone().or(token);
        let remote = RemoteExchange::new(url, token.as_deref());
        let remote = remote.map_err(|error| Failure::usage(format!("{error:#}")))?;
        return Ok((Arc::new(remote), None));
    }
    let path = settings.server.endpoint.path.clone();
    let node = Node::build(settings, id, None, None, &Starting::default(), handler).await?;
    // No authentication, because the owner of the standard streams owns this process.
    let edge = node.edge(Arc::new(NoAuthentication));
    let edge = edge.ok_or_else(|| {
        Failure::usage("a client on the standard streams needs the role edge: leave node.roles out")
    })?;
    Ok((Arc::new(InProcess::new(edge, path)), Some(node)))
}

async fn begin(
    stdio: &Stdio,
    node: &Node,
    lines: &mpsc::Receiver<Line>,
    patience: Duration,
) -> Result<(), Failure> {
    tokio::select! {
        () = wait_until_ready(node, lines, patience) => Ok(()),
        failure = given::cannot_start(&stdio.pools, node.pools.workers()) => Err(failure),
    }
}

/// Waits for the pools, because clients of stdio list tools once. After the end of the input, waits only while lines
/// remain, and for `patience` at most.
async fn wait_until_ready(node: &Node, lines: &mpsc::Receiver<Line>, patience: Duration) {
    let mut deadline = Instant::now() + READY_WITHIN;
    let mut is_closed = false;
    loop {
        let readiness = node.watch.readiness();
        if readiness.is_ready() {
            return;
        }
        if lines.is_closed() && !is_closed {
            is_closed = true;
            deadline = deadline.min(Instant::now() + patience);
        }
        if is_closed && lines.is_empty() {
            return;
        }
        if Instant::now() >= deadline {
            let reasons = readiness.reasons();
            tracing::warn!(?reasons, "serving although not everything is ready");
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn cancelled_request(notification: &Notification) -> Option<RequestId> {
    let params = notification.params.as_ref().and_then(RawObject::of)?;
    RequestId::from_json(&params.get("requestId")?).ok()
}

#[cfg(test)]
mod tests;
