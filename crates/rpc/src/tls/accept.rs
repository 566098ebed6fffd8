//! Handshakes run concurrently, so that a slow peer does not delay others.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use shoal_telemetry::metrics::{HandshakeOutcome, TlsPort, metrics};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;

use super::error::refusal;
use super::stream::Accepted;
use super::{Standing, Tls};

/// Maximum concurrent handshakes. Further connections wait in the kernel's queue.
const HANDSHAKES: usize = 1024;
const READY: usize = 64;
/// The pause after a failure to accept, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The first byte of a TLS handshake; HTTP/2 begins with a letter.
const HANDSHAKE: u8 = 0x16;

/// Limits each handshake to `within`. Closes the listener on drop.
pub(crate) fn incoming(
    listener: TcpListener,
    tls: Tls,
    within: Duration,
) -> impl Stream<Item = io::Result<Accepted>> {
    let (ready, connections) = mpsc::channel(READY);
    tokio::spawn(accept(listener, tls, within, ready));
    ReceiverStream::new(connections)
}

async fn accept(
    listener: TcpListener,
    tls: Tls,
    within: Duration,
    ready: mpsc::Sender<io::Result<Accepted>>,
) {
    let room = Arc::new(Semaphore::new(HANDSHAKES));
    loop {
        let next = async {
            let place = Arc::clone(&room).acquire_owned().await;
            let place = place.expect("the semaphore is never closed");
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            next = next => next,
            () = ready.closed() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of another process");
                sleep(PAUSE).await;
                continue;
            }
        };
        let (tls, ready) = (tls.clone(), ready.clone());
        tokio::spawn(async move {
            let greeted = tokio::select! {
                greeted = timeout(within, greet(stream, peer, &tls)) => greeted,
                () = ready.closed() => return,
            };
            drop(place);
            let Ok(greeted) = greeted else {
                count(HandshakeOutcome::TooSlow);
                return;
            };
            if let Some(accepted) = greeted {
                let _ = ready.send(Ok(accepted)).await;
            }
        });
    }
}

async fn greet(stream: TcpStream, peer: SocketAddr, tls: &Tls) -> Option<Accepted> {
    let _ = stream.set_nodelay(true);
    if tls.files().allow_plaintext && !begins_tls(&stream).await? {
        count(HandshakeOutcome::Plaintext);
        tracing::warn!(%peer, "another process connected without TLS (cluster.tls.allow_plaintext = true)");
        return Some(Accepted::plain(stream, peer));
    }
    let acceptor = TlsAcceptor::from(Arc::clone(&tls.material().server));
    match acceptor.accept(stream).into_fallible().await {
        Ok(stream) => {
            let shown = stream.get_ref().1.peer_certificates()?.first()?;
            let standing = Standing::of(shown, &tls.shared.source.name).ok()?;
            count(HandshakeOutcome::Agreed);
            let open = tls.trust().opened();
            Some(Accepted::secured(stream, standing, peer, open))
        }
        Err((error, stream)) => {
            refuse(&error, peer);
            linger(stream).await;
            None
        }
    }
}

fn count(outcome: HandshakeOutcome) {
    metrics().tls.handshake(TlsPort::Cluster, outcome);
}

fn refuse(error: &io::Error, peer: SocketAddr) {
    if super::error::cause(error).is_none() {
        tracing::debug!(%peer, %error, "a connection ended before TLS was agreed");
        return;
    }
    count(HandshakeOutcome::Failed);
    let why = refusal(error);
    tracing::warn!(%peer, why, "a connection of another process was refused");
}

/// `None` if the connection ends before its first byte.
async fn begins_tls(stream: &TcpStream) -> Option<bool> {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(1) => Some(first[0] == HANDSHAKE),
        _ => None,
    }
}

/// Waits until the peer has read the alert, because closing a socket with unread data discards the
/// alert.
async fn linger(mut stream: TcpStream) {
    let mut unread = [0; 1024];
    let gone = async {
        let _ = stream.shutdown().await;
        while matches!(stream.read(&mut unread).await, Ok(bytes) if bytes > 0) {}
    };
    let _ = timeout(LAST_WORDS, gone).await;
}
