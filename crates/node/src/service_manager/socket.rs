//! The socket of the service manager. The crate `sd-notify` would take an abstract socket (`@…`) for a path.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(super) struct NotifySocket(SocketAddr);

impl NotifySocket {
    /// `name` is a path, or `@` and an abstract name.
    pub(super) fn at(name: &OsStr) -> Option<Self> {
        let address = match name.as_bytes() {
            [b'/', ..] => SocketAddr::from_pathname(name),
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            _ => Err(io::Error::from(io::ErrorKind::Unsupported)),
        };
        match address {
            Ok(address) => Some(Self(address)),
            Err(error) => {
                tracing::warn!(?name, %error, "NOTIFY_SOCKET is neither a path nor @ and a name: nobody is told when this process is ready");
                None
            }
        }
    }

    /// Logs a failure, but does not return it.
    pub(super) async fn send(&self, lines: &str) {
        let sent = timeout(PATIENCE, self.try_send(lines)).await;
        let sent = sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        if let Err(error) = sent {
            tracing::warn!(%error, "the service manager could not be told: {lines}");
        }
    }

    async fn try_send(&self, lines: &str) -> io::Result<()> {
        // Connect for each message, because a restarted service manager has another socket under this name.
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&self.0)?;
        socket.set_nonblocking(true)?;
        let socket = tokio::net::UnixDatagram::from_std(socket)?;
        socket.send(lines.as_bytes()).await.map(drop)
    }
}
