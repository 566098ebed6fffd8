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

const PATH: &str = "/mcp";

const LISTENING: &str = "listening on ";

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
