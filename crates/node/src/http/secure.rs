//! Each TLS handshake has its own task, with a timeout and a limit on concurrent ones.

use std::sync::Arc;
use std::time::Duration;

use shoal_rpc::ListenerTls;
use shoal_telemetry::metrics::{HandshakeOutcome, TlsPort, metrics};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use super::refusal::Refusal;
use super::socket::HttpSocket;

/// A TLS handshake begins with this byte, HTTP with a letter.
const HANDSHAKE: u8 = 0x16;

/// A server's TLS. Clones share the limit on handshakes.
#[derive(Clone, Debug)]
pub struct HttpTls {
    tls: ListenerTls,
    port: TlsPort,
    within: Duration,
    room: Arc<Semaphore>,
}

impl HttpTls {
    /// At most `handshakes` run at once, each for at most `within`, including the wait for a permit.
    pub fn new(tls: ListenerTls, port: TlsPort, handshakes: usize, within: Duration) -> Self {
        Self {
            tls,
            port,
            within,
            room: Arc::new(Semaphore::new(handshakes)),
        }
    }

    /// `None` if the client sends no TLS, or the handshake fails or takes too long.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
        socket: impl FnOnce(TcpStream) -> HttpSocket,
    ) -> Option<TlsStream<HttpSocket>> {
        let greeted = timeout(self.within, async {
            // Takes a permit only after the first byte, because balancers open connections that stay silent.
            let mut first = [0];
            if !matches!(stream.peek(&mut first).await, Ok(1)) {
                return None;
            }
            let _place = self.room.acquire().await.ok()?;
            self.greet(first[0], stream, socket).await
        });
        greeted.await.unwrap_or_else(|_| {
            metrics()
                .tls
                .handshake(self.port, HandshakeOutcome::TooSlow);
            None
        })
    }

    async fn greet(
        &self,
        first: u8,
        mut stream: TcpStream,
        socket: impl FnOnce(TcpStream) -> HttpSocket,
    ) -> Option<TlsStream<HttpSocket>> {
        if first.is_ascii_alphabetic() && first != HANDSHAKE {
            metrics()
                .tls
                .handshake(self.port, HandshakeOutcome::Plaintext);
            let said = stream.write_all(&Refusal::NoTls.wire()).await;
            let ended = stream.shutdown().await;
            tracing::debug!(?said, ?ended, "a client came without TLS");
            return None;
        }
        let accepted = self.tls.accept(socket(stream)).await;
        metrics().tls.handshake(
            self.port,
            match &accepted {
                Ok(_) => HandshakeOutcome::Agreed,
                Err(_) => HandshakeOutcome::Failed,
            },
        );
        let refused = |why: &String| tracing::debug!(why, "no TLS with a client");
        accepted.inspect_err(refused).ok()
    }
}
