//! A connection that goes on in another protocol after its answer.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, header};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

/// Whether a request asks to go on in WebSocket.
pub(crate) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE);
    upgrade.is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Both directions of a connection.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

type Then = Box<dyn FnOnce(Box<dyn Duplex>) -> BoxFuture<'static, ()> + Send>;

/// What becomes of a connection after an answer with the status 101, as an extension of that answer.
///
/// Whoever serves the connection takes it out, writes the answer, and runs what it stands for in the connection's own task:
/// so the connection counts as one for as long as that runs, and is given up like any other ([`Writing`](crate::Writing)).
#[derive(Clone)]
pub struct Upgrade(Arc<Mutex<Option<Then>>>);

impl Upgrade {
    /// Goes on like this.
    pub(crate) fn to<F>(then: impl FnOnce(Box<dyn Duplex>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let then = |connection| then(connection).boxed();
        Self(Arc::new(Mutex::new(Some(Box::new(then)))))
    }

    /// Goes on with the connection, to its end. `connection` begins with what has been read of it after the request.
    pub async fn run(self, connection: impl Duplex + 'static) {
        let then = self.0.lock().take();
        if let Some(then) = then {
            then(Box::new(connection)).await;
        }
    }
}
