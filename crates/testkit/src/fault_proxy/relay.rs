//! One connection through a proxy.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::{Fault, Faults};

const PIECE: usize = 64 * 1024;

/// The faults that hold for one connection.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) class: String,
    pub(super) faults: watch::Receiver<Faults>,
    pub(super) disturbed: Arc<AtomicU64>,
}

impl Link {
    /// Returns when the connection is to be cut.
    pub(super) async fn cut(&mut self) {
        self.until(|fault| fault == Fault::Cut).await;
        self.disturbed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns when a piece may pass.
    async fn pass(&mut self) {
        if self.faults.borrow().of(&self.class) == Fault::BlackHole {
            self.disturbed.fetch_add(1, Ordering::Relaxed);
        }
        if let Fault::Delay(time) = self.until(|fault| fault != Fault::BlackHole).await {
            tokio::time::sleep(time).await;
            // The connection may have gone silent meanwhile.
            self.until(|fault| fault != Fault::BlackHole).await;
        }
    }

    async fn until(&mut self, wanted: impl Fn(Fault) -> bool) -> Fault {
        let class = &self.class;
        let found = self
            .faults
            .wait_for(|faults| wanted(faults.of(class)))
            .await;
        match found.map(|faults| faults.of(class)) {
            Ok(fault) => fault,
            // The proxy is going, and this connection with it.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Carries bytes both ways until both ends are done.
///
/// # Errors
/// When either connection breaks.
pub(super) async fn carry(
    client: &mut TcpStream,
    upstream: SocketAddr,
    mut link: Link,
) -> io::Result<()> {
    link.pass().await;
    let mut server = TcpStream::connect(upstream).await?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let carried = tokio::try_join!(
        pump(&mut from_client, &mut to_server, link.clone()),
        pump(&mut from_server, &mut to_client, link),
    );
    if carried.is_err() {
        let _ = server.set_zero_linger();
    }
    carried.map(drop)
}

async fn pump(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut link: Link,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = from.read(&mut piece).await?;
        link.pass().await;
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&piece[..length]).await?;
    }
}
