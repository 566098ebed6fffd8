//! Accepts connections for the balancers and the fault proxy.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// A listener. Dropping it closes all its connections.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    _serving: AbortOnDropHandle<()>,
}

impl Relay {
    /// Listens, and runs `carry` for each connection and its dialler's address.
    pub(crate) async fn start<F>(
        listen: SocketAddr,
        carry: impl Fn(TcpStream, SocketAddr) -> F + Send + 'static,
    ) -> anyhow::Result<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(listen).await;
        let listener = listener.with_context(|| format!("cannot listen on {listen}"))?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                // This process may run out of descriptors for a while.
                let Ok((client, from)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                };
                let _ = client.set_nodelay(true);
                while connections.try_join_next().is_some() {}
                connections.spawn(carry(client, from));
            }
        });
        Ok(Self {
            address,
            _serving: AbortOnDropHandle::new(serving),
        })
    }
}
