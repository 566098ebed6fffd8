pub(crate) mod cluster;
pub(crate) mod collector;
pub(crate) mod floor;
pub(crate) mod get;
pub(crate) mod peer;
pub(crate) mod spawned;

use std::io::Read as _;
use std::net::SocketAddr;

use anyhow::Context;
use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

use cluster::Cluster;
use cluster::redis::Redis;
use spawned::Spawned;

const PATH: &str = "/mcp";

const LISTENING: &str = "listening on ";

/// A server that this program has started.
pub(crate) enum Running {
    One(Spawned),
    Many(Cluster),
    /// A gateway, and the server behind it.
    Both(Spawned, Spawned),
}

impl Running {
    pub(crate) fn url(&self) -> &str {
        match self {
            Self::One(server) | Self::Both(server, _) => &server.url,
            Self::Many(cluster) => &cluster.url,
        }
    }

    /// Returns the admin port, if the server is a single process of Shoal.
    pub(crate) fn admin(&self) -> Option<&str> {
        match self {
            Self::One(server) => Some(&server.admin),
            Self::Many(_) | Self::Both(..) => None,
        }
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        match self {
            Self::One(server) => vec![server.pid()],
            Self::Many(cluster) => cluster.pids(),
            Self::Both(gateway, server) => vec![gateway.pid(), server.pid()],
        }
    }

    pub(crate) fn redis(&self) -> Option<Redis> {
        match self {
            Self::One(_) | Self::Both(..) => None,
            Self::Many(cluster) => Some(cluster.redis.clone()),
        }
    }
}

#[allow(
    clippy::print_stdout,
    reason = "whoever started the server reads its address from here"
)]
async fn serve(router: Router, listen: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("could not listen on {listen}"))?;
    println!("{LISTENING}http://{}{PATH}", listener.local_addr()?);
    // Otherwise an answer in several writes waits for the client's delayed acknowledgement.
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    axum::serve(listener, router)
        .await
        .context("could not serve")
}

/// With `input`, also ends with standard input, as when the starting program dies.
pub(crate) async fn serve_while(
    input: bool,
    serving: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    if !input {
        return serving.await;
    }
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    // A read cannot be cancelled, so it has its own thread.
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(ended);
    });
    tokio::select! {
        served = serving => served,
        _ = end => Ok(()),
    }
}
